// Arithmetic modulo odd primes of up to 32 bits, under the names of modular.cuh. Operands and results are canonical, in [0, p),
// unless a function says otherwise. A sum of two residues may overflow a word, and a sum of two products two words. So a
// comparison decides a correction by p.
#pragma once

#include "modular.cuh"

// A modulus of up to 32 bits. Its type is not a word, so that functions for primes below 2^31 do not accept it.
struct WideModulus {
    uint32_t value;
};

// A prime below 2^32. Its layout is that of Prime, and the same Rust structure mirrors it.
struct WidePrime {
    WideModulus p;
    uint32_t inv, r1, r2;
};
static_assert(sizeof(WidePrime) == sizeof(Prime) && offsetof(WidePrime, inv) == offsetof(Prime, inv),
              "the layout of WidePrime");

HUSH_DEVICE uint32_t value_of(WideModulus p) {
    return p.value;
}

// Returns a - b mod p, for b up to p. If a < b, the difference wraps around, and adding p wraps it back.
HUSH_DEVICE uint32_t sub_mod(uint32_t a, uint32_t b, WideModulus p) {
    uint32_t difference = a - b;
    return a < b ? difference + p.value : difference;
}

HUSH_DEVICE uint32_t add_mod(uint32_t a, uint32_t b, WideModulus p) {
    return sub_mod(a, p.value - b, p);
}

// Adds a product: sum += a b modulo p 2^32, for one factor below p and any other. The sum is below p 2^32 before and after: its
// high word is canonical. The product's high word is canonical even with a carry: (p - 1) (2^32 - 1) + 2^32 - 1 = p 2^32 - p.
HUSH_DEVICE void add_product(uint64_t& sum, uint32_t a, uint32_t b, WideModulus p) {
    uint64_t product = uint64_t(a) * b, low = (sum & 0xffffffff) + uint32_t(product);
    uint32_t high = uint32_t(product >> 32) + uint32_t(low >> 32);
    sum = uint64_t(add_mod(uint32_t(sum >> 32), high, p)) << 32 | uint32_t(low);
}

// Returns x 2^-32 mod p, for a sum of products, which is below p 2^32.
HUSH_DEVICE uint32_t mont_reduce_sum(uint64_t x, const WidePrime& prime) {
    return mont_reduce(x, prime);
}

// Returns x mod p, for a sum of products (add_product).
HUSH_DEVICE uint32_t reduce_sum(uint64_t x, const WidePrime& prime) {
    return mont_mul(mont_reduce(x, prime), prime.r2, prime);
}

// Returns x mod p, for any x.
HUSH_DEVICE uint32_t reduce_64(uint64_t x, const WidePrime& prime) {
    uint32_t low = mont_mul(uint32_t(x), prime.r1, prime), high = mont_mul(uint32_t(x >> 32), prime.r2, prime);
    return add_mod(low, high, prime.p);
}

// Returns a w mod p by Montgomery's product, for any word a and a constant w, given as m = w 2^32 mod p and m p^-1 mod 2^32. With
// q = a m p^-1 mod 2^32, q p and a m have the same low word. So the difference of their high words is (a m - q p) / 2^32, an
// integer that is a w modulo p. Both high words are below p.
HUSH_DEVICE uint32_t constant_mul(uint32_t a, uint2 factor, WideModulus p) {
    return sub_mod(__umulhi(a, factor.x), __umulhi(a * factor.y, p.value), p);
}
