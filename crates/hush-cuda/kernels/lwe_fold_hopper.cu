// Step (1) on Hopper: folds the first dimension by wgmma s8 x u8.
//
// The grid is persistent, with one block on each multiprocessor. A block has three consumer warpgroups, each with the accumulators
// of two slabs of 64 rows (one slab if N = 256), and a producer warp:
//     producer:  for each unit of work: wait for an empty stage; copy the slabs and the query tile to it
//     consumers: for each unit of work: wait for its stage; multiply; return the stage
//
// With three consumers, the register file holds 384 rows x 128 byte columns of sums (192 x 256). The queries come from L2 once for
// each row block, and with two consumers this traffic is too high (docs/explanation/notes/cuda-lwe-fold.md).
//
// A unit takes at least these cycles of a multiprocessor, on an H200: memory 2,640; tensor cores 192 for B = 1, 1,536 for B = 32.
// For B = 64, with half the rows, it takes 1,320 and 1,536, and its 56 KiB come out of L2 in some 2,000. So memory bounds B up to
// 32, and L2 bounds 64. There, clusters of two blocks process neighbouring row blocks in step, and each block fetches half of the
// queries for both: 40 KiB remain.
//
// A stage in shared memory is a unit of work: the row block's slabs of 64 x 128 bytes (8 KiB each, a quarter of a database tile),
// then the query tile of N x 128 bytes. The producer's one thread fetches both with bulk copies that complete on the stage's `full`
// barrier. The twelve consumer warps arrive on its `empty` barrier when their wgmma have read it. In a cluster, the consumers of
// both blocks arrive, since a query tile is copied to both.
#include "lwe_fold.cuh"
#include "lwe_waves.cuh"

