#include "arithmetic.hpp"

#include "check.hpp"
#include "wide_modular.cuh"

namespace {

using Wide = unsigned __int128;

uint32_t power(uint32_t base, uint32_t exponent, uint32_t p) {
    uint64_t result = 1, square = base % p;
    for (; exponent > 0; exponent /= 2, square = square * square % p)
        if (exponent % 2) result = result * square % p;
    return static_cast<uint32_t>(result);
}

// Returns p^-1 mod 2^64, by Newton's method.
uint64_t inverse(uint32_t p) {
    uint64_t inverse = p;
    for (int i = 0; i < 5; i++) inverse *= 2 - p * inverse;
    return inverse;
}

// Returns a prime of either type.
template <class P, class Modulus>
P prime_of(uint32_t p, Modulus modulus) {
    const uint32_t r1 = static_cast<uint32_t>((uint64_t{1} << 32) % p);
    return {modulus, static_cast<uint32_t>(inverse(p)), r1, static_cast<uint32_t>(uint64_t{r1} * r1 % p)};
}

// Returns residues near both ends and the middle, and random residues.
Words residues_of(uint32_t p) {
    Words residues = {0, 1, 2 % p, p / 2, p / 2 + 1, p - 2, p - 1};
    for (uint32_t word : random_words(12, p)) residues.push_back(word % p);
    return residues;
}

// Returns residues, and words that are not residues.
Words words_of(uint32_t p) {
    Words words = residues_of(p);
    for (uint32_t word : {p, p + 1, 2 * p - 1, 0x7fffffffu, 0x80000000u, 0xfffffffeu, 0xffffffffu}) words.push_back(word);
    return words;
}

// Returns x 2^-32 mod p.
uint32_t without_form(Wide x, uint32_t p) {
    const uint64_t half = power(2, p - 2, p);
    uint64_t scale = 1;
    for (int i = 0; i < 32; i++) scale = scale * half % p;
    return static_cast<uint32_t>(static_cast<uint64_t>(x % p) * scale % p);
}

// Checks the functions that both types of primes have.
template <class P>
void check_prime(const P& prime) {
    const uint32_t p = value_of(prime.p);
    for (uint32_t a : residues_of(p)) {
        CHECK(neg_mod(a, prime.p) == (p - a) % p);
        for (uint32_t b : residues_of(p)) {
            CHECK(add_mod(a, b, prime.p) == (uint64_t{a} + b) % p);
            CHECK(sub_mod(a, b, prime.p) == (uint64_t{a} + p - b) % p);
        }
        for (uint32_t b : words_of(p)) {
            CHECK(mont_mul(b, a, prime) == without_form(Wide{a} * b, p));
            CHECK(mont_reduce((uint64_t{a} << 32) + b, prime) == without_form((Wide{a} << 32) + b, p));
        }
    }
    for (uint32_t low : words_of(p)) {
        CHECK(reduce_32(low, prime) == low % p);
        for (uint32_t high : words_of(p)) {
            const uint64_t x = uint64_t{high} << 32 | low;
            CHECK(reduce_64(x, prime) == x % p);
        }
    }
}

// Checks sums of a residue and two products of a residue and any word.
template <class P>
void check_sums(const P& prime, bool is_wide) {
    const uint32_t p = value_of(prime.p);
    for (uint32_t a : residues_of(p)) {
        for (uint32_t b : words_of(p)) {
            for (uint32_t c : {0u, p / 2, p - 1}) {
                for (uint32_t given : {0u, p - 1}) {
                    const Wide expected = given + Wide{a} * b + Wide{c} * 0xffffffff;
                    uint64_t sum = given;
                    add_product(sum, a, b, prime.p);
                    add_product(sum, 0xffffffff, c, prime.p);
                    if (is_wide) CHECK(sum < uint64_t{p} << 32);
                    // For narrow primes, a sum must be below p 2^33, and this sum is not.
                    if (!is_wide && expected >= Wide{p} << 33) continue;
                    CHECK(mont_reduce_sum(sum, prime) == without_form(expected, p));
                    CHECK(reduce_sum(sum, prime) == static_cast<uint32_t>(expected % p));
                }
            }
        }
    }
}

// Checks sums of more products than 64 bits hold.
void check_long_sums(const WidePrime& prime) {
    const uint32_t p = prime.p.value;
    for (uint32_t a : words_of(p)) {
        uint64_t sum = 0;
        for (uint64_t terms = 1; terms <= 100; terms++) {
            add_product(sum, a, p - 1, prime.p);
            CHECK(sum < uint64_t{p} << 32);
            CHECK(reduce_sum(sum, prime) == static_cast<uint32_t>(Wide{a} * (p - 1) * terms % p));
        }
    }
}

void check_narrow(uint32_t p) {
    const Prime prime = prime_of<Prime>(p, p);
    check_prime(prime);
    check_sums(prime, false);
    for (uint32_t w : residues_of(p)) {
        const uint64_t c = (p - static_cast<uint64_t>((Wide{w} << 64) % p)) % p, factor = c * inverse(p);
        const uint2 plantard = {static_cast<uint32_t>(factor), static_cast<uint32_t>(factor >> 32)};
        const uint32_t shoup = static_cast<uint32_t>((uint64_t{w} << 32) / p);
        for (uint32_t a : words_of(p)) {
            CHECK(plantard_mul(a, plantard, p) == uint64_t{a} * w % p);
            CHECK(shoup_mul(a, w, shoup, p) == uint64_t{a} * w % p);
        }
    }
}

void check_wide(uint32_t p) {
    const WidePrime prime = prime_of<WidePrime>(p, WideModulus{p});
    check_prime(prime);
    check_sums(prime, true);
    check_long_sums(prime);
    // The subtrahend may be p: add_mod subtracts up to p.
    for (uint32_t a : residues_of(p)) CHECK(sub_mod(a, p, prime.p) == a);
    for (uint32_t w : residues_of(p)) {
        const uint32_t form = static_cast<uint32_t>((uint64_t{w} << 32) % p);
        for (uint32_t a : words_of(p)) {
            CHECK(constant_mul(a, {form, form * prime.inv}, prime.p) == uint64_t{a} * w % p);
        }
    }
}

}  // namespace

void check_arithmetic() {
    for (uint32_t p : {3u, 7681u, 1454081u, 134176769u, 2147377153u, 2147483647u}) check_narrow(p);
    // Among them: the smaller prime of a set with a wide prime, the smallest wide prime, the wide prime of a set, the largest
    // prime.
    for (uint32_t p : {3u, 7681u, 1454081u, 2147483647u, 2147483659u, 4293849089u, 4294967291u}) check_wide(p);
}
