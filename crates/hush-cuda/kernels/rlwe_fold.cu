// Transposition of the selectors and results of `rlwe_fold` between polynomials and points (rlwe_fold.cuh).
#include "rlwe_fold.cuh"
#include "transpose.cuh"

// Transposes the selectors `[row][a, b][point]` of each query to `[point][row tile][poly][32 rows]`, with zeros beyond the last
// row. One block transposes a square of 32 rows and 32 points of a polynomial.
//
// Grid: [points / 32 rounded up, row tiles, polys].
extern "C" __global__ void __launch_bounds__(SQUARE_THREADS)
    rlwe_fold_selectors(uint32_t* out, QueryPointers selectors, uint32_t rows, PassPoints points) {
    uint32_t first_point = blockIdx.x * SQUARE, row_tile = blockIdx.y, row_tiles = gridDim.y;
    uint32_t poly = blockIdx.z, polys = gridDim.z;
    const uint32_t* from = selectors.query[poly / RLWE_POLYS];
    auto load = [&](uint32_t line, uint32_t lane) -> uint32_t {
        uint32_t row = row_tile * TILE_ROWS + line, point = first_point + lane;
        if (row >= rows || point >= points.count) return 0;
        uint64_t from_poly = uint64_t(row) * RLWE_POLYS + poly % RLWE_POLYS;
        return from[from_poly * points.all + points.first + point];
    };
    auto store = [&](uint32_t line, uint32_t lane, uint32_t residue) {
        uint32_t point = first_point + line;
        if (point >= points.count) return;
        uint64_t to = (uint64_t(point) * row_tiles + row_tile) * polys + poly;
        out[to * TILE_ROWS + lane] = residue;
    };
    transpose_square(load, store);
}
HUSH_KERNEL(rlwe_fold_selectors)

// Transposes the sums `[point][poly][column]` to each query's ciphertexts `[column][a, b][point]`. One block transposes a square of
// 32 columns and 32 points of a polynomial. `padded` is the number of columns in the sums.
//
// Grid: [points / 32 rounded up, columns / 32 rounded up, polys].
extern "C" __global__ void __launch_bounds__(SQUARE_THREADS)
    rlwe_fold_results(QueryPointers out, const uint32_t* sums, uint32_t columns, uint32_t padded, PassPoints points) {
    uint32_t first_point = blockIdx.x * SQUARE, first_column = blockIdx.y * SQUARE;
    uint32_t poly = blockIdx.z, polys = gridDim.z;
    uint32_t* to = out.query[poly / RLWE_POLYS];
    auto load = [&](uint32_t line, uint32_t lane) -> uint32_t {
        uint32_t point = first_point + line, column = first_column + lane;
        if (point >= points.count || column >= columns) return 0;
        return sums[(uint64_t(point) * polys + poly) * padded + column];
    };
    auto store = [&](uint32_t line, uint32_t lane, uint32_t sum) {
        uint32_t column = first_column + line, point = first_point + lane;
        if (column >= columns || point >= points.count) return;
        uint64_t to_poly = uint64_t(column) * RLWE_POLYS + poly % RLWE_POLYS;
        to[to_poly * points.all + points.first + point] = sum;
    };
    transpose_square(load, store);
}
HUSH_KERNEL(rlwe_fold_results)
