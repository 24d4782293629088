// Expansion of queries: a level of the tree is expand_decompose, then expand_children, for all nodes of all queries of
// a batch. Bottom rows of RGSW ciphertexts are expand_decompose, then expand_bottom.
//
// Ciphertexts are [a, b][limb][slot] modulo Q_e, nodes [query][node]. A block has N / 16 threads (ntt.cuh).
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
HUSH_DEVICE uint4 load_image(const uint32_t* limb, uint32_t vector, uint32_t exponent, const RingView& ring) {
    const uint32_t shift = 32 - ring.log_degree;
    const uint32_t image = ((2 * (__brev(4 * vector) >> shift) + 1) * exponent >> 1) & (ring.degree - 1);
    const uint4 words = load_vector(limb, __brev(image) >> shift >> 2);
    // By the two high bits of r'.
    uint32_t from[4] = {words.x, words.z, words.y, words.w};
    if (image & ring.degree / 4) rotate(from, 1);
    if (image & ring.degree / 2) rotate(from, 2);
    const bool reflected = exponent & 2;
    return make_uint4(from[0], from[2], from[reflected ? 3 : 1], from[reflected ? 1 : 3]);
}

// One limb of a node c and of its children: even = c + c', odd = (c - c') X^(-2^level), with c' the image of c.
struct Children {
    const uint32_t* node;
    uint32_t* even;
    uint32_t* odd;          // null if no leaf below it is wanted
    const uint32_t* powers; // psi^-t 2^32 modulo the limb at place reverse(t) of N
    uint32_t level;
};

// Four slots of one half of both children, from those of c'.
HUSH_DEVICE void put_children(const Children& to, const RingView& ring, const Prime& prime, uint32_t half,
                              uint32_t vector, uint4 images) {
    const size_t at = half * poly_words(ring);
    const uint4 words = load_vector(to.node + at, vector);
    uint32_t even[4], odd[4];
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) {
        const uint32_t slot = 4 * vector + k, c = word(words, k), image = word(images, k);
        even[k] = add_mod(c, image, prime.p);
        // X^(-2^level) is psi^-t, t = 2^level (2 reverse(slot) + 1) modulo 2N: from N on, which bit `level` of the slot
        // says, the sign is the other.
        const uint32_t power = __ldg(to.powers + ((ring.degree + slot) >> (to.level + 1)));
        const uint32_t difference = slot >> to.level & 1 ? sub_mod(image, c, prime.p) : sub_mod(c, image, prime.p);
        odd[k] = mont_mul(difference, power, prime);
    }
    store_vector(to.even + at, vector, make_uint4(even[0], even[1], even[2], even[3]));
    if (to.odd) store_vector(to.odd + at, vector, make_uint4(odd[0], odd[1], odd[2], odd[3]));
}

} // namespace

// Digits of the image of half a of each node under X -> X^exponent. Block (node, query); nodes of a query are
// `query_words` after those of the one before. `digits` gets [query][node][digit][N].
extern "C" __global__ void __launch_bounds__(256, 3)
    expand_decompose(uint32_t* digits, const uint32_t* nodes, uint64_t query_words, uint32_t exponent, RingView ring,
                     GadgetView gadget) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    const uint32_t* a = nodes + blockIdx.y * query_words + blockIdx.x * 2 * poly_words(ring);
    const size_t item = size_t(blockIdx.y) * gridDim.x + blockIdx.x;
    auto load = [&](auto log_degree, uint32_t(&x)[NTT_WORDS], uint32_t limb) {
        constexpr int LOG = decltype(log_degree)::value;
#pragma unroll
        for (uint32_t j = 0; j < NTT_WORDS / 4; j++) {
            const uint32_t vector = threadIdx.x + j * NTT_THREADS<LOG>;
            const uint4 image = load_image(a + (size_t(limb) << LOG), vector, exponent, ring);
#pragma unroll
            for (uint32_t k = 0; k < 4; k++) x[4 * j + k] = word(image, k);
        }
    };
    decompose(digits + item * gadget.digits * ring.degree, ring, gadget, shared, load);
}
HUSH_KERNEL(expand_decompose)

// Children 2i and 2i + 1 of node i, those below `needed`, from the digits of expand_decompose. Block (limb, node,
// query). Query q has the rows [digit][a, b][limb][slot] of its client's key at keys[q] + key_at.
extern "C" __global__ void __launch_bounds__(256, 2)
    expand_children(uint32_t* children, const uint32_t* nodes, const uint32_t* digits, const uint32_t* const* keys,
                    uint64_t key_at, const uint32_t* powers, uint32_t level, uint32_t needed, RingView ring,
                    GadgetView gadget) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    const uint32_t limb = blockIdx.x, node = blockIdx.y;
    const size_t item = size_t(blockIdx.z) * gridDim.y + node, ciphertext = 2 * poly_words(ring);
    const size_t limb_at = size_t(limb) * ring.degree;
    uint32_t* even = children + (size_t(blockIdx.z) * needed + 2 * node) * ciphertext + limb_at;
    uint32_t* odd = 2 * node + 1 < needed ? even + ciphertext : nullptr;
    const Children to = {nodes + item * ciphertext + limb_at, even, odd, powers + limb_at, level};
    const Prime prime = ring.primes[limb];
    const uint32_t exponent = (ring.degree >> level) + 1;
    auto image_of_b = [&](uint32_t half, uint32_t vector) {
        return half == 1 ? load_image(to.node + poly_words(ring), vector, exponent, ring) : zero_vector();
    };
    auto put = [&](uint32_t half, uint32_t vector, uint4 sums) { put_children(to, ring, prime, half, vector, sums); };
    digits += item * gadget.digits * ring.degree;
    gadget_product<2>(digits, keys[blockIdx.z] + key_at, gadget.digits, limb, ring, gadget, shared, image_of_b, put);
}
HUSH_KERNEL(expand_children)

// From leaves of phase m, rows of phase m s: (a', b') = KS(a) under the key for s^2, a' += b. Block (limb, leaf,
// query); the leaves of a query are `query_words` after those of the one before, `rows` gets [query][leaf].
extern "C" __global__ void __launch_bounds__(256, 2)
    expand_bottom(uint32_t* rows, const uint32_t* leaves, uint64_t query_words, const uint32_t* digits,
                  const uint32_t* const* keys, uint64_t key_at, RingView ring, GadgetView gadget) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    const uint32_t limb = blockIdx.x;
    const size_t item = size_t(blockIdx.z) * gridDim.y + blockIdx.y, poly = poly_words(ring);
    const size_t limb_at = size_t(limb) * ring.degree;
    const uint32_t* b = leaves + blockIdx.z * query_words + (2 * blockIdx.y + 1) * poly + limb_at;
    uint32_t* row = rows + item * 2 * poly + limb_at;
    auto source = [&](uint32_t half, uint32_t vector) { return half == 0 ? load_vector(b, vector) : zero_vector(); };
    auto put = [&](uint32_t half, uint32_t vector, uint4 sums) { store_vector(row + half * poly, vector, sums); };
    digits += item * gadget.digits * ring.degree;
    gadget_product<2>(digits, keys[blockIdx.z] + key_at, gadget.digits, limb, ring, gadget, shared, source, put);
}
HUSH_KERNEL(expand_bottom)
