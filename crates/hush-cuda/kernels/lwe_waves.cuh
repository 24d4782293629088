// Row blocks in waves: every worker (a block, or a cluster, that takes units of work) has a whole row block of each wave,
// so that all of them read the same k tile of the queries at about the same time, and what one reads is in L2 for the
// others. The row blocks that make no whole wave are cut into a run of units a worker, like all of them in lwe_fold.cuh.
#pragma once
#include "lwe_fold.cuh"

namespace lwe {

struct Waves {
    uint32_t row_block, end; // of the next wave, and behind that of the last
    Units rest;              // of the row blocks from the last wave on
};

HUSH_DEVICE Waves waves_of_worker(uint32_t worker, uint32_t workers, uint32_t row_blocks, uint32_t k_tiles) {
    uint32_t end = row_blocks / workers * workers;
    return {worker, end, units_of_worker(worker, workers, row_blocks - end, k_tiles)};
}

HUSH_DEVICE bool has_units(const Waves& waves) {
    return waves.row_block < waves.end || has_units(waves.rest);
}

// Takes the units of one row block, whole ones first.
HUSH_DEVICE Run take_run(Waves& waves, uint32_t workers, uint32_t k_tiles) {
    if (waves.row_block < waves.end) {
        Run run = {waves.row_block, 0, k_tiles};
        waves.row_block += workers;
        return run;
    }
    Run run = take_run(waves.rest, k_tiles);
    run.row_block += waves.end;
    return run;
}

} // namespace lwe
