// Gadget digits of polynomials modulo Q, a product of up to four primes: as hush_math::gadget and
// hush_he::algorithms::decompose.
//
// With h = (Q - 1) / 2, x + h is in [0, Q) for a centred x, and x + Gadget::offset has the digits as its bits, each of them half a
// base too large:
//     1. add h to the residues of x;
//     2. compute the digits of x + h in mixed radix, by Garner's algorithm;
//     3. join them to a number by Horner's rule, from the last digit on, and add offset - h;
//     4. cut the gadget digits out of its bits, and subtract half a base modulo each prime.
// No number has a sign before step 4. The number of step 3 has a word of 32 bits for each prime (two for one prime), and no gadget
// digit lies in more than two words.
//
// Stages: a kernel of a whole stage decomposes polynomials and multiplies their digits in one block. Its shared memory has N words
// for the transform of gadget_product, then all digits. If the residues of the last polynomial are more words than its digits,
// there is room for them instead (GadgetTables::stage_polys in src/ring/tables/gadget.rs).
#pragma once

#include <type_traits>

#include "ntt.cuh"

// A gadget for one base of primes; a kernel argument by value. Mirrored by `GadgetView` in
// src/ring/tables/gadget.rs.
struct GadgetView {
    uint32_t digits, width; // l digits of `width` bits
    uint32_t dropped;       // low bits that are rounded away
    uint32_t first;         // h mod p_0
    // Row j gives v_j, the digit of mixed radix modulo p_j: the sum of v_i factors[j][i] (i < j), r_j factors[j][j] and
    // constants[j] is v_j 2^32.
    uint32_t factors[MAX_LIMBS][MAX_LIMBS];
    uint32_t constants[MAX_LIMBS];
    uint32_t offset[MAX_LIMBS]; // offset - h, which is not negative
};
static_assert(sizeof(GadgetView) == 112 && offsetof(GadgetView, factors) == 16, "the layout of GadgetView");

// Returns word i of four.
HUSH_DEVICE uint32_t word(uint4 words, uint32_t i) {
    return i == 0 ? words.x : i == 1 ? words.y : i == 2 ? words.z : words.w;
}

// The number x + offset, lowest word first.
template <uint32_t LIMBS>
struct Shifted {
    static constexpr uint32_t WORDS = LIMBS < 2 ? 2 : LIMBS;
    uint32_t words[WORDS];
};

// Adds a product like add_product, by a loop-invariant factor: below 2^31 as one instruction (see ptx::multiply_add_wide).
HUSH_DEVICE void add_constant_product(uint64_t& sum, uint32_t a, uint32_t factor, uint32_t) {
    sum = ptx::multiply_add_wide(a, factor, sum);
}

HUSH_DEVICE void add_constant_product(uint64_t& sum, uint32_t a, uint32_t factor, WideModulus p) {
    add_product(sum, a, factor, p);
}

// Returns x + offset for the centred x with the given residues: steps 1 to 3 above.
//
// Below 2^31, the sums of products are below p_j (p_0 + ... + p_j) + p_j <= 2^33 p_j; above, they stay below 2^32 p_j. In
// Horner's rule, a product of two words and two more words fit 64 bits, so primes may have all 32 bits.
template <uint32_t LIMBS, class P>
HUSH_DEVICE Shifted<LIMBS> shifted_value(const uint32_t (&residues)[LIMBS], const P* primes,
                                         const GadgetView& gadget) {
    uint32_t mixed[LIMBS];
    mixed[0] = add_mod(residues[0], gadget.first, primes[0].p);
#pragma unroll
    for (uint32_t j = 1; j < LIMBS; j++) {
        uint64_t sum = gadget.constants[j];
        add_constant_product(sum, residues[j], gadget.factors[j][j], primes[j].p);
#pragma unroll
        for (uint32_t i = 0; i < j; i++) add_constant_product(sum, mixed[i], gadget.factors[j][i], primes[j].p);
        mixed[j] = mont_reduce_sum(sum, primes[j]);
    }
    Shifted<LIMBS> value = {};
    value.words[0] = mixed[LIMBS - 1];
#pragma unroll
    for (uint32_t j = LIMBS - 1; j-- > 0;) {
        uint64_t carry = mixed[j];
#pragma unroll
        for (uint32_t i = 0; i + 1 < LIMBS - j; i++) {
            // The offset goes along with the last of the products.
            if (j == 0) carry += gadget.offset[i];
            carry = ptx::multiply_add_wide(value.words[i], value_of(primes[j].p), carry);
            value.words[i] = uint32_t(carry);
            carry >>= 32;
        }
        value.words[LIMBS - 1 - j] = uint32_t(carry);
    }
    if constexpr (LIMBS == 1) {
        const uint64_t sum = uint64_t(value.words[0]) + gadget.offset[0];
        value.words[0] = uint32_t(sum);
        value.words[1] = uint32_t(sum >> 32) + gadget.offset[1];
    } else {
        value.words[LIMBS - 1] += gadget.offset[LIMBS - 1];
    }
    return value;
}

