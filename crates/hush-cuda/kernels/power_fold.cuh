// Step (7h): folds the terms c_k of a plane to one ciphertext, by Horner's rule:
//     x = c_(T-1);  for k = T - 2, .., 0: x = power [x] x + c_k
// The T - 1 external products depend on each other, so the ciphertext stays in registers. One block computes it (power_fold.cu), or
// a cluster of two blocks, a half of the ciphertext each (power_fold_hopper.cu). Planes and queries run in parallel.
#pragma once
#include "limb_pair.cuh"

// The addresses of the operands of all planes. Mirrored by `PowerFold` in src/column/rgsw_power_fold.rs.
struct PowerFold {
    uint32_t* out;          // [unit][a, b][limb][slot]
    const uint32_t* masks;  // [plane][k][limb][coefficient]: the halves a of all terms
    const uint32_t* bodies; // [unit][k][limb][coefficient]: the halves b
    // The rows of the RGSW ciphertexts: row 0 is for the digit of a, row 1 for the digit of b.
    const uint32_t* power_masks;  // [row][limb][slot]: the halves a, shared by all queries
    const uint32_t* power_bodies; // [query][row][limb][slot]: the halves b
    uint32_t terms, planes; // T; unit = query planes + plane
    uint32_t first_unit;    // of the first block or cluster; `bodies` begins with it
    uint32_t reserved;
};
static_assert(sizeof(PowerFold) == 56, "the layout of PowerFold");

// Replaces x, a half of the ciphertext in coefficients, by the same half of power [x] x, in neighbours:
//     x = digits(x) own_row + digits(other half) other_row
// Other threads have the same slots of the other half. `exchange.give(x)` sends them the digits of this thread, and then take(v)
// returns four of theirs. `own_row` and `other_row` are the words of this thread. `residues` is [limb][N].
template <int LOG, class Exchange>
HUSH_DEVICE void multiply_by_power(uint32_t (&x)[NTT_WORDS], const uint4* own_row, const uint4* other_row,
                                   uint32_t* transform, uint32_t* residues, const RingView& ring,
                                   const GadgetView& gadget, PairThread at, Exchange& exchange) {
    take_digit<LOG>(x, residues, ring, gadget, at);
    ntt_forward_neighbours<LOG>(x, transform, ring, at.limb, at.thread);
    exchange.give(x);
    const Prime prime = ring.primes[at.limb];
#pragma unroll
    for (uint32_t v = 0; v < NTT_WORDS / 4; v++) {
        const uint4 other = exchange.take(v), r = __ldg(own_row + v), s = __ldg(other_row + v);
        x[4 * v] = reduce_64(uint64_t(x[4 * v]) * r.x + uint64_t(other.x) * s.x, prime);
        x[4 * v + 1] = reduce_64(uint64_t(x[4 * v + 1]) * r.y + uint64_t(other.y) * s.y, prime);
        x[4 * v + 2] = reduce_64(uint64_t(x[4 * v + 2]) * r.z + uint64_t(other.z) * s.z, prime);
        x[4 * v + 3] = reduce_64(uint64_t(x[4 * v + 3]) * r.w + uint64_t(other.w) * s.w, prime);
    }
}

// Adds: x += c.
template <int LOG>
HUSH_DEVICE void add_coefficients(uint32_t (&x)[NTT_WORDS], const uint32_t (&c)[NTT_WORDS], uint32_t p) {
#pragma unroll
    for (uint32_t i = 0; i < NTT_WORDS; i++) x[i] = add_mod(x[i], c[i], p);
}

// Folds plane `index` of the launch, in the threads of half `half` of the ciphertext: 0 for a, 1 for b.
template <int LOG, class Exchange>
HUSH_DEVICE void fold_terms(const PowerFold& fold, const RingView& ring, const GadgetView& gadget, uint32_t index,
                            uint32_t half, PairThread at, uint32_t* transform, uint32_t* residues, Exchange& exchange) {
    constexpr uint32_t N = 1 << LOG;
    const uint32_t unit = fold.first_unit + index, p = ring.primes[at.limb].p;
    const size_t plane_words = size_t(fold.terms) * PAIR_WORDS<LOG>;
    const uint32_t* const halves =
        half == 0 ? fold.masks + unit % fold.planes * plane_words : fold.bodies + index * plane_words;
    const uint32_t* const terms = halves + at.limb * N;
    const size_t place = half * PAIR_WORDS<LOG> + at.limb * N; // the offset of this half and limb in a ciphertext

    const size_t query = unit / fold.planes;
    const uint32_t* const powers = half == 0 ? fold.power_masks : fold.power_bodies + query * 2 * PAIR_WORDS<LOG>;
    const uint4* const rows = reinterpret_cast<const uint4*>(powers + at.limb * N) + at.thread * (NTT_WORDS / 4);
    const uint4* const own_row = rows + half * (PAIR_WORDS<LOG> / 4);
    const uint4* const other_row = rows + (1 - half) * (PAIR_WORDS<LOG> / 4);

    uint32_t x[NTT_WORDS] = {}, term[NTT_WORDS];
    for (uint32_t k = fold.terms - 1; k > 0; k--) {
        load_coefficients<LOG>(term, terms + size_t(k) * PAIR_WORDS<LOG>, at.thread);
        if (k + 1 < fold.terms) ntt_inverse_neighbours<LOG>(x, transform, ring, at.limb, at.thread);
        add_coefficients<LOG>(x, term, p);
        multiply_by_power<LOG>(x, own_row, other_row, transform, residues, ring, gadget, at, exchange);
    }
    load_coefficients<LOG>(term, terms, at.thread);
    ntt_forward_neighbours<LOG>(term, transform, ring, at.limb, at.thread);
    add_coefficients<LOG>(x, term, p);
    store_neighbours(fold.out + size_t(unit) * 2 * PAIR_WORDS<LOG> + place, x, at.thread);
}
