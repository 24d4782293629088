// The terms from which the entries of a plane are folded: c_k = sum_j X^(-2N j k / T) entry_j for k < T, coefficients.
//
// This is a Fourier transform whose root of unity is a power of X, so its factors are rotations. It has passes of radix R <= 8,
// from [j] to [k] (Stockham: no bit reversal). A pass has `done`, the product of the radices before it, and length = T / done. For
// every u = q + done j2 < T / R (q < done), it computes from the polynomials u + j1 T / R, j1 < R, the polynomials
//     q + done (R j2 + k1) = X^(-2N / length j2 k1) sum_j1 Y^(-j1 k1) (polynomial u + j1 T / R),   Y = X^(2N / R).
// In Z_p[X]/(X^N + 1), Y^(R/2) = -1 and Y moves a coefficient by 2N / R. So the R / 2 coefficients of R polynomials at this
// distance are transformed independently of all others. They are in the registers of one thread, where a product with Y^-1 only
// renames a word.
#include "lift_fraction.cuh"
#include "pack.cuh"

constexpr uint32_t LIMBS = 2;
constexpr uint32_t THREADS = 128;

// A kernel argument by value. Mirrored by `TermsPass` in src/column/terms.rs.
struct TermsPass {
    uint32_t terms, done, radix; // T; 1 in the first pass; R: 8, 4, 2, or 1 if T is 1
    uint32_t degree;             // N
};
static_assert(sizeof(TermsPass) == 16, "the layout of TermsPass");

namespace {

// The number of coefficients of a polynomial that a thread has.
template <uint32_t R>
constexpr uint32_t PART = R < 4 ? 1 : R / 2;

// Transforms x over j, with results in bit-reversed order. x[j][m] is coefficient m of polynomial j, and Y^PART = -1.
template <uint32_t R>
HUSH_DEVICE void transform(uint32_t (&x)[R][PART<R>], uint32_t p) {
    constexpr uint32_t M = PART<R>;
#pragma unroll
    for (uint32_t length = R; length > 1; length /= 2) {
#pragma unroll
        for (uint32_t index = 0; index < R / 2; index++) {
            const uint32_t j = index % (length / 2), low = index / (length / 2) * length + j, high = low + length / 2;
            uint32_t u[M], v[M];
#pragma unroll
            for (uint32_t m = 0; m < M; m++) u[m] = x[low][m], v[m] = x[high][m];
#pragma unroll
            for (uint32_t m = 0; m < M; m++) {
                // x[high] = Y^-moved (u - v)
                const uint32_t moved = m + j * (R / length), from = moved % M;
                x[low][m] = add_mod(u[m], v[m], p);
                x[high][m] = moved < M ? sub_mod(u[from], v[from], p) : sub_mod(v[from], u[from], p);
            }
        }
    }
}

// Returns the index with its log2 R bits reversed.
template <uint32_t R>
HUSH_DEVICE uint32_t reversed(uint32_t index) {
    uint32_t result = 0;
#pragma unroll
    for (uint32_t bit = 1; bit < R; bit *= 2) result += index & bit ? R / 2 / bit : 0;
    return result;
}

// The work of a thread: coefficients `first` + m N / PART of the polynomials u + j1 T / R, modulo one prime.
struct Place {
    uint32_t u, limb, first;
};

// Runs a pass over one plane. `out` is [k][limb][N], and value(place, j, i) returns coefficient i of polynomial j.
template <uint32_t R, class Value>
HUSH_DEVICE void transform_part(uint32_t* out, const TermsPass& pass, const RingView& ring, const Value& value) {
    constexpr uint32_t M = PART<R>;
    const uint32_t n = pass.degree, apart = n / M, index = blockIdx.x * THREADS + threadIdx.x;
    const Place at = {index / apart / LIMBS, index / apart % LIMBS, index % apart};
    if (at.u >= pass.terms / R) return;
    const uint32_t p = ring.primes[at.limb].p;
    uint32_t x[R][M];
#pragma unroll
    for (uint32_t j = 0; j < R; j++) {
#pragma unroll
        for (uint32_t m = 0; m < M; m++) x[j][m] = value(at, at.u + j * (pass.terms / R), at.first + m * apart);
    }
    if constexpr (R > 1) transform<R>(x, p);
    const uint32_t q = at.u % pass.done, j2 = at.u / pass.done, step = 2 * n / (pass.terms / pass.done) * j2;
#pragma unroll
    for (uint32_t j = 0; j < R; j++) {
        const uint32_t k1 = reversed<R>(j), moved = step * k1;
        uint32_t* const term = out + (size_t(q + pass.done * (R * j2 + k1)) * LIMBS + at.limb) * n;
#pragma unroll
        for (uint32_t m = 0; m < M; m++) {
            // X^(2N) = 1, X^N = -1.
            const uint32_t to = (at.first + m * apart - moved) % (2 * n);
            term[to % n] = to < n ? x[j][m] : neg_mod(x[j][m], p);
        }
    }
}

template <class Value>
HUSH_DEVICE void transform_terms(uint32_t* out, const TermsPass& pass, const RingView& ring, const Value& value) {
    switch (pass.radix) {
    case 1: return transform_part<1>(out, pass, ring, value);
    case 2: return transform_part<2>(out, pass, ring, value);
    case 4: return transform_part<4>(out, pass, ring, value);
    case 8: return transform_part<8>(out, pass, ring, value);
    }
}

} // namespace

// Runs a pass over polynomials, [unit][j][limb][N]. Block (part, unit), 128 threads of T / R x limbs x N / PART.
extern "C" __global__ void __launch_bounds__(THREADS)
    power_terms(uint32_t* out, const uint32_t* in, TermsPass pass, RingView ring) {
    const size_t unit = size_t(blockIdx.y) * pass.terms * LIMBS * pass.degree;
    transform_terms(out + unit, pass, ring, [&](Place at, uint32_t j, uint32_t i) {
        return in[unit + (size_t(j) * LIMBS + at.limb) * pass.degree + i];
    });
}
HUSH_KERNEL(power_terms)

// Runs the first pass over packed words [query][row], which are lifted. Unit first_unit + blockIdx.y is plane unit % planes of
// query unit / planes. The blocks are those of power_terms.
extern "C" __global__ void __launch_bounds__(THREADS)
    power_terms_lift(uint32_t* out, const uint32_t* words, uint32_t first_unit, PackColumns shape, TermsPass pass,
                     FractionLift lift, RingView ring) {
    const uint32_t unit = first_unit + blockIdx.y, plane = unit % shape.planes;
    const uint32_t* const query = words + size_t(unit / shape.planes) * shape.rows;
    uint32_t* const to = out + size_t(blockIdx.y) * pass.terms * LIMBS * pass.degree;
    transform_terms(to, pass, ring, [&](Place at, uint32_t entry, uint32_t i) {
        // Entries beyond the last one have no rows.
        const PlaintextRows range = plaintext_rows(shape, entry * shape.planes + plane);
        const uint32_t word = i < range.count ? query[range.start + i] : 0;
        return lift_fraction(word, lift, ring.primes[at.limb], at.limb);
    });
}
HUSH_KERNEL(power_terms_lift)