// Extracts one digit plus half a base from each value x + offset. The digit begins `at` bits above word FIRST. Its bits lie in word
// FIRST and the next, or in later words.
template <uint32_t FIRST = 0, uint32_t LIMBS, uint32_t COUNT>
HUSH_DEVICE void shifted_digits(uint32_t (&digits)[COUNT], const Shifted<LIMBS> (&values)[COUNT], uint32_t at,
                                const GadgetView& gadget) {
    if constexpr (FIRST + 2 < Shifted<LIMBS>::WORDS) {
        if (at + gadget.width > 64) return shifted_digits<FIRST + 1>(digits, values, at - 32, gadget);
    }
#pragma unroll
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint64_t words = uint64_t(values[i].words[FIRST + 1]) << 32 | values[i].words[FIRST];
        digits[i] = uint32_t(words >> at) & ((1u << gadget.width) - 1);
    }
}

// Returns a digit modulo p, from a digit plus half a base. The base is at most p.
template <class Modulus>
HUSH_DEVICE uint32_t digit_residue(uint32_t shifted, const GadgetView& gadget, Modulus p) {
    return sub_mod(shifted, 1u << (gadget.width - 1), p);
}

// Stores the digits of all coefficients, [digit][coefficient], from the residues in `shared`, [limb][coefficient].
template <uint32_t LIMBS, class P>
HUSH_DEVICE void store_digits_of(uint32_t* digits, const uint32_t* shared, const RingOf<P>& ring,
                                 const GadgetView& gadget) {
    const uint32_t vectors = ring.degree / 4;
    for (uint32_t vector = threadIdx.x; vector < vectors; vector += blockDim.x) {
        uint4 words[LIMBS];
        for (uint32_t limb = 0; limb < LIMBS; limb++) {
            words[limb] = reinterpret_cast<const uint4*>(shared)[limb * vectors + vector];
        }
        Shifted<LIMBS> values[4];
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t residues[LIMBS];
            for (uint32_t limb = 0; limb < LIMBS; limb++) residues[limb] = word(words[limb], i);
            values[i] = shifted_value<LIMBS>(residues, ring.primes, gadget);
        }
#pragma unroll 1
        for (uint32_t k = 0, at = gadget.dropped; k < gadget.digits; k++, at += gadget.width) {
            uint32_t four[4];
            shifted_digits(four, values, at, gadget);
            reinterpret_cast<uint4*>(digits)[k * vectors + vector] = make_uint4(four[0], four[1], four[2], four[3]);
        }
    }
}

template <class P>
HUSH_DEVICE void store_digits(uint32_t* digits, const uint32_t* shared, const RingOf<P>& ring,
                              const GadgetView& gadget) {
    for_limbs(ring, [&](auto limbs) { store_digits_of<decltype(limbs)::value>(digits, shared, ring, gadget); });
}

// Stores the residues of all coefficients of a polynomial in `shared`, [limb][coefficient].
template <int LOG, class P, class Load>
HUSH_DEVICE void store_residues(uint32_t* shared, const RingOf<P>& ring, const Load& load) {
    // The transforms use the memory of the last limb's residues.
    uint32_t* transform = shared + (size_t(ring.limbs - 1) << LOG);
    for (uint32_t limb = 0; limb < ring.limbs; limb++) {
        uint32_t x[NTT_WORDS];
        load(std::integral_constant<int, LOG>(), x, limb);
        ntt_inverse<LOG>(x, transform, ring, limb, threadIdx.x);
        if (limb + 1 == ring.limbs) __syncthreads();
        store_coefficients<LOG>(shared + (size_t(limb) << LOG), x, threadIdx.x);
    }
}

// Decomposes one polynomial with a block of N / 16 threads. `load(log_degree, x, limb)` loads the slots of the calling thread
// (ntt.cuh) to x. `digits` becomes [k][coefficient], each digit half a base too large. `shared` is limbs x N words. It may be the
// memory of `digits`, since a thread writes only where it alone has read.
template <int LOG, class P, class Load>
HUSH_DEVICE void decompose_at(uint32_t* digits, const RingOf<P>& ring, const GadgetView& gadget, uint32_t* shared,
                              const Load& load) {
    store_residues<LOG>(shared, ring, load);
    __syncthreads();
    store_digits(digits, shared, ring, gadget);
}

// Decomposes like decompose_at, at any degree.
template <class P, class Load>
HUSH_DEVICE void decompose(uint32_t* digits, const RingOf<P>& ring, const GadgetView& gadget, uint32_t* shared,
                           const Load& load) {
    for_degree(ring, [&](auto log_degree) { store_residues<decltype(log_degree)::value>(shared, ring, load); });
    __syncthreads();
    store_digits(digits, shared, ring, gadget);
}

