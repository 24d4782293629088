// Transforms of a batch of polynomials [poly][limb][N], from `in` to `out`, which may be the same. Block (poly, limb)
// transforms one limb of one polynomial with N / 16 threads (ntt.cuh), in 4 N bytes of shared memory.
#include "ntt.cuh"

namespace {

template <int LOG, class P>
HUSH_DEVICE size_t limb_offset(const RingOf<P>& ring) {
    return (size_t(blockIdx.x) * ring.limbs + blockIdx.y) << LOG;
}

template <int LOG, class P>
HUSH_DEVICE void forward_limb(uint32_t* out, const uint32_t* in, const RingOf<P>& ring, uint32_t* shared) {
    uint32_t x[NTT_WORDS];
    load_coefficients<LOG>(x, in + limb_offset<LOG>(ring), threadIdx.x);
    ntt_forward<LOG>(x, shared, ring, blockIdx.y, threadIdx.x);
    store_slots<LOG>(out + limb_offset<LOG>(ring), x, threadIdx.x);
}

template <int LOG, class P>
HUSH_DEVICE void inverse_limb(uint32_t* out, const uint32_t* in, const RingOf<P>& ring, uint32_t* shared) {
    uint32_t x[NTT_WORDS];
    load_slots<LOG>(x, in + limb_offset<LOG>(ring), threadIdx.x);
    ntt_inverse<LOG>(x, shared, ring, blockIdx.y, threadIdx.x);
    store_coefficients<LOG>(out + limb_offset<LOG>(ring), x, threadIdx.x);
}

} // namespace

// The kernels ntt_forward_*, from canonical coefficients to canonical slots, and ntt_inverse_*, back.
#define HUSH_NTT(name, limb, log, blocks, Ring)                            \
    extern "C" __global__ void __launch_bounds__(NTT_THREADS<log>, blocks) \
        name(uint32_t* out, const uint32_t* in, Ring ring) {               \
        HUSH_DYNAMIC_SHARED(uint32_t, shared);                             \
        limb<log>(out, in, ring, shared);                                  \
    }                                                                      \
    HUSH_KERNEL(name)

HUSH_NTT(ntt_forward_6, forward_limb, 6, 1, RingView)
HUSH_NTT(ntt_forward_8, forward_limb, 8, 1, RingView)
HUSH_NTT(ntt_forward_11, forward_limb, 11, 10, RingView)
HUSH_NTT(ntt_forward_12, forward_limb, 12, 5, RingView)
HUSH_NTT(ntt_forward_11_wide, forward_limb, 11, 10, WideRingView)
HUSH_NTT(ntt_inverse_6, inverse_limb, 6, 1, RingView)
HUSH_NTT(ntt_inverse_8, inverse_limb, 8, 1, RingView)
HUSH_NTT(ntt_inverse_11, inverse_limb, 11, 10, RingView)
HUSH_NTT(ntt_inverse_12, inverse_limb, 12, 5, RingView)
HUSH_NTT(ntt_inverse_11_wide, inverse_limb, 11, 10, WideRingView)
