// Arithmetic modulo odd primes below 2^31. Operands and results are canonical, in [0, p), unless a function says
// otherwise. Nothing branches on an operand: a conditional correction by p is an unsigned minimum, since the wrong
// candidate wraps around to a number that is larger.
//
// A modulus is a word here. Templates over the modulus or the prime also serve the moduli of wide_modular.cuh.
#pragma once

#include "prelude.cuh"

// A prime p < 2^31. The Montgomery form of x is x 2^32 mod p. Mirrored by `Prime` in src/ring/tables/mod.rs.
struct Prime {
    uint32_t p;
    uint32_t inv; // p^-1 mod 2^32
    uint32_t r1;  // 2^32 mod p: the Montgomery form of 1
    uint32_t r2;  // 2^64 mod p: mont_mul by it gives the Montgomery form
};

// Returns the modulus as a number.
HUSH_DEVICE uint32_t value_of(uint32_t p) {
    return p;
}

// Returns x mod p, for x in [0, 2p).
HUSH_DEVICE uint32_t fold_mod(uint32_t x, uint32_t p) {
    return min(x, x - p);
}

// Returns a + b mod p.
HUSH_DEVICE uint32_t add_mod(uint32_t a, uint32_t b, uint32_t p) {
    return fold_mod(a + b, p);
}

// Returns a - b mod p.
HUSH_DEVICE uint32_t sub_mod(uint32_t a, uint32_t b, uint32_t p) {
    uint32_t difference = a - b;
    return min(difference, difference + p);
}

// Returns -a mod p.
template <class Modulus>
HUSH_DEVICE uint32_t neg_mod(uint32_t a, Modulus p) {
    return sub_mod(0, a, p);
}

// Returns x 2^-32 mod p, for x < p 2^32.
template <class P>
HUSH_DEVICE uint32_t mont_reduce(uint64_t x, const P& prime) {
    uint32_t quotient = uint32_t(x) * prime.inv;
    return sub_mod(uint32_t(x >> 32), __umulhi(quotient, value_of(prime.p)), prime.p);
}

// Adds a product: sum += a b, for one factor below p and any other. The caller adds no more products than 64 bits hold.
HUSH_DEVICE void add_product(uint64_t& sum, uint32_t a, uint32_t b, uint32_t) {
    sum += uint64_t(a) * b;
}

// Returns x 2^-32 mod p, for x < p 2^33: the sum of two products, each of a factor below p and any word.
HUSH_DEVICE uint32_t mont_reduce_sum(uint64_t x, const Prime& prime) {
    uint32_t quotient = uint32_t(x) * prime.inv;
    uint32_t high = fold_mod(uint32_t(x >> 32), prime.p);
    return sub_mod(high, __umulhi(quotient, prime.p), prime.p);
}

// Returns a b 2^-32 mod p, for one factor below p and any other. If one is in Montgomery form, this is the plain product.
template <class P>
HUSH_DEVICE uint32_t mont_mul(uint32_t a, uint32_t b, const P& prime) {
    return mont_reduce(uint64_t(a) * b, prime);
}

// Returns x mod p, for any x.
HUSH_DEVICE uint32_t reduce_64(uint64_t x, const Prime& prime) {
    uint64_t low = uint64_t(uint32_t(x)) * prime.r1;
    uint64_t high = uint64_t(uint32_t(x >> 32)) * prime.r2;
    return mont_reduce_sum(low + high, prime);
}

// Returns x mod p, for a sum of products (add_product).
HUSH_DEVICE uint32_t reduce_sum(uint64_t x, const Prime& prime) {
    return reduce_64(x, prime);
}

// Returns x mod p, for any word x.
template <class P>
HUSH_DEVICE uint32_t reduce_32(uint32_t x, const P& prime) {
    return mont_mul(x, prime.r1, prime);
}

// Returns a w mod p, for any word a, w < p and w_shoup = floor(w 2^32 / p).
HUSH_DEVICE uint32_t shoup_mul(uint32_t a, uint32_t w, uint32_t w_shoup, uint32_t p) {
    return fold_mod(a * w - __umulhi(a, w_shoup) * p, p);
}

// Returns a w mod p, canonical, for any word a and a constant w. The constant is given as its Plantard factor: the low and the high
// half of (-w 2^64 mod p) p^-1 mod 2^64. Three multiplications and no correction: with c = -w 2^64 mod p, q the 64-bit product of a
// and the factor, and r = (p q - a c) / 2^64, which is an integer in [0, p),
//     (floor(q / 2^32) + 1) p / 2^32 = r + (a c + (2^32 - q mod 2^32) p) / 2^64,
// and the second term is in [0, 1) as long as p < 2^31.
//
// Source: Plantard, "Efficient word size modular arithmetic", IEEE TETC 2021.
HUSH_DEVICE uint32_t plantard_mul(uint32_t a, uint2 factor, uint32_t p) {
    uint32_t high = a * factor.y + __umulhi(a, factor.x);
    return uint32_t((uint64_t(high) * p + p) >> 32);
}
