// (1) Fold the first dimension for one or two queries on CUDA cores: dp4a straight from device memory, without shared
// memory.
//
// A block of 256 threads takes a database tile at a time, of 256 rows x 128 columns. A warp has 32 of the rows; a lane
// has one chunk of 16 columns, number lane % 8, of the eight rows lane / 8 + 4 i, so that a warp's load is four whole
// lines (512 bytes without a gap), and the lane's query bytes stay in registers for eight rows. The next tile's eight
// loads of a thread are in flight while a tile is multiplied: 32 KiB a block. Queries are prepared as for N = 16; they
// come from L1.
#include "lwe_fold.cuh"

namespace lwe {

constexpr uint32_t GEMV_THREADS = 256;
constexpr uint32_t ROWS_EACH = 8;
constexpr uint32_t ROWS_A_LOAD = 4;
constexpr uint32_t QUERY_TILE_BYTES = 16 * TILE_COLS;

// The lane's chunk of each of its rows.
struct Chunks {
    uint4 rows[ROWS_EACH];
};

HUSH_DEVICE Chunks load_chunks(const uint8_t* tile, uint32_t row, uint32_t chunk) {
    Chunks chunks;
    // The swizzle repeats after eight lines: two offsets are enough.
    const uint8_t* even = tile + chunk_offset(row, chunk);
    const uint8_t* odd = tile + chunk_offset(row + ROWS_A_LOAD, chunk);
#pragma unroll
    for (uint32_t i = 0; i < ROWS_EACH; i++) {
        chunks.rows[i] = ptx::load_stream_16((i % 2 == 0 ? even : odd) + i / 2 * 8 * TILE_COLS);
    }
    return chunks;
}

// Adds the product of 16 database bytes and 16 query words, given as four chunks of bytes.
HUSH_DEVICE void add_product(uint32_t& sum, const uint4& db, const uint4 (&query)[WORD_BYTES]) {
    int32_t product = 0;
#pragma unroll
    for (int32_t byte = WORD_BYTES - 1; byte >= 0; byte--) {
        // Byte classes from the highest down, as in Horner's rule; an unsigned shift, since the product wraps.
        product = int32_t(uint32_t(product) << 8);
        product = ptx::dp4a_s8u8(db.x, query[byte].x, product);
        product = ptx::dp4a_s8u8(db.y, query[byte].y, product);
        product = ptx::dp4a_s8u8(db.z, query[byte].z, product);
        product = ptx::dp4a_s8u8(db.w, query[byte].w, product);
    }
    sum += uint32_t(product);
}

template <uint32_t QUERIES>
HUSH_DEVICE void multiply_tile(uint32_t (&sums)[QUERIES][ROWS_EACH], const Chunks& chunks, const uint8_t* query_tile,
                               uint32_t chunk) {
#pragma unroll
    for (uint32_t query = 0; query < QUERIES; query++) {
        uint4 bytes[WORD_BYTES];
#pragma unroll
        for (uint32_t byte = 0; byte < WORD_BYTES; byte++) {
            const uint8_t* from = query_tile + chunk_offset(query_column(query, byte), chunk);
            bytes[byte] = __ldg(reinterpret_cast<const uint4*>(from));
        }
#pragma unroll
        for (uint32_t i = 0; i < ROWS_EACH; i++) add_product(sums[query][i], chunks.rows[i], bytes);
    }
}

// Adds up the eight chunks of a row, which eight lanes have, and adds the row's sum to the result.
template <uint32_t QUERIES>
HUSH_DEVICE void add_rows(uint32_t* out, const FoldShape& shape, uint32_t row, uint32_t chunk,
                          const uint32_t (&sums)[QUERIES][ROWS_EACH]) {
#pragma unroll
    for (uint32_t query = 0; query < QUERIES; query++) {
#pragma unroll
        for (uint32_t i = 0; i < ROWS_EACH; i++) {
            uint32_t sum = sums[query][i];
#pragma unroll
            for (uint32_t distance = 1; distance < TILE_CHUNKS; distance *= 2) {
                sum += __shfl_xor_sync(0xffffffff, sum, distance);
            }
            uint32_t at = row + i * ROWS_A_LOAD;
            if (chunk == 0 && at < shape.rows && query < shape.queries) {
                ptx::red_add(out + query * shape.query_stride + at * shape.row_stride, sum);
            }
        }
    }
}

template <uint32_t QUERIES>
HUSH_DEVICE void fold_gemv(const uint8_t* db, const uint8_t* queries, uint32_t* out, const FoldShape& shape) {
    uint32_t lane = threadIdx.x % 32, chunk = lane % TILE_CHUNKS;
    uint32_t row = threadIdx.x / 32 * (ROWS_EACH * ROWS_A_LOAD) + lane / TILE_CHUNKS;
    Units units = units_of_block((shape.rows + TILE_ROWS - 1) / TILE_ROWS, shape.k_tiles);
    if (units.next == units.end) return;
    // Tiles of a run of units follow each other in memory, beyond the end of a row block too.
    const uint8_t* tile = db + uint64_t(units.next) * TILE_BYTES;
    const uint8_t* last = db + uint64_t(units.end - 1) * TILE_BYTES;
    Chunks next = load_chunks(tile, row, chunk);
    while (units.next < units.end) {
        Run run = take_run(units, shape.k_tiles);
        uint32_t sums[QUERIES][ROWS_EACH] = {};
#pragma unroll 1
        for (uint32_t k = run.k; k < run.k_end; k++) {
            Chunks chunks = next;
            tile = tile == last ? tile : tile + TILE_BYTES;
            next = load_chunks(tile, row, chunk);
            multiply_tile<QUERIES>(sums, chunks, queries + uint64_t(k) * QUERY_TILE_BYTES, chunk);
        }
        add_rows<QUERIES>(out, shape, run.row_block * TILE_ROWS + row, chunk, sums);
    }
}

} // namespace lwe

// lwe_fold_gemv_<B>: adds the fold of `db` with up to B queries, prepared for N = 16, to `out`. Grid: any number of
// blocks; 256 threads.

extern "C" __global__ void __launch_bounds__(lwe::GEMV_THREADS, 2)
lwe_fold_gemv_1(const uint8_t* db, const uint8_t* queries, uint32_t* out, lwe::FoldShape shape) {
    lwe::fold_gemv<1>(db, queries, out, shape);
}
HUSH_KERNEL(lwe_fold_gemv_1)

extern "C" __global__ void __launch_bounds__(lwe::GEMV_THREADS, 2)
lwe_fold_gemv_2(const uint8_t* db, const uint8_t* queries, uint32_t* out, lwe::FoldShape shape) {
    lwe::fold_gemv<2>(db, queries, out, shape);
}
HUSH_KERNEL(lwe_fold_gemv_2)
