// A product modulo p as a product of byte matrices.
//
// With x = sum_i 2^(8i) x_i for the bytes of a residue of the database, a x = sum_i (2^(8i) a mod p) x_i modulo p. So a selector a
// becomes four words, one for each byte x_i. Their bytes of weight 2^(8j) are class j, and all products of a class have one weight:
//     sum over rows of a x = sum_j 2^(8j) (sum over rows and i of byte_j(2^(8i) a mod p) x_i) modulo p
// Each of the four inner sums is at most 4 rows 255^2 < 2^30, and one reduction gives the result. (Products of plain bytes have
// seven weights.) The database's words are used as bytes without change.
//
// So 32 rows of a polynomial are a line of 128 bytes in each of four matrices, swizzled like the database's.
#pragma once

#include "rlwe_fold.cuh"

constexpr uint32_t CLASSES = 4;
constexpr uint32_t LINE_BYTES = 128;

// Returns a times one of the constants FoldPrime::scale modulo p. A result below 2 p < 2^32 suffices: any word has four bytes.
HUSH_DEVICE uint32_t scale_mul(uint32_t a, uint2 scale, uint32_t p) {
    return a * scale.x - __umulhi(a, scale.y) * p;
}

HUSH_DEVICE uint32_t scale_mul(uint32_t a, uint2 scale, WideModulus p) {
    return constant_mul(a, scale, p);
}

// Returns the bytes of a selector in each class: word j has byte j of a, 2^8 a, 2^16 a and 2^24 a modulo p.
template <class P>
HUSH_DEVICE uint4 class_words(uint32_t a, const FoldPrime<P>& modulus) {
    uint32_t scaled[3];
#pragma unroll
    for (uint32_t i = 0; i < 3; i++) scaled[i] = scale_mul(a, modulus.scale[i], modulus.prime.p);
    uint32_t low0 = __byte_perm(a, scaled[0], 0x5140), low1 = __byte_perm(scaled[1], scaled[2], 0x5140);
    uint32_t high0 = __byte_perm(a, scaled[0], 0x7362), high1 = __byte_perm(scaled[1], scaled[2], 0x7362);
    return make_uint4(__byte_perm(low0, low1, 0x5410), __byte_perm(low0, low1, 0x7632),
                      __byte_perm(high0, high1, 0x5410), __byte_perm(high0, high1, 0x7632));
}

// Writes a unit, chunk `unit % 8` (four rows) of polynomial `unit / 8`, to the matrices `[class][POLYS][128 bytes]`.
template <uint32_t POLYS, class P>
HUSH_DEVICE void write_unit(uint8_t* matrices, uint32_t unit, const uint4& selectors, const FoldPrime<P>& modulus) {
    uint32_t poly = unit / LINE_CHUNKS;
    uint8_t* line = matrices + poly * LINE_BYTES + swizzled(unit % LINE_CHUNKS, poly) * 16;
    uint4 r0 = class_words(selectors.x, modulus), r1 = class_words(selectors.y, modulus);
    uint4 r2 = class_words(selectors.z, modulus), r3 = class_words(selectors.w, modulus);
    auto put = [&](uint32_t j, uint4 bytes) { *reinterpret_cast<uint4*>(line + j * POLYS * LINE_BYTES) = bytes; };
    put(0, make_uint4(r0.x, r1.x, r2.x, r3.x));
    put(1, make_uint4(r0.y, r1.y, r2.y, r3.y));
    put(2, make_uint4(r0.z, r1.z, r2.z, r3.z));
    put(3, make_uint4(r0.w, r1.w, r2.w, r3.w));
}

// Returns the residue of c0 + 2^8 c1 + 2^16 c2 + 2^24 c3, the sums of the four classes.
template <class P>
HUSH_DEVICE uint32_t join_classes(int32_t c0, int32_t c1, int32_t c2, int32_t c3, const P& prime) {
    uint64_t sum = uint32_t(c0);
    sum += uint64_t(uint32_t(c1)) << 8;
    sum += uint64_t(uint32_t(c2)) << 16;
    sum += uint64_t(uint32_t(c3)) << 24;
    return reduce_64(sum, prime);
}
