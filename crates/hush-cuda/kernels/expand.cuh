// A level of the tree of an expansion: images of nodes under an automorphism, and their children.
//
// Ciphertexts are [a, b][limb][slot] modulo Q_e, nodes [query][node].
#pragma once

#include "gadget.cuh"

namespace {

HUSH_DEVICE void rotate(uint32_t (&words)[4], uint32_t by) {
    const uint32_t from[4] = {words[0], words[1], words[2], words[3]};
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) words[i] = from[(i + by) % 4];
}

// Slots 4 vector .. 4 vector + 3 of the image of a limb under X -> X^exponent.
//
// Slot i holds the value at psi^(2 r + 1), r = reverse(i), and takes that of slot reverse(r'), 2 r' + 1 = (2 r + 1)
// exponent. The two low bits of i are the two high bits of r: four neighbours come from four neighbours, in an order
// that is a rotation of these two bits, or for an exponent that is 3 modulo 4 a reflection.
template <class P>
HUSH_DEVICE uint4 load_image(const uint32_t* limb, uint32_t vector, uint32_t exponent, const RingOf<P>& ring) {
    const uint32_t shift = 32 - ring.log_degree;
    const uint32_t image = ((2 * (__brev(4 * vector) >> shift) + 1) * exponent >> 1) & (ring.degree - 1);
    const uint4 words = load_vector(limb, __brev(image) >> shift >> 2);
    // By the two high bits of r'.
    uint32_t from[4] = {words.x, words.z, words.y, words.w};
    if (image & ring.degree / 4) rotate(from, 1);
    if (image & ring.degree / 2) rotate(from, 2);
    if (exponent & 2) return make_uint4(from[0], from[2], from[3], from[1]);
    return make_uint4(from[0], from[2], from[1], from[3]);
}

// A limb of a node c and of its children: even = c + c', odd = (c - c') X^(-2^level), with c' the image of c.
struct Children {
    const uint32_t* node;
    uint32_t* even;
    uint32_t* odd;          // null if no leaf below it is wanted
    const uint32_t* powers; // psi^-t 2^32 modulo the limb at place reverse(t) of N
    uint32_t level;
};

// A limb of node `node` of a query, which has `count` of them, and of its children.
template <class P>
HUSH_DEVICE Children children_of(uint32_t* children, const uint32_t* nodes, const uint32_t* powers, uint32_t level,
                                 uint32_t needed, uint32_t node, uint32_t query, uint32_t count, uint32_t limb,
                                 const RingOf<P>& ring) {
    const size_t ciphertext = 2 * poly_words(ring), limb_at = size_t(limb) * ring.degree;
    uint32_t* even = children + (size_t(query) * needed + 2 * node) * ciphertext + limb_at;
    uint32_t* odd = 2 * node + 1 < needed ? even + ciphertext : nullptr;
    return {nodes + (size_t(query) * count + node) * ciphertext + limb_at, even, odd, powers + limb_at, level};
}

// The automorphism of a level of the tree: X -> X^(N / 2^level + 1).
template <class P>
HUSH_DEVICE uint32_t level_exponent(uint32_t level, const RingOf<P>& ring) {
    return (ring.degree >> level) + 1;
}

// X^(-2^level) in a slot of a limb, in Montgomery form and up to the sign: psi^-t with t = 2^level (2 reverse(slot) + 1)
// modulo 2N. From level 2 on four neighbours have the same.
template <class P>
HUSH_DEVICE uint32_t monomial(const uint32_t* powers, uint32_t slot, uint32_t level, const RingOf<P>& ring) {
    return __ldg(powers + ((ring.degree + slot) >> (level + 1)));
}

// Whether t is N or more, so that the sign is the other.
HUSH_DEVICE bool is_turned(uint32_t slot, uint32_t level) {
    return slot >> level & 1;
}

// Four slots of one half of both children, from those of c'.
template <class P>
HUSH_DEVICE void put_children(const Children& to, const RingOf<P>& ring, const P& prime, uint32_t half,
                              uint32_t vector, uint4 images) {
    const size_t at = half * poly_words(ring);
    const uint4 words = load_vector(to.node + at, vector);
    uint32_t even[4], odd[4];
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) {
        const uint32_t slot = 4 * vector + k, c = word(words, k), image = word(images, k);
        even[k] = add_mod(c, image, prime.p);
        const uint32_t power = monomial(to.powers, slot, to.level, ring);
        const uint32_t difference = is_turned(slot, to.level) ? sub_mod(image, c, prime.p) : sub_mod(c, image, prime.p);
        odd[k] = mont_mul(difference, power, prime);
    }
    store_vector(to.even + at, vector, make_uint4(even[0], even[1], even[2], even[3]));
    if (to.odd) store_vector(to.odd + at, vector, make_uint4(odd[0], odd[1], odd[2], odd[3]));
}

// Slots of half a of the image of a node under X -> X^exponent, as decompose reads them.
template <class P>
struct Image {
    const uint32_t* a;
    uint32_t exponent;
    const RingOf<P>& ring;

    template <class LogDegree>
    HUSH_DEVICE void operator()(LogDegree, uint32_t (&x)[NTT_WORDS], uint32_t limb) const {
        constexpr int LOG = LogDegree::value;
#pragma unroll
        for (uint32_t j = 0; j < NTT_WORDS / 4; j++) {
            const uint32_t vector = threadIdx.x + j * NTT_THREADS<LOG>;
            const uint4 image = load_image(a + (size_t(limb) << LOG), vector, exponent, ring);
#pragma unroll
            for (uint32_t k = 0; k < 4; k++) x[4 * j + k] = word(image, k);
        }
    }
};

template <class P>
Image(const uint32_t*, uint32_t, const RingOf<P>&) -> Image<P>;

// Half b of the image of a limb of a node, and no half a: what the products of digits are added to.
template <class P>
HUSH_DEVICE uint4 image_of_b(const uint32_t* node, uint32_t half, uint32_t vector, uint32_t level,
                             const RingOf<P>& ring) {
    if (half == 0) return zero_vector();
    return load_image(node + poly_words(ring), vector, level_exponent(level, ring), ring);
}

// Both children of a node modulo a limb. `to()` says which they are, `product(source, sink)` multiplies the digits of the
// node by the key of the level.
template <class P, class To, class Product>
HUSH_DEVICE void switch_image(const To& to, uint32_t level, uint32_t limb, const RingOf<P>& ring,
                              const Product& product) {
    auto given = [&](uint32_t half, uint32_t vector) { return image_of_b(to().node, half, vector, level, ring); };
    auto put = [&](uint32_t half, uint32_t vector, uint4 sums) {
        put_children(to(), ring, ring.primes[made_anew(limb)], half, vector, sums);
    };
    product(given, put);
}

} // namespace
