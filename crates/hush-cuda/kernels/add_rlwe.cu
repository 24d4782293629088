// The kernel `add_rlwe`: sum += part, for polynomials.
#include "ring.cuh"

// Adds `count` vectors of four words of polynomials `[..][limb][slot]`: sum += part. Both arrays begin at the first limb of a
// polynomial. A thread adds four words at a time.
extern "C" __global__ void __launch_bounds__(256)
    add_rlwe(uint4* sum, const uint4* part, RingView ring, uint64_t count) {
    uint64_t stride = uint64_t(gridDim.x) * blockDim.x;
    for (uint64_t at = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; at < count; at += stride) {
        uint32_t p = ring.primes[uint32_t((at * 4 >> ring.log_degree) % ring.limbs)].p;
        uint4 x = sum[at], y = part[at];
        sum[at] = make_uint4(add_mod(x.x, y.x, p), add_mod(x.y, y.y, p), add_mod(x.z, y.z, p), add_mod(x.w, y.w, p));
    }
}
HUSH_KERNEL(add_rlwe)
