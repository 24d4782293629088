// The kernel `split_queries`: it converts the words of queries modulo 2^32 to swizzled tiles of their bytes (lwe_tiles.cuh).
#include "lwe_tiles.cuh"

// The words of some queries and columns: word (query, column) is words[query * query_stride + column * column_stride].
// A column of the matrix A is a query too. Mirrored by `WordShape` in src/lwe/queries.rs.
struct WordShape {
    uint64_t query_stride, column_stride;
    uint32_t queries, columns;
};
static_assert(sizeof(WordShape) == 24 && offsetof(WordShape, queries) == 16, "the layout of WordShape");

// Writes 16 columns of one query in each thread, padding included. Grid: (k tiles, threads for 8 chunks x `padded` queries);
// `padded` = N / 4. `tiles` points to the first of these k tiles in the pass.
extern "C" __global__ void __launch_bounds__(256)
split_queries(uint8_t* tiles, const uint32_t* words, WordShape shape, uint32_t padded) {
    uint32_t at = blockIdx.y * blockDim.x + threadIdx.x;
    uint32_t chunk = at % lwe::TILE_CHUNKS, query = at / lwe::TILE_CHUNKS, tile = blockIdx.x;
    if (query >= padded) return;
    uint32_t first = tile * lwe::TILE_COLS + chunk * lwe::CHUNK_BYTES;
    uint32_t taken[lwe::CHUNK_BYTES];
#pragma unroll
    for (uint32_t i = 0; i < lwe::CHUNK_BYTES; i++) {
        bool inside = query < shape.queries && first + i < shape.columns;
        taken[i] = inside ? words[query * shape.query_stride + (first + i) * shape.column_stride] : 0;
    }
    uint64_t tile_bytes = uint64_t(padded) * lwe::WORD_BYTES * lwe::TILE_COLS;
    lwe::store_query_chunk(tiles + tile * tile_bytes, query, chunk, taken);
}
HUSH_KERNEL(split_queries)
