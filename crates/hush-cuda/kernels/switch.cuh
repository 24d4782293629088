// Coefficients modulo Q, a product of up to four primes, to powers of two: round(x 2^bits / Q) mod 2^bits, half up,
// exactly as hush_he::algorithms::switch_to_power_of_two.
//
// With x = v_0 + v_1 p_0 + v_2 p_0 p_1 + ... in the mixed radix of the primes, the roundings
//     r_j = floor(2^bits (x mod p_0 ... p_j) / (p_0 ... p_j) + 1/2)
// follow from each other: r_j = floor((2^bits v_j + (p_j - 1) / 2 + r_(j-1)) / p_j), since p_j is odd and a floor of a
// floor is one floor. Subtracting the remainder modulo p_j makes the division exact. Modulo 2^64, an exact division is a product
// with the inverse of p_j.
#pragma once

#include "ntt.cuh"

// Constants of a base of primes; a kernel argument by value. Mirrored by `MixedRadix` in src/ring/tables/mod.rs.
struct MixedRadix {
    // Row j gives v_j 2^32: the sum of v_i factors[j][i] (i < j) and x_j factors[j][j]. Row 0 is not used: v_0 = x_0.
    uint32_t factors[MAX_LIMBS][MAX_LIMBS];
    uint64_t inverse[MAX_LIMBS]; // p_j^-1 mod 2^64
};
static_assert(sizeof(MixedRadix) == 96 && offsetof(MixedRadix, inverse) == 64, "the layout of MixedRadix");

// Returns the digit v_j. The sum is below p_j (p_0 + ... + p_j) <= 2^33 p_j, for primes below 2^31.
template <class P>
HUSH_DEVICE uint32_t mixed_digit(const uint32_t* digits, uint32_t residue, uint32_t j, const P& prime,
                                 const MixedRadix& radix) {
    uint64_t sum = 0;
    add_product(sum, residue, radix.factors[j][j], prime.p);
    for (uint32_t i = 0; i < j; i++) add_product(sum, digits[i], radix.factors[j][i], prime.p);
    return mont_reduce_sum(sum, prime);
}

// Returns 2^bits modulo p, in Montgomery form, for bits < 64.
template <class P>
HUSH_DEVICE uint32_t montgomery_power_of_two(uint32_t bits, const P& prime) {
    return mont_mul(reduce_64(uint64_t(1) << bits, prime), prime.r2, prime);
}

// Switches a coefficient, given by its canonical residues, to a number below 2^bits, for bits of 1 to 48. powers[j] is
// montgomery_power_of_two(bits, primes[j]).
template <uint32_t LIMBS, class P>
HUSH_DEVICE uint64_t switch_to_power_of_two(const uint32_t (&residues)[LIMBS], const P* primes,
                                            const MixedRadix& radix, const uint32_t (&powers)[LIMBS], uint32_t bits) {
    uint32_t digits[LIMBS];
    uint64_t rounded = 0;
#pragma unroll
    for (uint32_t j = 0; j < LIMBS; j++) {
        const P prime = primes[j];
        digits[j] = j == 0 ? residues[0] : mixed_digit(digits, residues[j], j, prime, radix);
        uint64_t addend = rounded + value_of(prime.p) / 2;
        // Below p 2^31 + 2^32 p + 2^17 p <= 2^33 p, for primes below 2^31.
        uint64_t sum = 0;
        add_product(sum, digits[j], powers[j], prime.p);
        add_product(sum, uint32_t(addend), prime.r1, prime.p);
        add_product(sum, uint32_t(addend >> 32), prime.r2, prime.p);
        uint32_t rest = mont_reduce_sum(sum, prime);
        rounded = ((uint64_t(digits[j]) << bits) + addend - rest) * radix.inverse[j];
    }
    return rounded & ((uint64_t(1) << bits) - 1);
}

// Returns the part of switch_poly's shared memory that keeps the residues of a limb.
template <int LOG>
HUSH_DEVICE uint32_t* switch_stash(uint32_t* shared, uint32_t limb) {
    return shared + (size_t(limb + 1) << LOG);
}

// Switches like switch_poly, after the transforms. x has the residues modulo the last prime, and the stash the others.
template <int LOG, uint32_t LIMBS, class P, class Sink>
HUSH_DEVICE void switch_coefficients(const uint32_t (&x)[NTT_WORDS], const RingOf<P>& ring, const MixedRadix& radix,
                                     uint32_t bits, uint32_t* shared, const Sink& sink) {
    uint32_t powers[LIMBS];
#pragma unroll
    for (uint32_t limb = 0; limb < LIMBS; limb++) powers[limb] = montgomery_power_of_two(bits, ring.primes[limb]);
#pragma unroll
    for (uint32_t i = 0; i < NTT_WORDS; i++) {
        const uint32_t at = threadIdx.x + i * NTT_THREADS<LOG>;
        uint32_t residues[LIMBS];
#pragma unroll
        for (uint32_t limb = 0; limb + 1 < LIMBS; limb++) residues[limb] = switch_stash<LOG>(shared, limb)[at];
        residues[LIMBS - 1] = x[i];
        sink(at, switch_to_power_of_two<LIMBS>(residues, ring.primes, radix, powers, bits));
    }
}

// Switches one polynomial in evaluation form with a block of NTT_THREADS<LOG> threads and limbs x N words of shared memory.
// `load(x, limb)` loads the canonical slots of the calling thread (ntt.cuh) to x. `sink(coefficient, value)` takes each result
// once; it may write the words `coefficient` and `N + coefficient` of `shared`.
template <int LOG, class P, class Load, class Sink>
HUSH_DEVICE void switch_poly(const RingOf<P>& ring, const MixedRadix& radix, uint32_t bits, uint32_t* shared,
                             const Load& load, const Sink& sink) {
    uint32_t x[NTT_WORDS];
    for (uint32_t limb = 0; limb < ring.limbs; limb++) {
        load(x, limb);
        ntt_inverse<LOG>(x, shared, ring, limb, threadIdx.x);
        // Each thread reads only its own writes: no barrier is needed.
        if (limb + 1 < ring.limbs) store_coefficients<LOG>(switch_stash<LOG>(shared, limb), x, threadIdx.x);
    }
    // All threads have read the first N words, which the last transform wrote.
    __syncthreads();
    for_limbs(ring, [&](auto limbs) {
        switch_coefficients<LOG, decltype(limbs)::value>(x, ring, radix, bits, shared, sink);
    });
}
