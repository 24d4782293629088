// Row blocks in waves. A worker is a block or a cluster. Every worker has a whole row block of each wave. So all workers read the
// same k tile of the queries at about the same time, and share it in L2. The remaining row blocks, fewer than the workers, are
// split into a run of units for each worker, as in lwe_fold.cuh.
#pragma once
#include "lwe_fold.cuh"

namespace lwe {

// The work of a worker.
struct Waves {
    uint32_t row_block, end; // the worker's row block in the next wave, and the end of the last wave's
    Units rest;              // the worker's run of units of the row blocks after the last wave
};

HUSH_DEVICE Waves waves_of_worker(uint32_t worker, uint32_t workers, uint32_t row_blocks, uint32_t k_tiles) {
    uint32_t end = row_blocks / workers * workers;
    return {worker, end, units_of_worker(worker, workers, row_blocks - end, k_tiles)};
}

HUSH_DEVICE bool has_units(const Waves& waves) {
    return waves.row_block < waves.end || has_units(waves.rest);
}

// Takes the units of one row block. Whole row blocks come first.
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
