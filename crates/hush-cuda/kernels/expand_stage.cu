// A level of an expansion in one launch, with the digits in shared memory (stage-level; GPIR, section 4.1). It does the work of
// expand_decompose and expand_children.
//
// Block (node, query) with N / 16 threads. Shared memory: a transform, then the digits (gadget.cuh, stages). Each degree has its
// own kernel: one kernel for all degrees would not have enough registers.
#include "expand.cuh"

namespace {

// Computes both children of the block's node: decomposes the image of half a, then multiplies the digits modulo each limb.
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

#define HUSH_EXPAND_STAGE(name, log, blocks, Ring)                                                     \
    extern "C" __global__ void __launch_bounds__(NTT_THREADS<log>, blocks)                             \
        name(uint32_t* children, const uint32_t* nodes, const uint32_t* const* keys, uint64_t key_at,  \
             const uint32_t* powers, uint32_t level, uint32_t needed, Ring ring, GadgetView gadget) {  \
        HUSH_DYNAMIC_SHARED(uint32_t, shared);                                                         \
        expand_stage<log>(shared, children, nodes, keys, key_at, powers, level, needed, ring, gadget); \
    }                                                                                                  \
    HUSH_KERNEL(name)

HUSH_EXPAND_STAGE(expand_stage_6, 6, 1, RingView)
HUSH_EXPAND_STAGE(expand_stage_8, 8, 1, RingView)
HUSH_EXPAND_STAGE(expand_stage_11, 11, 4, RingView)
HUSH_EXPAND_STAGE(expand_stage_12, 12, 2, RingView)
HUSH_EXPAND_STAGE(expand_stage_11_wide, 11, 3, WideRingView)
