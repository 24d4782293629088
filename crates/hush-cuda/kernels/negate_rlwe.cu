// `negate_rlwe`: polynomials whose residues are negated.
#include "ring.cuh"

// word = p - word modulo p, of `count` words of polynomials `[..][limb][slot]`. A thread has one word.
extern "C" __global__ void __launch_bounds__(256) negate_rlwe(uint32_t* words, RingView ring, uint64_t count) {
    uint64_t at = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at < count && words[at] != 0) {
        words[at] = ring.primes[uint32_t((at >> ring.log_degree) % ring.limbs)].p - words[at];
    }
}
HUSH_KERNEL(negate_rlwe)
