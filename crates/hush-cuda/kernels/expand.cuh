// A level of the tree of an expansion. With c' the image of a node c under an automorphism, switched back to the key of c:
//     even child = c + c',   odd child = (c - c') X^(-2^level)
//
// Ciphertexts are [a, b][limb][slot] modulo Q_e, nodes [query][node].
#pragma once

#include "gadget.cuh"

namespace {

// Rotates four words: word i becomes word i + by.
HUSH_DEVICE void rotate(uint32_t (&words)[4], uint32_t by) {
    const uint32_t from[4] = {words[0], words[1], words[2], words[3]};
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) words[i] = from[(i + by) % 4];
}

// Loads slots 4 vector .. 4 vector + 3 of the image of a limb under X -> X^exponent.
//
// Slot i holds the value at psi^(2 r + 1), r = reverse(i). In the image it holds the value of slot reverse(r'), with
// 2 r' + 1 = (2 r + 1) exponent. The two low bits of i are the two high bits of r. So four neighbours come from four neighbours, in
// an order that is a rotation of these two bits, or a reflection for an exponent that is 3 modulo 4.
template <class P>
HUSH_DEVICE uint4 load_image(const uint32_t* limb, uint32_t vector, uint32_t exponent, const RingOf<P>& ring) {
    const uint32_t shift = 32 - ring.log_degree;
    const uint32_t image = ((2 * (__brev(4 * vector) >> shift) + 1) * exponent >> 1) & (ring.degree - 1);
    const uint4 words = load_vector(limb, __brev(image) >> shift >> 2);
    // The order depends on the two high bits of r'.
    uint32_t from[4] = {words.x, words.z, words.y, words.w};
    if (image & ring.degree / 4) rotate(from, 1);
    if (image & ring.degree / 2) rotate(from, 2);
    if (exponent & 2) return make_uint4(from[0], from[2], from[3], from[1]);
    return make_uint4(from[0], from[2], from[1], from[3]);
}

// A limb of a node and of its two children.
struct Children {
    const uint32_t* node;
    uint32_t* even;
    uint32_t* odd;          // null if no leaf below it is wanted
    const uint32_t* powers; // psi^-t 2^32 modulo the limb at index reverse(t) of N
    uint32_t level;
};

// Returns a limb of node `node` of a query's `count` nodes, and of its children.
template <class P>
HUSH_DEVICE Children children_of(uint32_t* children, const uint32_t* nodes, const uint32_t* powers, uint32_t level,
                                 uint32_t needed, uint32_t node, uint32_t query, uint32_t count, uint32_t limb,
                                 const RingOf<P>& ring) {
    const size_t ciphertext = 2 * poly_words(ring), limb_at = size_t(limb) * ring.degree;
    uint32_t* even = children + (size_t(query) * needed + 2 * node) * ciphertext + limb_at;
    uint32_t* odd = 2 * node + 1 < needed ? even + ciphertext : nullptr;
    return {nodes + (size_t(query) * count + node) * ciphertext + limb_at, even, odd, powers + limb_at, level};
}

// Returns the exponent of the automorphism of a level of the tree: X -> X^(N / 2^level + 1).
template <class P>
HUSH_DEVICE uint32_t level_exponent(uint32_t level, const RingOf<P>& ring) {
    return (ring.degree >> level) + 1;
}

// Returns X^(-2^level) in a slot of a limb, in Montgomery form and up to the sign: psi^-t with t = 2^level (2 reverse(slot) + 1)
// modulo 2N. From level 2 on, four neighbours share one value.
template <class P>
HUSH_DEVICE uint32_t monomial(const uint32_t* powers, uint32_t slot, uint32_t level, const RingOf<P>& ring) {
    return __ldg(powers + ((ring.degree + slot) >> (level + 1)));
}

// Returns whether t is N or more, so that the sign is negative.
HUSH_DEVICE bool is_turned(uint32_t slot, uint32_t level) {
    return slot >> level & 1;
}

// Stores four slots of one half of both children. `images` has the slots of c'.
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

// A loader for decompose: the slots of half a of the image of a node under X -> X^exponent.
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

// Returns the operand to which the products of digits are added: zeros for half a, the image of a limb of the node for half b.
template <class P>
HUSH_DEVICE uint4 image_of_b(const uint32_t* node, uint32_t half, uint32_t vector, uint32_t level,
                             const RingOf<P>& ring) {
    if (half == 0) return zero_vector();
    return load_image(node + poly_words(ring), vector, level_exponent(level, ring), ring);
}

// Computes both children of a node modulo a limb. `to()` returns the node and its children, and `product(source, sink)` multiplies
// the digits of the node by the key of the level.
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
