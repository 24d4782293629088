// Packing of pairs of ciphertexts x, y to three polynomials a, b_0, b_1, for all pairs of all queries of a batch:
// pack_pairs_decompose, then pack_pairs_product.
//
// Ciphertexts are [a, b][limb][slot]. The ciphertexts of query q are at batches[q]. A block has N / 16 threads (ntt.cuh).
#include "gadget.cuh"

namespace {

// Computes the digits of half a of each ciphertext, `digits` [query][ciphertext][digit][N]. Block (ciphertext, query).
template <class P>
HUSH_DEVICE void decompose_ciphertexts(uint32_t* digits, const uint32_t* const* batches, const RingOf<P>& ring,
                                       const GadgetView& gadget) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    const uint32_t* a = batches[blockIdx.y] + blockIdx.x * 2 * poly_words(ring);
    const size_t item = size_t(blockIdx.y) * gridDim.x + blockIdx.x;
    auto load = [&](auto log_degree, uint32_t(&x)[NTT_WORDS], uint32_t limb) {
        constexpr int LOG = decltype(log_degree)::value;
        load_slots<LOG>(x, a + (size_t(limb) << LOG), threadIdx.x);
    };
    decompose(digits + item * gadget.digits * ring.degree, ring, gadget, shared, load);
}

// Computes the three polynomials of each pair from the digits of pack_pairs_decompose. Block (limb, pair, query):
//     out[q][pair] = (0, b of x, b of y) + sum over rows of digit times key row
// out[q] becomes [pair][a, b_0, b_1][limb][slot]. The client's rows [x, y][digit][a, b_0, b_1][limb][slot] are at keys[q] + key_at.
template <class P>
HUSH_DEVICE void pack_digits(uint32_t* const* out, const uint32_t* const* batches, const uint32_t* digits,
                             const uint32_t* const* keys, uint64_t key_at, const RingOf<P>& ring,
                             const GadgetView& gadget) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    const uint32_t limb = blockIdx.x, rows = 2 * gadget.digits;
    const size_t pair = size_t(blockIdx.z) * gridDim.y + blockIdx.y, poly = poly_words(ring);
    const size_t limb_at = size_t(limb) * ring.degree;
    const uint32_t* x = batches[blockIdx.z] + blockIdx.y * 4 * poly + limb_at;
    uint32_t* to = out[blockIdx.z] + blockIdx.y * 3 * poly + limb_at;
    // Half b of x, then of y.
    auto source = [&](uint32_t part, uint32_t vector) {
        return part > 0 ? load_vector(x + (2 * part - 1) * poly, vector) : zero_vector();
    };
    auto put = [&](uint32_t part, uint32_t vector, uint4 sums) { store_vector(to + part * poly, vector, sums); };
    digits += pair * rows * ring.degree;
    gadget_product<3>(digits, keys[blockIdx.z] + key_at, rows, limb, ring, gadget, shared, source, put);
}

} // namespace

extern "C" __global__ void __launch_bounds__(256, 3)
    pack_pairs_decompose(uint32_t* digits, const uint32_t* const* batches, RingView ring, GadgetView gadget) {
    decompose_ciphertexts(digits, batches, ring, gadget);
}
HUSH_KERNEL(pack_pairs_decompose)

extern "C" __global__ void __launch_bounds__(128, 6)
    pack_pairs_decompose_wide(uint32_t* digits, const uint32_t* const* batches, WideRingView ring,
                              GadgetView gadget) {
    decompose_ciphertexts(digits, batches, ring, gadget);
}
HUSH_KERNEL(pack_pairs_decompose_wide)

extern "C" __global__ void __launch_bounds__(256, 1)
    pack_pairs_product(uint32_t* const* out, const uint32_t* const* batches, const uint32_t* digits,
                       const uint32_t* const* keys, uint64_t key_at, RingView ring, GadgetView gadget) {
    pack_digits(out, batches, digits, keys, key_at, ring, gadget);
}
HUSH_KERNEL(pack_pairs_product)

extern "C" __global__ void __launch_bounds__(128, 2)
    pack_pairs_product_wide(uint32_t* const* out, const uint32_t* const* batches, const uint32_t* digits,
                            const uint32_t* const* keys, uint64_t key_at, WideRingView ring, GadgetView gadget) {
    pack_digits(out, batches, digits, keys, key_at, ring, gadget);
}
HUSH_KERNEL(pack_pairs_product_wide)
