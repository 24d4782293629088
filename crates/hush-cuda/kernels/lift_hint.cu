// The kernel `lift_hint`: a hint, rows of n words, as polynomials. The coefficients of polynomial i of a column are the words i of
// the column's rows. Other kernels then round and transform them (ntt_db.cu) and tile them (ntt_tiles.cu).
#include "pack.cuh"
#include "transpose.cuh"

// Writes the coefficients of polynomials first_poly .. first_poly + polys of all columns, `[poly][column][coefficient]`, as words.
// Coefficients without a row are zeros. One block transposes a square of 32 rows and 32 polynomials.
//
// Grid: [N / 32 rounded up, polynomials / 32 rounded up, columns].
extern "C" __global__ void __launch_bounds__(SQUARE_THREADS)
    lift_hint(uint32_t* out, const uint32_t* hint, PackColumns shape, uint32_t n, uint32_t first_poly, uint32_t polys) {
    uint32_t column = blockIdx.z, columns = gridDim.z;
    uint32_t first_coefficient = blockIdx.x * SQUARE, first = blockIdx.y * SQUARE;
    PlaintextRows rows = plaintext_rows(shape, column);
    auto load = [&](uint32_t line, uint32_t lane) -> uint32_t {
        uint32_t coefficient = first_coefficient + line, poly = first + lane;
        if (coefficient >= rows.count || poly >= polys) return 0;
        uint64_t row = rows.start - shape.first_row + coefficient;
        return hint[row * n + first_poly + poly];
    };
    auto store = [&](uint32_t line, uint32_t lane, uint32_t word) {
        uint32_t poly = first + line, coefficient = first_coefficient + lane;
        if (poly >= polys || coefficient >= shape.degree) return;
        out[(uint64_t(poly) * columns + column) * shape.degree + coefficient] = word;
    };
    transpose_square(load, store);
}
HUSH_KERNEL(lift_hint)
