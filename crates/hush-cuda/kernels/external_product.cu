// External products (external_product.cuh) for all items of all planes of all queries of a batch: external_decompose, then
// external_product.
//
// A block has N / 16 threads (ntt.cuh).
#include "external_product.cuh"

namespace {

// Computes the digits of both halves of y - x: [query][plane][item][half][digit][N]. Block (2 item + half, plane, query).
template <class P>
HUSH_DEVICE void decompose_differences(uint32_t* digits, const CiphertextsView& y, const CiphertextsView& x,
                                       const RingOf<P>& ring, const GadgetView& gadget) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    const uint32_t item = blockIdx.x / 2;
    const uint32_t* plus = item_at(y, blockIdx.z, blockIdx.y, item);
    const uint32_t* minus = item_at(x, blockIdx.z, blockIdx.y, item);
    const Difference load = {plus, minus, blockIdx.x % 2 * poly_words(ring) + 4 * threadIdx.x, ring};
    const size_t poly = (size_t(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    decompose(digits + poly * gadget.digits * ring.degree, ring, gadget, shared, load);
}

// Computes out = C [x] (y - x) + z from the digits of external_decompose. Block (limbs item + limb, plane, query). `rgsw` has the
// rows of each query.
template <class P>
HUSH_DEVICE void multiply_digits(const CiphertextsView& out, const uint32_t* digits, const uint32_t* const* rgsw,
                                 const CiphertextsView& z, const RingOf<P>& ring, const GadgetView& gadget) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    const uint32_t limb = blockIdx.x % ring.limbs, item = blockIdx.x / ring.limbs;
    const size_t items = gridDim.x / ring.limbs;
    const size_t ciphertext = (size_t(blockIdx.z) * gridDim.y + blockIdx.y) * items + item;
    uint32_t* to = item_at(out, blockIdx.z, blockIdx.y, item);
    const uint32_t* from = item_at(z, blockIdx.z, blockIdx.y, item);
    digits += ciphertext * 2 * gadget.digits * ring.degree;
    multiply([&] { return to; }, [&] { return from; }, limb, ring, [&](const auto& source, const auto& sink) {
        gadget_product<2>(digits, rgsw[blockIdx.z], 2 * gadget.digits, limb, ring, gadget, shared, source, sink);
    });
}

} // namespace

extern "C" __global__ void __launch_bounds__(256, 3)
    external_decompose(uint32_t* digits, CiphertextsView y, CiphertextsView x, RingView ring, GadgetView gadget) {
    decompose_differences(digits, y, x, ring, gadget);
}
HUSH_KERNEL(external_decompose)

extern "C" __global__ void __launch_bounds__(128, 6)
    external_decompose_wide(uint32_t* digits, CiphertextsView y, CiphertextsView x, WideRingView ring,
                            GadgetView gadget) {
    decompose_differences(digits, y, x, ring, gadget);
}
HUSH_KERNEL(external_decompose_wide)

extern "C" __global__ void __launch_bounds__(256, 2)
    external_product(CiphertextsView out, const uint32_t* digits, const uint32_t* const* rgsw, CiphertextsView z,
                     RingView ring, GadgetView gadget) {
    multiply_digits(out, digits, rgsw, z, ring, gadget);
}
HUSH_KERNEL(external_product)

extern "C" __global__ void __launch_bounds__(128, 4)
    external_product_wide(CiphertextsView out, const uint32_t* digits, const uint32_t* const* rgsw, CiphertextsView z,
                          WideRingView ring, GadgetView gadget) {
    multiply_digits(out, digits, rgsw, z, ring, gadget);
}
HUSH_KERNEL(external_product_wide)
