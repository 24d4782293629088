// External products in one launch, with the digits in shared memory (stage-level; GPIR, section 4.1). It does the work of
// external_decompose and external_product.
//
// Block (item, plane, query) with N / 16 threads. Shared memory: a transform, then the digits of both halves (gadget.cuh,
// stages). Each degree has its own kernel: one kernel for all degrees would not have enough registers.
#include "external_product.cuh"

namespace {

// Computes the block's item, out = C [x] (y - x) + z: decomposes both halves of y - x, then multiplies modulo each limb.
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

#define HUSH_EXTERNAL_STAGE(name, log, blocks, Ring)                                                 \
    extern "C" __global__ void __launch_bounds__(NTT_THREADS<log>, blocks)                           \
        name(CiphertextsView out, CiphertextsView y, CiphertextsView x, const uint32_t* const* rgsw, \
             CiphertextsView z, Ring ring, GadgetView gadget) {                                      \
        HUSH_DYNAMIC_SHARED(uint32_t, shared);                                                       \
        external_stage<log>(shared, out, y, x, rgsw, z, ring, gadget);                               \
    }                                                                                                \
    HUSH_KERNEL(name)

HUSH_EXTERNAL_STAGE(external_stage_6, 6, 1, RingView)
HUSH_EXTERNAL_STAGE(external_stage_8, 8, 1, RingView)
HUSH_EXTERNAL_STAGE(external_stage_11, 11, 4, RingView)
HUSH_EXTERNAL_STAGE(external_stage_12, 12, 2, RingView)
HUSH_EXTERNAL_STAGE(external_stage_11_wide, 11, 3, WideRingView)