// Returns the number of words of a polynomial with all its limbs.
template <class P>
HUSH_DEVICE size_t poly_words(const RingOf<P>& ring) {
    return size_t(ring.limbs) * ring.degree;
}

// Loads four slots of a limb, 4 vector .. 4 vector + 3. The kernel must not change them.
HUSH_DEVICE uint4 load_vector(const uint32_t* limb, uint32_t vector) {
    return __ldg(reinterpret_cast<const uint4*>(limb) + vector);
}

HUSH_DEVICE uint4 zero_vector() {
    return make_uint4(0, 0, 0, 0);
}

HUSH_DEVICE void store_vector(uint32_t* limb, uint32_t vector, uint4 words) {
    reinterpret_cast<uint4*>(limb)[vector] = words;
}

// Adds products of four slots: sums += x row.
template <class Modulus>
HUSH_DEVICE void add_products(uint64_t* sums, const uint32_t* x, uint4 row, Modulus p) {
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) add_product(sums[i], x[i], word(row, i), p);
}

// Adds products of digits and key rows to polynomials, modulo one limb, with a block of N / 16 threads:
//     out[poly] = given[poly] + sum over k < rows of NTT(digits[k]) keys[k][poly]
// `digits(k)` points to the coefficients of row k as decompose stores them; it is called once for each k, in order. `keys` is
// [row][poly][limb][slot]. `source(poly, vector)` returns the given slots 4 vector .. 4 vector + 3, and `sink(poly, vector, sums)`
// takes their canonical sums. `shared` is N words. For primes below 2^31, a residue plus `rows` products of residues must be below
// 2^64.
template <int LOG, uint32_t POLYS, class P, class Digits, class Source, class Sink>
HUSH_DEVICE void gadget_product_at(Digits digits, const uint32_t* keys, uint32_t rows, uint32_t limb,
                                   const RingOf<P>& ring, const GadgetView& gadget, uint32_t* shared,
                                   const Source& source, const Sink& sink) {
    const P prime = ring.primes[limb];
    uint64_t sums[POLYS][NTT_WORDS];
#pragma unroll
    for (uint32_t poly = 0; poly < POLYS; poly++) {
#pragma unroll
        for (uint32_t j = 0; j < NTT_WORDS / 4; j++) {
            const uint4 given = source(poly, threadIdx.x + j * NTT_THREADS<LOG>);
#pragma unroll
            for (uint32_t k = 0; k < 4; k++) sums[poly][4 * j + k] = word(given, k);
        }
    }
    const uint32_t* row = keys + (size_t(limb) << LOG) + 4 * threadIdx.x;
#pragma unroll 1
    for (uint32_t k = 0; k < rows; k++) {
        uint32_t x[NTT_WORDS];
        load_coefficients<LOG>(x, digits(k), threadIdx.x);
#pragma unroll
        for (uint32_t i = 0; i < NTT_WORDS; i++) x[i] = digit_residue(x[i], gadget, prime.p);
        ntt_forward<LOG>(x, shared, ring, limb, threadIdx.x);
#pragma unroll
        for (uint32_t poly = 0; poly < POLYS; poly++, row += poly_words(ring)) {
#pragma unroll
            for (uint32_t j = 0; j < NTT_WORDS / 4; j++) {
                add_products(sums[poly] + 4 * j, x + 4 * j, load_vector(row, j * NTT_THREADS<LOG>), prime.p);
            }
        }
    }
#pragma unroll
    for (uint32_t poly = 0; poly < POLYS; poly++) {
#pragma unroll
        for (uint32_t j = 0; j < NTT_WORDS / 4; j++) {
            const uint64_t* sum = sums[poly] + 4 * j;
            sink(poly, threadIdx.x + j * NTT_THREADS<LOG>,
                 make_uint4(reduce_sum(sum[0], prime), reduce_sum(sum[1], prime), reduce_sum(sum[2], prime),
                            reduce_sum(sum[3], prime)));
        }
    }
}

// The digits of gadget_product_at, read in order: the kernel computes no address.
template <int LOG>
struct InTurn {
    const uint32_t* next;

    HUSH_DEVICE const uint32_t* operator()(uint32_t) {
        const uint32_t* digits = next;
        next += 1u << LOG;
        return digits;
    }
};

// Multiplies like gadget_product_at, at any degree.
template <uint32_t POLYS, class P, class Source, class Sink>
HUSH_DEVICE void gadget_product(const uint32_t* digits, const uint32_t* keys, uint32_t rows, uint32_t limb,
                                const RingOf<P>& ring, const GadgetView& gadget, uint32_t* shared, const Source& source,
                                const Sink& sink) {
    for_degree(ring, [&](auto log_degree) {
        constexpr int LOG = decltype(log_degree)::value;
        auto row = [=](uint32_t k) { return digits + (k << LOG); };
        gadget_product_at<LOG, POLYS>(row, keys, rows, limb, ring, gadget, shared, source, sink);
    });
}
