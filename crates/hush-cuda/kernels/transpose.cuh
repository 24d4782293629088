// Transposition of a square of 32 x 32 words, with reads and writes of 128 bytes by each warp.
#pragma once

#include "prelude.cuh"

constexpr uint32_t SQUARE = 32;
constexpr uint32_t SQUARE_THREADS = 256;
// The stride of a line, with a word of padding: a column of the square is in 32 banks.
constexpr uint32_t SQUARE_STRIDE = SQUARE + 1;

// Transposes a square with a block of 256 threads; warp w takes lines w, w + 8, and so on. `load(i, j)` returns the word that
// `store(j, i, word)` stores. In either call, the second index counts neighbours in memory. Dynamic shared memory: 32 x 33 words.
template <class Load, class Store>
HUSH_DEVICE void transpose_square(Load load, Store store) {
    HUSH_DYNAMIC_SHARED(uint32_t, square);
    uint32_t lane = threadIdx.x % SQUARE, warp = threadIdx.x / SQUARE;
    constexpr uint32_t WARPS = SQUARE_THREADS / SQUARE;
#pragma unroll
    for (uint32_t line = 0; line < SQUARE; line += WARPS) {
        square[(line + warp) * SQUARE_STRIDE + lane] = load(line + warp, lane);
    }
    __syncthreads();
#pragma unroll
    for (uint32_t line = 0; line < SQUARE; line += WARPS) {
        store(line + warp, lane, square[lane * SQUARE_STRIDE + line + warp]);
    }
}
