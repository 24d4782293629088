// Step (2): converts LWE words to a new byte database, in device tiles.
//
// Word w, number c * items + i of query b, is rounded to its top 8 `digits` bits:
//     (w + 2^(31 - 8 digits)) >> (32 - 8 digits), modulo 2^(8 digits)
// Byte k of the result, least significant first, goes to row (b * items + i) * digits + k, column c.
#include "lwe_tiles.cuh"

// Writes one row's chunk of 16 columns in each thread, with zeros beyond the rows and columns. The lanes of a warp have
// neighbouring rows, which are neighbours in the words. Grid: (tiles, 8 chunks), 256 threads.
extern "C" __global__ void __launch_bounds__(256)
reinterpret_lwe(uint8_t* tiles, const uint32_t* words, uint32_t queries, uint32_t items, uint32_t columns,
                uint32_t digits) {
    uint32_t k_tiles = (columns + lwe::TILE_COLS - 1) / lwe::TILE_COLS;
    uint32_t row_tile = blockIdx.x / k_tiles, k_tile = blockIdx.x % k_tiles, line = threadIdx.x, chunk = blockIdx.y;
    uint32_t row = row_tile * lwe::TILE_ROWS + line, at = row / digits, query = at / items, item = at - query * items;
    uint32_t first = k_tile * lwe::TILE_COLS + chunk * lwe::CHUNK_BYTES;
    // The carry of the rounding overflows the word, which is the reduction modulo 2^(8 digits). The rounded bits are at the top.
    uint32_t dropped = 32 - 8 * digits, half = dropped == 0 ? 0 : 1u << (dropped - 1);
    uint32_t shift = dropped + 8 * (row - at * digits);
    const uint32_t* own = words + uint64_t(query) * columns * items;
    uint32_t packed[4] = {};
#pragma unroll
    for (uint32_t i = 0; i < lwe::CHUNK_BYTES; i++) {
        if (query < queries && first + i < columns) {
            uint32_t byte = (own[uint64_t(first + i) * items + item] + half) >> shift & 0xff;
            packed[i / 4] |= byte << (8 * (i % 4));
        }
    }
    uint8_t* tile = tiles + uint64_t(blockIdx.x) * lwe::TILE_BYTES;
    uint4 bytes = make_uint4(packed[0], packed[1], packed[2], packed[3]);
    *reinterpret_cast<uint4*>(tile + lwe::chunk_offset(line, chunk)) = bytes;
}
HUSH_KERNEL(reinterpret_lwe)
