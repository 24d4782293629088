// Step (1) on any GPU from Ampere on: folds the first dimension by mma.sync s8 x u8.
//
// A block of 256 threads has the accumulators of half a database tile, 128 rows, x N byte columns:
//     for each run: for each of its units: wait for its stage; start the copies of unit + 2; multiply
//                   add the sums to the result
// A stage in shared memory is a unit of work: the half tile (16 KiB), then the query tile (N x 128 bytes). Both are copied
// unchanged, 16 bytes in each thread at a time. Of three stages, two are in flight while one is multiplied. Warps are laid out 8 x
// 1 over rows x columns, 4 x 2 for N = 128. ldmatrix reads the swizzled lines without bank conflicts.
#include "lwe_fold.cuh"

namespace lwe {

constexpr uint32_t MMA_THREADS = 256;
constexpr uint32_t MMA_WARPS = MMA_THREADS / 32;
constexpr uint32_t BLOCK_ROWS = 128;
constexpr uint32_t HALF_TILE_BYTES = BLOCK_ROWS * TILE_COLS;
// src/lwe/plan.rs has the same number.
constexpr uint32_t STAGES = 3;

// The product of a warp: 16 `row_tiles` rows x 8 `column_tiles` byte columns.
template <uint32_t N> struct WarpTile {
    static constexpr uint32_t warps_across = N == 128 ? 2 : 1;
    static constexpr uint32_t warps_down = MMA_WARPS / warps_across;
    static constexpr uint32_t row_tiles = BLOCK_ROWS / 16 / warps_down;
    static constexpr uint32_t column_tiles = N / 8 / warps_across;
    static constexpr uint32_t stage_bytes = HALF_TILE_BYTES + N * TILE_COLS;
};

template <uint32_t N> using Sums = int32_t[WarpTile<N>::row_tiles][4 * WarpTile<N>::column_tiles];

// Starts to copy `bytes` bytes, 16 in each thread at a time.
HUSH_DEVICE void copy_async(uint8_t* to, const uint8_t* from, uint32_t bytes) {
    for (uint32_t at = threadIdx.x * CHUNK_BYTES; at < bytes; at += MMA_THREADS * CHUNK_BYTES) {
        ptx::cp_async_16(to + at, from + at);
    }
}

// Starts to fetch unit k of a run, if the run has it, as one group of copies.
template <uint32_t N>
HUSH_DEVICE void fetch_stage(uint8_t* shared, const uint8_t* db, const uint8_t* queries, const Run& run, uint32_t k,
                             uint32_t k_tiles) {
    if (k < run.k_end) {
        uint8_t* stage = shared + (k - run.k) % STAGES * WarpTile<N>::stage_bytes;
        uint64_t tile = uint64_t(run.row_block / 2) * k_tiles + k;
        copy_async(stage, db + tile * TILE_BYTES + run.row_block % 2 * HALF_TILE_BYTES, HALF_TILE_BYTES);
        copy_async(stage + HALF_TILE_BYTES, queries + uint64_t(k) * (N * TILE_COLS), N * TILE_COLS);
    }
    ptx::cp_async_commit();
}

// Returns the accumulators of a tile of 8 columns.
template <uint32_t R> HUSH_DEVICE int32_t (&tile_of(int32_t (&sums)[R], uint32_t tile))[4] {
    return reinterpret_cast<int32_t(&)[4]>(sums[4 * tile]);
}

// Adds the product of the warp's rows and columns of a stage to `sums`.
template <uint32_t N>
HUSH_DEVICE void multiply_stage(Sums<N>& sums, const uint8_t* rows,
                                const uint8_t* columns) {
    uint32_t lane = threadIdx.x % 32;
    // ldmatrix x4 takes a line's address from each lane. For A: 16 rows, their first 16 bytes and then their second. For B: two
    // tiles of 8 columns, each with its first 16 bytes and then its second.
    uint32_t row = lane % 16, row_half = lane / 16, column = lane / 16 * 8 + lane % 8, column_half = lane / 8 % 2;
#pragma unroll
    for (uint32_t step = 0; step < TILE_COLS / 32; step++) {
        uint32_t a[WarpTile<N>::row_tiles][4];
#pragma unroll
        for (uint32_t i = 0; i < WarpTile<N>::row_tiles; i++) {
            ptx::ldmatrix_x4(a[i], rows + i * 16 * TILE_COLS + chunk_offset(row, 2 * step + row_half));
        }
#pragma unroll
        for (uint32_t j = 0; j < WarpTile<N>::column_tiles; j += 2) {
            uint32_t b[4];
            ptx::ldmatrix_x4(b, columns + j * 8 * TILE_COLS + chunk_offset(column, 2 * step + column_half));
#pragma unroll
            for (uint32_t i = 0; i < WarpTile<N>::row_tiles; i++) {
                ptx::mma_m16n8k32_s8u8(tile_of(sums[i], j), a[i], {b[0], b[1]});
                ptx::mma_m16n8k32_s8u8(tile_of(sums[i], j + 1), a[i], {b[2], b[3]});
            }
        }
    }
}

// Folds every unit of the block.
template <uint32_t N>
HUSH_DEVICE void fold(uint8_t* shared, const uint8_t* db, const uint8_t* queries, uint32_t* out,
                      const FoldShape& shape) {
    using W = WarpTile<N>;
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t warp_row = warp % W::warps_down * W::row_tiles * 16;
    uint32_t warp_column = warp / W::warps_down * W::column_tiles * 8;
    Units units = units_of_block((shape.rows + BLOCK_ROWS - 1) / BLOCK_ROWS, shape.k_tiles);
    while (units.next < units.end) {
        Run run = take_run(units, shape.k_tiles);
        // In the last row block a warp may have no rows.
        bool has_rows = run.row_block * BLOCK_ROWS + warp_row < shape.rows;
        Sums<N> sums = {};
        for (uint32_t i = 0; i < STAGES - 1; i++) fetch_stage<N>(shared, db, queries, run, run.k + i, shape.k_tiles);
#pragma unroll 1
        for (uint32_t k = run.k; k < run.k_end; k++) {
            ptx::cp_async_wait<STAGES - 2>();
            // All threads see this stage, and are done with the stage before, which is filled next.
            __syncthreads();
            fetch_stage<N>(shared, db, queries, run, k + STAGES - 1, shape.k_tiles);
            const uint8_t* stage = shared + (k - run.k) % STAGES * W::stage_bytes;
            const uint8_t* columns = stage + HALF_TILE_BYTES + warp_column * TILE_COLS;
            if (has_rows) multiply_stage<N>(sums, stage + warp_row * TILE_COLS, columns);
        }
        // The next run fills the first stages, which slower warps may be reading.
        __syncthreads();
#pragma unroll
        for (uint32_t i = 0; i < W::row_tiles; i++) {
            uint32_t row = run.row_block * BLOCK_ROWS + warp_row + i * 16 + lane / 4;
            add_sums(out, shape, row, warp_column / 4 + lane % 4, sums[i]);
        }
    }
}

} // namespace lwe

// The kernels lwe_fold_n<N>: each adds the fold of `db` with one pass of up to N / 4 queries to `out`. Grid: any number of blocks;
// 256 threads; dynamic shared memory: three stages of WarpTile<N>::stage_bytes.

#define HUSH_LWE_FOLD(name, n)                                                                 \
    extern "C" __global__ void __launch_bounds__(lwe::MMA_THREADS)                             \
        name(const uint8_t* db, const uint8_t* queries, uint32_t* out, lwe::FoldShape shape) { \
        HUSH_DYNAMIC_SHARED(uint8_t, shared);                                                  \
        lwe::fold<n>(shared, db, queries, out, shape);                                         \
    }                                                                                          \
    HUSH_KERNEL(name)

HUSH_LWE_FOLD(lwe_fold_n16, 16)
HUSH_LWE_FOLD(lwe_fold_n32, 32)
HUSH_LWE_FOLD(lwe_fold_n64, 64)
HUSH_LWE_FOLD(lwe_fold_n128, 128)
