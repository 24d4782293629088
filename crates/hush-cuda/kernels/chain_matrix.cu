// The matrices on both sides of the chain. ntt_forward and ntt_inverse transform their rows. A matrix is [hint][row][limb][N], with
// N rows.
#include "limb_pair.cuh"
#include "lift_fraction.cuh"
#include "transpose.cuh"

namespace {

// Returns the offset of a row.
HUSH_DEVICE size_t row_start(uint32_t degree, size_t hint, uint32_t row, uint32_t limb) {
    return ((hint * degree + row) * PAIR + limb) * degree;
}

} // namespace

// A hint, on the device.
struct Hint {
    const uint32_t* words; // rows x N
    uint64_t rows;         // at most N; further rows are zeros
};
static_assert(sizeof(Hint) == 16, "two words of 64 bits");

// Lifts the hints to residues divided by N, and transposes them: row j of the matrix is column j of the hint. Block (column of
// squares, row of squares, hint).
extern "C" __global__ void __launch_bounds__(SQUARE_THREADS)
    chain_lift(uint32_t* matrix, const Hint* hints, RingView ring, FractionLift lift) {
    const uint32_t n = ring.degree, first_column = blockIdx.x * SQUARE, first_row = blockIdx.y * SQUARE;
    const Hint hint = hints[blockIdx.z];
    const auto load = [&](uint32_t row, uint32_t column) {
        const uint32_t from = first_row + row;
        return from < hint.rows ? hint.words[size_t(from) * n + first_column + column] : 0;
    };
    transpose_square(load, [&](uint32_t row, uint32_t column, uint32_t word) {
        for (uint32_t limb = 0; limb < PAIR; limb++) {
            const size_t to = row_start(n, blockIdx.z, first_column + row, limb) + first_row + column;
            matrix[to] = lift_fraction(word, lift, ring.primes[limb], limb);
        }
    });
}
HUSH_KERNEL(chain_lift)

// Transposes a matrix. Block (column of squares, row of squares, hint and limb).
extern "C" __global__ void __launch_bounds__(SQUARE_THREADS)
    chain_transpose(uint32_t* out, const uint32_t* in, uint32_t degree) {
    const uint32_t first_column = blockIdx.x * SQUARE, first_row = blockIdx.y * SQUARE;
    const uint32_t hint = blockIdx.z / PAIR, limb = blockIdx.z % PAIR;
    const auto load = [&](uint32_t row, uint32_t column) {
        return in[row_start(degree, hint, first_row + row, limb) + first_column + column];
    };
    transpose_square(load, [&](uint32_t row, uint32_t column, uint32_t word) {
        out[row_start(degree, hint, first_column + row, limb) + first_row + column] = word;
    });
}
HUSH_KERNEL(chain_transpose)

// The constants of chain_join, which converts residues to the balanced digits of an entry: half a base is added for every digit,
// modulo Q. The sum, in 0..Q, is below 2^32 if and only if the centred entry has four digits. Its bytes are then these digits, each
// half a base too large. Mirrored by `EntryJoin` in src/column/views.rs.
struct EntryJoin {
    // The residues are of the entry divided by the factor. `factor` is its Montgomery form modulo p_0.
    uint32_t factor, halves;
    // factor / p_0, -1 / p_0, halves / p_0 modulo p_1; Montgomery forms.
    uint32_t next, minus, constant;
};
static_assert(sizeof(EntryJoin) == 20, "the layout of EntryJoin");

constexpr uint32_t BALANCED_HALVES = 0x80808080u;

// Writes the entries of the pack columns, transposed: words of four bytes [hint][row][N] from residues [hint][column][limb][row].
// misfits[0] becomes positive if an entry has more than four digits. Block (column of squares, row of squares, hint).
extern "C" __global__ void __launch_bounds__(SQUARE_THREADS)
    chain_join(uint32_t* columns, uint32_t* misfits, const uint32_t* matrix, RingView ring, EntryJoin join) {
    const uint32_t n = ring.degree, first_column = blockIdx.x * SQUARE, first_row = blockIdx.y * SQUARE;
    const Prime first = ring.primes[0], second = ring.primes[1];
    bool misfit = false;
    const auto load = [&](uint32_t row, uint32_t column) {
        const size_t from = row_start(n, blockIdx.z, first_row + row, 0) + first_column + column;
        const uint32_t low = add_mod(mont_mul(matrix[from], join.factor, first), join.halves, first.p);
        // Garner's algorithm; below p_1 (p_0 + p_1) + p_1, so below 2^33 p_1.
        const uint64_t sum = uint64_t(matrix[from + n]) * join.next + uint64_t(low) * join.minus + join.constant;
        const uint64_t value = uint64_t(mont_reduce_sum(sum, second)) * first.p + low;
        misfit |= value >> 32 != 0;
        return uint32_t(value) ^ BALANCED_HALVES;
    };
    transpose_square(load, [&](uint32_t row, uint32_t column, uint32_t word) {
        columns[(size_t(blockIdx.z) * n + first_column + row) * n + first_row + column] = word;
    });
    if (misfit) ptx::red_add(misfits, 1);
}
HUSH_KERNEL(chain_join)