namespace lwe {

constexpr uint32_t SLAB_ROWS = 64;
constexpr uint32_t SLAB_BYTES = SLAB_ROWS * TILE_COLS;
constexpr uint32_t TILE_SLABS = TILE_ROWS / SLAB_ROWS;
constexpr uint32_t WARPGROUP = 128;
constexpr uint32_t CONSUMERS = 3;
constexpr uint32_t CONSUMER_WARPS = CONSUMERS * WARPGROUP / 32;
constexpr uint32_t THREADS = (CONSUMERS + 1) * WARPGROUP;
// Steps of 32 columns in a k tile, and how far a descriptor moves in one: 32 bytes, in units of 16.
constexpr uint32_t K_STEPS = TILE_COLS / 32;
constexpr uint64_t K_STEP = 2;

// The bytes that a stage holds for N byte columns, and the accumulators of a warpgroup. These are two products of 64 rows x `width`
// columns: of two slabs, or for N = 256 of one slab and both halves of the queries. (For N = 256, one wgmma of 256 columns would
// suffice. But the compiler wants all 128 of its accumulators below the register count at entry, which is 128.) Stages and their
// bytes are also in src/lwe/plan.rs.
template <uint32_t N> struct Geometry {
    static constexpr uint32_t width = N == 256 ? 128 : N;
    static constexpr uint32_t parts = N / width;
    static constexpr uint32_t slabs_each = 2 / parts;
    static constexpr uint32_t slabs = CONSUMERS * slabs_each;
    static constexpr uint32_t query_bytes = N * TILE_COLS;
    static constexpr uint32_t stage_bytes = slabs * SLAB_BYTES + query_bytes;
    static constexpr uint32_t stages = N == 128 ? 3 : 4;
};

template <uint32_t N> using Sums = int32_t[2][Geometry<N>::width / 2];

// The stages and their barriers.
struct Pipeline {
    uint8_t* stages;
    uint64_t* full;
    uint64_t* empty;
};

// Returns the stages and barriers in shared memory. Thread 0 initializes the barriers.
template <uint32_t N, uint32_t CLUSTER> HUSH_DEVICE Pipeline make_pipeline(uint8_t* shared) {
    using G = Geometry<N>;
    uint64_t* full = reinterpret_cast<uint64_t*>(shared + G::stages * G::stage_bytes);
    uint64_t* empty = full + G::stages;
    if (threadIdx.x == 0) {
        for (uint32_t i = 0; i < G::stages; i++) {
            ptx::mbarrier_init(&full[i], 1);
            ptx::mbarrier_init(&empty[i], CLUSTER * CONSUMER_WARPS);
        }
        ptx::mbarrier_init_fence();
    }
    if constexpr (CLUSTER > 1) ptx::cluster_sync();
    else __syncthreads();
    return {shared, full, empty};
}

// A place in the ring of stages: `parity` is the parity of the phase of `full` to wait for.
struct Place {
    uint32_t stage, parity;
};

template <uint32_t N> HUSH_DEVICE void advance(Place& place) {
    bool wraps = ++place.stage == Geometry<N>::stages;
    place.stage = wraps ? 0 : place.stage;
    place.parity ^= wraps;
}

// The work of a single block, or of a block of a cluster. A cluster of CLUSTER blocks takes as many row blocks at a time.
template <uint32_t CLUSTER> struct Work;

template <> struct Work<1> {
    Units units;

    static HUSH_DEVICE Work of_block(uint32_t row_blocks, const FoldShape& shape) {
        return {units_of_block(row_blocks, shape.k_tiles)};
    }
    HUSH_DEVICE bool is_left() const { return has_units(units); }
    HUSH_DEVICE Run take(const FoldShape& shape) { return take_run(units, shape.k_tiles); }
};

template <uint32_t CLUSTER> struct Work {
    Waves waves;

    static HUSH_DEVICE Work of_block(uint32_t row_blocks, const FoldShape& shape) {
        uint32_t of_cluster = (row_blocks + CLUSTER - 1) / CLUSTER;
        return {waves_of_worker(blockIdx.x / CLUSTER, gridDim.x / CLUSTER, of_cluster, shape.k_tiles)};
    }
    HUSH_DEVICE bool is_left() const { return has_units(waves); }
    HUSH_DEVICE Run take(const FoldShape& shape) {
        Run run = take_run(waves, gridDim.x / CLUSTER, shape.k_tiles);
        run.row_block = run.row_block * CLUSTER + ptx::cluster_rank();
        return run;
    }
};

// Fetches a query tile. In a cluster, each block fetches its part of the tile for all blocks.
template <uint32_t N, uint32_t CLUSTER>
HUSH_DEVICE void fetch_queries(uint8_t* to, const uint8_t* from, uint64_t* full) {
    constexpr uint32_t part = Geometry<N>::query_bytes / CLUSTER;
    if constexpr (CLUSTER == 1) {
        ptx::bulk_copy(to, from, part, full);
    } else {
        uint32_t at = ptx::cluster_rank() * part;
        ptx::bulk_copy_multicast(to + at, from + at, part, full, (1 << CLUSTER) - 1);
    }
}

// Fetches every unit of the block, as stages become free. One thread.
template <uint32_t N, uint32_t CLUSTER>
HUSH_DEVICE void produce(const Pipeline& pipeline, const uint8_t* db, const uint8_t* queries, uint32_t row_blocks,
                         const FoldShape& shape) {
    using G = Geometry<N>;
    auto work = Work<CLUSTER>::of_block(row_blocks, shape);
    uint32_t db_slabs = (shape.rows + SLAB_ROWS - 1) / SLAB_ROWS;
    Place place = {0, 0};
    while (work.is_left()) {
        Run run = work.take(shape);
        // The last row block of a cluster may lie beyond the rows: it then has no slabs.
        uint32_t first = min(run.row_block * G::slabs, db_slabs), slabs = min(G::slabs, db_slabs - first);
        for (uint32_t k = run.k; k < run.k_end; k++, advance<N>(place)) {
            uint8_t* stage = pipeline.stages + place.stage * G::stage_bytes;
            uint64_t* full = &pipeline.full[place.stage];
            // At first every stage is free: the phase before the first one counts as complete.
            ptx::mbarrier_wait(&pipeline.empty[place.stage], place.parity ^ 1);
            ptx::mbarrier_expect(full, slabs * SLAB_BYTES + G::query_bytes);
#pragma unroll 1
            for (uint32_t i = 0; i < slabs; i++) {
                uint32_t slab = first + i;
                uint64_t tile = uint64_t(slab / TILE_SLABS) * shape.k_tiles + k;
                const uint8_t* from = db + tile * TILE_BYTES + slab % TILE_SLABS * SLAB_BYTES;
                ptx::bulk_copy_evict_first(stage + i * SLAB_BYTES, from, SLAB_BYTES, full);
            }
            fetch_queries<N, CLUSTER>(stage + G::slabs * SLAB_BYTES, queries + uint64_t(k) * G::query_bytes, full);
        }
    }
}

// Returns a stage after this warp has read it. One lane for each block of the cluster arrives at that block's barrier.
template <uint32_t CLUSTER> HUSH_DEVICE void give_back(uint64_t* empty, uint32_t lane) {
    if constexpr (CLUSTER == 1) {
        if (lane == 0) ptx::mbarrier_arrive(empty);
    } else {
        if (lane < CLUSTER) ptx::mbarrier_arrive_cluster(ptx::cluster_address(empty, lane));
    }
}

// Adds the products of the warpgroup's slabs and the query tile of a stage to `sums`.
template <uint32_t N>
HUSH_DEVICE void multiply_stage(Sums<N>& sums, const uint8_t* slabs, const uint8_t* queries) {
    using G = Geometry<N>;
    ptx::wgmma_fence();
#pragma unroll
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t slab = ptx::descriptor_128b(slabs + i / G::parts * SLAB_BYTES);
        uint64_t query = ptx::descriptor_128b(queries + i % G::parts * G::width * TILE_COLS);
#pragma unroll
        for (uint32_t step = 0; step < K_STEPS; step++) {
            ptx::wgmma_m64k32_s8u8<G::width>(sums[i], slab + step * K_STEP, query + step * K_STEP);
        }
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
}

// Multiplies every unit of the block with the slabs of one warpgroup.
template <uint32_t N, uint32_t CLUSTER>
HUSH_DEVICE void consume(const Pipeline& pipeline, uint32_t warpgroup, uint32_t* out, uint32_t row_blocks,
                         const FoldShape& shape) {
    using G = Geometry<N>;
    auto work = Work<CLUSTER>::of_block(row_blocks, shape);
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x % WARPGROUP / 32;
    uint32_t first_slab = warpgroup * G::slabs_each;
    Place place = {0, 0};
    while (work.is_left()) {
        Run run = work.take(shape);
        uint32_t first_row = (run.row_block * G::slabs + first_slab) * SLAB_ROWS;
        // In the last row block, a warpgroup may have no rows. It then only returns the stages.
        bool has_rows = first_row < shape.rows;
        Sums<N> sums = {};
#pragma unroll 1
        for (uint32_t k = run.k; k < run.k_end; k++, advance<N>(place)) {
            const uint8_t* stage = pipeline.stages + place.stage * G::stage_bytes;
            ptx::mbarrier_wait(&pipeline.full[place.stage], place.parity);
            if (has_rows) {
                multiply_stage<N>(sums, stage + first_slab * SLAB_BYTES, stage + G::slabs * SLAB_BYTES);
            } else {
                // No lane may miss this phase: the stage is filled again after its return.
                __syncwarp();
            }
            give_back<CLUSTER>(&pipeline.empty[place.stage], lane);
        }
#pragma unroll
        for (uint32_t i = 0; i < 2; i++) {
            // No product is in flight: this only tells the compiler that the sums are complete.
            ptx::wgmma_wait<0>(sums[i]);
            uint32_t row = first_row + i / G::parts * SLAB_ROWS + warp * 16 + lane / 4;
            add_sums(out, shape, row, i % G::parts * G::width / 4 + lane % 4, sums[i]);
        }
    }
}

// Folds every unit of the block: one warp produces, three warpgroups consume.
template <uint32_t N, uint32_t CLUSTER = 1>
HUSH_DEVICE void fold(uint8_t* shared, const uint8_t* db, const uint8_t* queries, uint32_t* out,
                      const FoldShape& shape) {
    constexpr uint32_t block_rows = Geometry<N>::slabs * SLAB_ROWS;
    Pipeline pipeline = make_pipeline<N, CLUSTER>(shared);
    uint32_t row_blocks = (shape.rows + block_rows - 1) / block_rows;
    // The shuffle shows the compiler that all lanes of a warp take one branch.
    uint32_t warpgroup = __shfl_sync(0xffffffff, threadIdx.x / WARPGROUP, 0);
    if (warpgroup == CONSUMERS) {
        ptx::set_max_registers_dec<32>();
        if (threadIdx.x == CONSUMERS * WARPGROUP) produce<N, CLUSTER>(pipeline, db, queries, row_blocks, shape);
    } else {
        ptx::set_max_registers_inc<160>();
        consume<N, CLUSTER>(pipeline, warpgroup, out, row_blocks, shape);
    }
    // The other blocks still arrive at the barriers of a block that is done.
    if constexpr (CLUSTER > 1) ptx::cluster_sync();
}

} // namespace lwe

