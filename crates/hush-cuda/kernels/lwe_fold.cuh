// The common part of a fold's kernels: the shape, the split of the work, and how sums are added to the result.
//
// out[query][row] += sum over columns of db[row][column] * query[column] modulo 2^32, with the four bytes of a query
// word as four columns of a byte matrix: sum = sum over j of 2^8j (db * bytes_j). Accumulators of 32 bits wrap, and
// lose a multiple of 2^32, so the result is exact for any number of columns.
//
// A unit of work is a row block (the rows that a block has accumulators for) times a k tile. Units are counted row block after row
// block. Every block of the grid takes a run of units, and the lengths of two runs differ by at most one. A block adds its sums to
// the result wherever a row block ends in its run: addition modulo 2^32 is exact in any order.
#pragma once
#include "lwe_tiles.cuh"

namespace lwe {

// The shape of a fold, mirrored by FoldShape in src/lwe/fold.rs.
struct FoldShape {
    uint64_t query_stride; // words from a query's result to the next query's
    uint64_t row_stride;   // words from a row's result to the next row's
    uint32_t rows;         // rows that have a result
    uint32_t k_tiles;      // k tiles of the database
    uint32_t queries;      // queries that have a result, at most N / 4
    uint32_t reserved;
};
static_assert(sizeof(FoldShape) == 32 && offsetof(FoldShape, rows) == 16, "the layout of FoldShape");

// A run of units of work [next, end).
struct Units {
    uint32_t next, end;
};

// Returns the run of units of worker `worker` of `workers`.
HUSH_DEVICE Units units_of_worker(uint32_t worker, uint32_t workers, uint32_t row_blocks, uint32_t k_tiles) {
    uint32_t units = row_blocks * k_tiles, each = units / workers, more = units % workers;
    uint32_t next = worker * each + min(worker, more);
    return {next, next + each + (worker < more)};
}

// Returns the run of units of this block.
HUSH_DEVICE Units units_of_block(uint32_t row_blocks, uint32_t k_tiles) {
    return units_of_worker(blockIdx.x, gridDim.x, row_blocks, k_tiles);
}

HUSH_DEVICE bool has_units(const Units& units) {
    return units.next < units.end;
}

// A run of k tiles [k, k_end) of row block `row_block`.
struct Run {
    uint32_t row_block, k, k_end;
};

// Takes the units of one row block from the front of `units`, which are not empty.
HUSH_DEVICE Run take_run(Units& units, uint32_t k_tiles) {
    uint32_t row_block = units.next / k_tiles, k = units.next - row_block * k_tiles;
    uint32_t length = min(units.end - units.next, k_tiles - k);
    units.next += length;
    return {row_block, k, k + length};
}

// Adds accumulators of 16 rows (mma) or 64 (wgmma) x 2 R byte columns to the result. Register 4 g + 2 h + e of lane l is row
// l / 4 + 8 h of its warp, column 8 g + 2 (l % 4) + e. `row` is the lane's row for h = 0, and `query` its first query. Lane l has
// the queries l % 4, l % 4 + 4 and so on.
template <uint32_t R>
HUSH_DEVICE void add_sums(uint32_t* out, const FoldShape& shape, uint32_t row, uint32_t query,
                          const int32_t (&sums)[R]) {
    uint32_t* at = out + (query * shape.query_stride + row * shape.row_stride);
#pragma unroll
    for (uint32_t four = 0; four < R; four += 8, query += 4, at += 4 * shape.query_stride) {
#pragma unroll
        for (uint32_t half = 0; half < 2; half++) {
            const int32_t* bytes = sums + four + 2 * half;
            uint32_t low = bytes[0] + (uint32_t(bytes[1]) << 8);
            uint32_t high = bytes[4] + (uint32_t(bytes[5]) << 8);
            bool inside = query < shape.queries && row + 8 * half < shape.rows;
            if (inside) ptx::red_add(at + half * 8 * shape.row_stride, low + (high << 16));
        }
    }
}

} // namespace lwe
