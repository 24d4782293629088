// The kernel `split_negacyclic`: it prepares columns of a ring-structured matrix A for a fold, from its ring elements.
//
// A is a grid of d x d negacyclic matrices. Row c of ring block m (database columns m d and on) has at k d + i the entry
// alpha[m][k][c - i], or -alpha[m][k][d + c - i] where c < i. Column k d + i of A is a query.
#include "lwe_tiles.cuh"

// The shape of the ring elements, [block][n] words. Mirrored by `RingBlocks` in src/lwe/matrix.rs.
struct RingBlocks {
    uint32_t columns; // database columns: rows of A
    uint32_t n;
    uint32_t log_degree;
    uint32_t first; // column of A that is the pass's first query
};
static_assert(sizeof(RingBlocks) == 16, "the layout of RingBlocks");

// Writes 16 database columns of one query in each thread, padding included. Grid: (k tiles, threads for 8 chunks x
// `padded` queries); `padded` = N / 4.
extern "C" __global__ void __launch_bounds__(256)
split_negacyclic(uint8_t* tiles, const uint32_t* alpha, RingBlocks ring, uint32_t padded) {
    uint32_t at = blockIdx.y * blockDim.x + threadIdx.x;
    uint32_t chunk = at % lwe::TILE_CHUNKS, query = at / lwe::TILE_CHUNKS, tile = blockIdx.x;
    if (query >= padded) return;
    uint32_t degree = 1u << ring.log_degree, column = ring.first + query;
    uint32_t element = column & ~(degree - 1), i = column & (degree - 1);
    uint32_t words[lwe::CHUNK_BYTES];
#pragma unroll
    for (uint32_t j = 0; j < lwe::CHUNK_BYTES; j++) {
        uint32_t row = tile * lwe::TILE_COLS + chunk * lwe::CHUNK_BYTES + j;
        uint32_t c = row & (degree - 1);
        uint32_t word = 0;
        if (column < ring.n && row < ring.columns) {
            word = alpha[uint64_t(row >> ring.log_degree) * ring.n + element + ((c - i) & (degree - 1))];
        }
        words[j] = c < i ? 0 - word : word;
    }
    uint64_t tile_bytes = uint64_t(padded) * lwe::WORD_BYTES * lwe::TILE_COLS;
    lwe::store_query_chunk(tiles + tile * tile_bytes, query, chunk, words);
}
HUSH_KERNEL(split_negacyclic)
