// Plaintexts to evaluation form. Block (plaintext, limb) of N / 16 threads lifts the N symbols of one plaintext and
// transforms them modulo one prime, in 4 N bytes of shared memory: `symbols` is [plaintext][N], `out`
// [plaintext][limb][N].
#include "lift.cuh"
#include "ntt.cuh"

namespace {

template <int LOG, class P>
HUSH_DEVICE void ntt_db(uint32_t* out, const uint32_t* symbols, const Lift& lift, const RingOf<P>& ring,
                        uint32_t* shared) {
    uint32_t x[NTT_WORDS];
    load_coefficients<LOG>(x, symbols + (size_t(blockIdx.x) << LOG), threadIdx.x);
#pragma unroll
    for (uint32_t i = 0; i < NTT_WORDS; i++) x[i] = lift_word(x[i], lift, ring.primes[blockIdx.y]);
    ntt_forward<LOG>(x, shared, ring, blockIdx.y, threadIdx.x);
    store_slots<LOG>(out + ((size_t(blockIdx.x) * ring.limbs + blockIdx.y) << LOG), x, threadIdx.x);
}

} // namespace

extern "C" __global__ void __launch_bounds__(NTT_THREADS<6>, 1)
    ntt_db_6(uint32_t* out, const uint32_t* symbols, Lift lift, RingView ring) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    ntt_db<6>(out, symbols, lift, ring, shared);
}
HUSH_KERNEL(ntt_db_6)

extern "C" __global__ void __launch_bounds__(NTT_THREADS<8>, 1)
    ntt_db_8(uint32_t* out, const uint32_t* symbols, Lift lift, RingView ring) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    ntt_db<8>(out, symbols, lift, ring, shared);
}
HUSH_KERNEL(ntt_db_8)

extern "C" __global__ void __launch_bounds__(NTT_THREADS<11>, 10)
    ntt_db_11(uint32_t* out, const uint32_t* symbols, Lift lift, RingView ring) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    ntt_db<11>(out, symbols, lift, ring, shared);
}
HUSH_KERNEL(ntt_db_11)

extern "C" __global__ void __launch_bounds__(NTT_THREADS<12>, 5)
    ntt_db_12(uint32_t* out, const uint32_t* symbols, Lift lift, RingView ring) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    ntt_db<12>(out, symbols, lift, ring, shared);
}
HUSH_KERNEL(ntt_db_12)

extern "C" __global__ void __launch_bounds__(NTT_THREADS<11>, 10)
    ntt_db_11_wide(uint32_t* out, const uint32_t* symbols, Lift lift, WideRingView ring) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    ntt_db<11>(out, symbols, lift, ring, shared);
}
HUSH_KERNEL(ntt_db_11_wide)
