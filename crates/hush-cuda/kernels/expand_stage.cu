// A level of an expansion in one launch: what expand_decompose and expand_children do, with digits in shared memory
// (stage-level; GPIR, section 4.1).
//
// Block (node, query) with N / 16 threads. Shared memory: a transform, then the digits (gadget.cuh, stages). A kernel for each
// degree: one for all would have no registers for it.
#include "expand.cuh"

namespace {

template <int LOG, class P>
HUSH_DEVICE void expand_stage(uint32_t* shared, uint32_t* children, const uint32_t* nodes, const uint32_t* const* keys,
                              uint64_t key_at, const uint32_t* powers, uint32_t level, uint32_t needed,
                              const RingOf<P>& ring, const GadgetView& gadget) {
    const uint32_t* a = nodes + (size_t(blockIdx.y) * gridDim.x + blockIdx.x) * 2 * poly_words(ring);
    uint32_t* digits = shared + (1u << LOG);
    decompose_at<LOG>(digits, ring, gadget, digits, Image{a, level_exponent(level, ring), ring});
    __syncthreads();
#pragma unroll 1
    for (uint32_t limb = 0; limb < ring.limbs; limb++) {
        auto to = [&] {
            return children_of(children, nodes, powers, level, needed, made_anew(blockIdx.x), blockIdx.y, gridDim.x,
                               limb, ring);
        };
        switch_image(to, level, limb, ring, [&](const auto& source, const auto& sink) {
            gadget_product_at<LOG, 2>(InTurn<LOG>{digits}, keys[blockIdx.y] + key_at, gadget.digits, limb, ring, gadget,
                                      shared, source, sink);
        });
    }
}

} // namespace

extern "C" __global__ void __launch_bounds__(4, 1)
    expand_stage_6(uint32_t* children, const uint32_t* nodes, const uint32_t* const* keys, uint64_t key_at,
                    const uint32_t* powers, uint32_t level, uint32_t needed, RingView ring, GadgetView gadget) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    expand_stage<6>(shared, children, nodes, keys, key_at, powers, level, needed, ring, gadget);
}
HUSH_KERNEL(expand_stage_6)

extern "C" __global__ void __launch_bounds__(16, 1)
    expand_stage_8(uint32_t* children, const uint32_t* nodes, const uint32_t* const* keys, uint64_t key_at,
                    const uint32_t* powers, uint32_t level, uint32_t needed, RingView ring, GadgetView gadget) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    expand_stage<8>(shared, children, nodes, keys, key_at, powers, level, needed, ring, gadget);
}
HUSH_KERNEL(expand_stage_8)

extern "C" __global__ void __launch_bounds__(128, 4)
    expand_stage_11(uint32_t* children, const uint32_t* nodes, const uint32_t* const* keys, uint64_t key_at,
                    const uint32_t* powers, uint32_t level, uint32_t needed, RingView ring, GadgetView gadget) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    expand_stage<11>(shared, children, nodes, keys, key_at, powers, level, needed, ring, gadget);
}
HUSH_KERNEL(expand_stage_11)

extern "C" __global__ void __launch_bounds__(256, 2)
    expand_stage_12(uint32_t* children, const uint32_t* nodes, const uint32_t* const* keys, uint64_t key_at,
                    const uint32_t* powers, uint32_t level, uint32_t needed, RingView ring, GadgetView gadget) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    expand_stage<12>(shared, children, nodes, keys, key_at, powers, level, needed, ring, gadget);
}
HUSH_KERNEL(expand_stage_12)

extern "C" __global__ void __launch_bounds__(128, 3)
    expand_stage_11_wide(uint32_t* children, const uint32_t* nodes, const uint32_t* const* keys, uint64_t key_at,
                         const uint32_t* powers, uint32_t level, uint32_t needed, WideRingView ring, GadgetView gadget) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    expand_stage<11>(shared, children, nodes, keys, key_at, powers, level, needed, ring, gadget);
}
HUSH_KERNEL(expand_stage_11_wide)
