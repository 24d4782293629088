// External products in one launch: what external_decompose and external_product do, with digits in shared memory
// (stage-level; GPIR, section 4.1).
//
// Block (item, plane, query) with N / 16 threads. Shared memory: a transform, then the digits of both halves (gadget.cuh,
// stages). A kernel for each degree: one for all would have no registers for it.
#include "external_product.cuh"

namespace {

template <int LOG, class P>
HUSH_DEVICE void external_stage(uint32_t* shared, const CiphertextsView& out, const CiphertextsView& y,
                                const CiphertextsView& x, const uint32_t* const* rgsw, const CiphertextsView& z,
                                const RingOf<P>& ring, const GadgetView& gadget) {
    uint32_t* digits = shared + (1u << LOG);
    auto at = [&](const CiphertextsView& view) { return item_at(view, blockIdx.z, blockIdx.y, made_anew(blockIdx.x)); };
#pragma unroll 1
    for (uint32_t half = 0; half < 2; half++) {
        uint32_t* own = digits + (half * gadget.digits << LOG);
        const Difference load = {at(y), at(x), half * poly_words(ring) + 4 * threadIdx.x, ring};
        decompose_at<LOG>(own, ring, gadget, own, load);
    }
    __syncthreads();
#pragma unroll 1
    for (uint32_t limb = 0; limb < ring.limbs; limb++) {
        auto product = [&](const auto& source, const auto& sink) {
            gadget_product_at<LOG, 2>(InTurn<LOG>{digits}, rgsw[blockIdx.z], 2 * gadget.digits, limb, ring, gadget,
                                      shared, source, sink);
        };
        multiply([&] { return at(out); }, [&] { return at(z); }, limb, ring, product);
    }
}

} // namespace

extern "C" __global__ void __launch_bounds__(4, 1)
    external_stage_6(CiphertextsView out, CiphertextsView y, CiphertextsView x, const uint32_t* const* rgsw,
                      CiphertextsView z, RingView ring, GadgetView gadget) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    external_stage<6>(shared, out, y, x, rgsw, z, ring, gadget);
}
HUSH_KERNEL(external_stage_6)

extern "C" __global__ void __launch_bounds__(16, 1)
    external_stage_8(CiphertextsView out, CiphertextsView y, CiphertextsView x, const uint32_t* const* rgsw,
                      CiphertextsView z, RingView ring, GadgetView gadget) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    external_stage<8>(shared, out, y, x, rgsw, z, ring, gadget);
}
HUSH_KERNEL(external_stage_8)

extern "C" __global__ void __launch_bounds__(128, 4)
    external_stage_11(CiphertextsView out, CiphertextsView y, CiphertextsView x, const uint32_t* const* rgsw,
                      CiphertextsView z, RingView ring, GadgetView gadget) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    external_stage<11>(shared, out, y, x, rgsw, z, ring, gadget);
}
HUSH_KERNEL(external_stage_11)

extern "C" __global__ void __launch_bounds__(256, 2)
    external_stage_12(CiphertextsView out, CiphertextsView y, CiphertextsView x, const uint32_t* const* rgsw,
                      CiphertextsView z, RingView ring, GadgetView gadget) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    external_stage<12>(shared, out, y, x, rgsw, z, ring, gadget);
}
HUSH_KERNEL(external_stage_12)

extern "C" __global__ void __launch_bounds__(128, 3)
    external_stage_11_wide(CiphertextsView out, CiphertextsView y, CiphertextsView x, const uint32_t* const* rgsw,
                           CiphertextsView z, WideRingView ring, GadgetView gadget) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    external_stage<11>(shared, out, y, x, rgsw, z, ring, gadget);
}
HUSH_KERNEL(external_stage_11_wide)
