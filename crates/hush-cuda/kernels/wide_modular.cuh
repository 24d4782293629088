// Arithmetic modulo odd primes of up to 32 bits, under the names of modular.cuh. Neither a sum of two residues nor one of two
// products fits its words, so operands and results are canonical, in [0, p), unless a function says otherwise, and a
// correction by p is by comparison.
#pragma once

#include "modular.cuh"

// No word, so that what is for primes below 2^31 does not take it.
struct WideModulus {
    uint32_t value;
};

// A prime below 2^32; laid out as Prime, and mirrored by the same structure.
struct WidePrime {
    WideModulus p;
    uint32_t inv, r1, r2;
};
static_assert(sizeof(WidePrime) == sizeof(Prime) && offsetof(WidePrime, inv) == offsetof(Prime, inv),
              "the layout of WidePrime");

HUSH_DEVICE uint32_t value_of(WideModulus p) {
    return p.value;
}

// a - b mod p, for b up to p. Whatever is smaller than b wraps around, and p more wraps back.
HUSH_DEVICE uint32_t sub_mod(uint32_t a, uint32_t b, WideModulus p) {
    uint32_t difference = a - b;
    return a < b ? difference + p.value : difference;
}

HUSH_DEVICE uint32_t add_mod(uint32_t a, uint32_t b, WideModulus p) {
    return sub_mod(a, p.value - b, p);
}

// sum += a b modulo p 2^32, for one factor below p and any other. The sum is below p 2^32 before and after, that is, its high
// word is canonical. So is that of the product, even with a carry: (p - 1) (2^32 - 1) + 2^32 - 1 = p 2^32 - p.
HUSH_DEVICE void add_product(uint64_t& sum, uint32_t a, uint32_t b, WideModulus p) {
    uint64_t product = uint64_t(a) * b, low = (sum & 0xffffffff) + uint32_t(product);
    uint32_t high = uint32_t(product >> 32) + uint32_t(low >> 32);
    sum = uint64_t(add_mod(uint32_t(sum >> 32), high, p)) << 32 | uint32_t(low);
}

// x 2^-32 mod p, for a sum of products, which is below p 2^32.
HUSH_DEVICE uint32_t mont_reduce_sum(uint64_t x, const WidePrime& prime) {
    return mont_reduce(x, prime);
}

// x mod p, for a sum of products.
HUSH_DEVICE uint32_t reduce_sum(uint64_t x, const WidePrime& prime) {
    return mont_mul(mont_reduce(x, prime), prime.r2, prime);
}

// x mod p, for any x.
HUSH_DEVICE uint32_t reduce_64(uint64_t x, const WidePrime& prime) {
    uint32_t low = mont_mul(uint32_t(x), prime.r1, prime), high = mont_mul(uint32_t(x >> 32), prime.r2, prime);
    return add_mod(low, high, prime.p);
}

// a w mod p, for any word a and a constant w that is given as m = w 2^32 mod p and m p^-1 mod 2^32: Montgomery's product. With
// q = a m p^-1 mod 2^32, q p and a m have the same low word, so that the difference of the high ones is (a m - q p) / 2^32, an
// integer that is a w modulo p; and both high words are below p.
HUSH_DEVICE uint32_t constant_mul(uint32_t a, uint2 factor, WideModulus p) {
    return sub_mod(__umulhi(a, factor.x), __umulhi(a * factor.y, p.value), p);
}
