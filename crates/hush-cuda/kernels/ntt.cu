// Transforms of a batch of polynomials [poly][limb][N], from `in` to `out`, which may be the same. Block (poly, limb)
// transforms one limb of one polynomial with N / 16 threads, in 4 N bytes of shared memory.
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

// Canonical coefficients to canonical slots.
extern "C" __global__ void __launch_bounds__(NTT_THREADS<6>, 1)
    ntt_forward_6(uint32_t* out, const uint32_t* in, RingView ring) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    forward_limb<6>(out, in, ring, shared);
}
HUSH_KERNEL(ntt_forward_6)

extern "C" __global__ void __launch_bounds__(NTT_THREADS<8>, 1)
    ntt_forward_8(uint32_t* out, const uint32_t* in, RingView ring) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    forward_limb<8>(out, in, ring, shared);
}
HUSH_KERNEL(ntt_forward_8)

extern "C" __global__ void __launch_bounds__(NTT_THREADS<11>, 10)
    ntt_forward_11(uint32_t* out, const uint32_t* in, RingView ring) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    forward_limb<11>(out, in, ring, shared);
}
HUSH_KERNEL(ntt_forward_11)

extern "C" __global__ void __launch_bounds__(NTT_THREADS<12>, 5)
    ntt_forward_12(uint32_t* out, const uint32_t* in, RingView ring) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    forward_limb<12>(out, in, ring, shared);
}
HUSH_KERNEL(ntt_forward_12)

extern "C" __global__ void __launch_bounds__(NTT_THREADS<11>, 10)
    ntt_forward_11_wide(uint32_t* out, const uint32_t* in, WideRingView ring) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    forward_limb<11>(out, in, ring, shared);
}
HUSH_KERNEL(ntt_forward_11_wide)

// Canonical slots to canonical coefficients.
extern "C" __global__ void __launch_bounds__(NTT_THREADS<6>, 1)
    ntt_inverse_6(uint32_t* out, const uint32_t* in, RingView ring) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    inverse_limb<6>(out, in, ring, shared);
}
HUSH_KERNEL(ntt_inverse_6)

extern "C" __global__ void __launch_bounds__(NTT_THREADS<8>, 1)
    ntt_inverse_8(uint32_t* out, const uint32_t* in, RingView ring) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    inverse_limb<8>(out, in, ring, shared);
}
HUSH_KERNEL(ntt_inverse_8)

extern "C" __global__ void __launch_bounds__(NTT_THREADS<11>, 10)
    ntt_inverse_11(uint32_t* out, const uint32_t* in, RingView ring) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    inverse_limb<11>(out, in, ring, shared);
}
HUSH_KERNEL(ntt_inverse_11)

extern "C" __global__ void __launch_bounds__(NTT_THREADS<12>, 5)
    ntt_inverse_12(uint32_t* out, const uint32_t* in, RingView ring) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    inverse_limb<12>(out, in, ring, shared);
}
HUSH_KERNEL(ntt_inverse_12)

extern "C" __global__ void __launch_bounds__(NTT_THREADS<11>, 10)
    ntt_inverse_11_wide(uint32_t* out, const uint32_t* in, WideRingView ring) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    inverse_limb<11>(out, in, ring, shared);
}
HUSH_KERNEL(ntt_inverse_11_wide)