// The kernels lwe_fold_n<N>_hopper and lwe_fold_n<N>_cluster_hopper: each adds the fold of `db` with one pass of up to N / 4
// queries to `out`. Grid: any number of blocks, an even number for clusters, at best one on each multiprocessor. 512 threads.
// Dynamic shared memory: the stages of Geometry<N>, then 16 bytes of barriers for each stage.
#define HUSH_LWE_FOLD_HOPPER(name, ...)                                                              \
    name(const uint8_t* db, const uint8_t* queries, uint32_t* out, lwe::FoldShape shape) {           \
        HUSH_DYNAMIC_SHARED(uint8_t, shared);                                                        \
        lwe::fold<__VA_ARGS__>(shared, db, queries, out, shape);                                     \
    }
#define HUSH_LWE_FOLD_BLOCK(name, n)                                                                 \
    extern "C" __global__ void __launch_bounds__(lwe::THREADS, 1) HUSH_LWE_FOLD_HOPPER(name, n)      \
    HUSH_KERNEL(name)
#define HUSH_LWE_FOLD_CLUSTER(name, n)                                                               \
    extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(lwe::THREADS, 1)          \
        HUSH_LWE_FOLD_HOPPER(name, n, 2)                                                             \
    HUSH_CLUSTER_KERNEL(name, 2)

HUSH_LWE_FOLD_BLOCK(lwe_fold_n16_hopper, 16)
HUSH_LWE_FOLD_BLOCK(lwe_fold_n32_hopper, 32)
HUSH_LWE_FOLD_BLOCK(lwe_fold_n64_hopper, 64)
HUSH_LWE_FOLD_CLUSTER(lwe_fold_n128_cluster_hopper, 128)
HUSH_LWE_FOLD_CLUSTER(lwe_fold_n256_cluster_hopper, 256)
