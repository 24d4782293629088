// Expansion of queries (expand.cuh), for all nodes of all queries of a batch. expand_decompose and then expand_children compute a
// level of the tree (operation-level). expand_stage computes it alone, with digits in shared memory (stage-level; GPIR, section
// 4.1). expand_decompose and then expand_bottom compute the bottom rows of RGSW ciphertexts.
//
// Ciphertexts are [a, b][limb][slot] modulo Q_e, nodes [query][node]. A block has N / 16 threads (ntt.cuh).
#include "expand.cuh"

namespace {

// Computes the digits of the image of half a of each node under X -> X^exponent: `digits` becomes [query][node][digit][N]. Block
// (node, query). The nodes of a query are `query_words` words after those of the query before.
template <class P>
HUSH_DEVICE void decompose_images(uint32_t* digits, const uint32_t* nodes, uint64_t query_words, uint32_t exponent,
                                  const RingOf<P>& ring, const GadgetView& gadget) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    const uint32_t* a = nodes + blockIdx.y * query_words + blockIdx.x * 2 * poly_words(ring);
    const size_t item = size_t(blockIdx.y) * gridDim.x + blockIdx.x;
    decompose(digits + item * gadget.digits * ring.degree, ring, gadget, shared, Image{a, exponent, ring});
}

// Computes children 2i and 2i + 1 of node i, if below `needed`, from the digits of expand_decompose. Block (limb, node, query).
// The rows [digit][a, b][limb][slot] of the key of query q's client are at keys[q] + key_at.
template <class P>
HUSH_DEVICE void make_children(uint32_t* children, const uint32_t* nodes, const uint32_t* digits,
                               const uint32_t* const* keys, uint64_t key_at, const uint32_t* powers, uint32_t level,
                               uint32_t needed, const RingOf<P>& ring, const GadgetView& gadget) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    const uint32_t limb = blockIdx.x, node = blockIdx.y, query = blockIdx.z;
    const size_t item = size_t(query) * gridDim.y + node;
    const Children to = children_of(children, nodes, powers, level, needed, node, query, gridDim.y, limb, ring);
    digits += item * gadget.digits * ring.degree;
    switch_image([&] { return to; }, level, limb, ring, [&](const auto& source, const auto& sink) {
        gadget_product<2>(digits, keys[query] + key_at, gadget.digits, limb, ring, gadget, shared, source, sink);
    });
}

// Computes rows of phase m s from leaves (a, b) of phase m: (a', b') = KS(a) under the key for s^2, a' += b. Block (limb, leaf,
// query). The leaves of a query are `query_words` words after those of the query before. `rows` becomes [query][leaf].
template <class P>
HUSH_DEVICE void make_bottom(uint32_t* rows, const uint32_t* leaves, uint64_t query_words, const uint32_t* digits,
                             const uint32_t* const* keys, uint64_t key_at, const RingOf<P>& ring,
                             const GadgetView& gadget) {
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

} // namespace

extern "C" __global__ void __launch_bounds__(256, 3)
    expand_decompose(uint32_t* digits, const uint32_t* nodes, uint64_t query_words, uint32_t exponent, RingView ring,
                     GadgetView gadget) {
    decompose_images(digits, nodes, query_words, exponent, ring, gadget);
}
HUSH_KERNEL(expand_decompose)

extern "C" __global__ void __launch_bounds__(128, 6)
    expand_decompose_wide(uint32_t* digits, const uint32_t* nodes, uint64_t query_words, uint32_t exponent,
                          WideRingView ring, GadgetView gadget) {
    decompose_images(digits, nodes, query_words, exponent, ring, gadget);
}
HUSH_KERNEL(expand_decompose_wide)

extern "C" __global__ void __launch_bounds__(256, 2)
    expand_children(uint32_t* children, const uint32_t* nodes, const uint32_t* digits, const uint32_t* const* keys,
                    uint64_t key_at, const uint32_t* powers, uint32_t level, uint32_t needed, RingView ring,
                    GadgetView gadget) {
    make_children(children, nodes, digits, keys, key_at, powers, level, needed, ring, gadget);
}
HUSH_KERNEL(expand_children)

extern "C" __global__ void __launch_bounds__(128, 4)
    expand_children_wide(uint32_t* children, const uint32_t* nodes, const uint32_t* digits,
                         const uint32_t* const* keys, uint64_t key_at, const uint32_t* powers, uint32_t level,
                         uint32_t needed, WideRingView ring, GadgetView gadget) {
    make_children(children, nodes, digits, keys, key_at, powers, level, needed, ring, gadget);
}
HUSH_KERNEL(expand_children_wide)

extern "C" __global__ void __launch_bounds__(256, 2)
    expand_bottom(uint32_t* rows, const uint32_t* leaves, uint64_t query_words, const uint32_t* digits,
                  const uint32_t* const* keys, uint64_t key_at, RingView ring, GadgetView gadget) {
    make_bottom(rows, leaves, query_words, digits, keys, key_at, ring, gadget);
}
HUSH_KERNEL(expand_bottom)

extern "C" __global__ void __launch_bounds__(128, 4)
    expand_bottom_wide(uint32_t* rows, const uint32_t* leaves, uint64_t query_words, const uint32_t* digits,
                       const uint32_t* const* keys, uint64_t key_at, WideRingView ring, GadgetView gadget) {
    make_bottom(rows, leaves, query_words, digits, keys, key_at, ring, gadget);
}
HUSH_KERNEL(expand_bottom_wide)
