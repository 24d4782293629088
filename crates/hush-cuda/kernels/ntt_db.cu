// Conversion of plaintexts to evaluation form: out = NTT(lift(symbols)). Block (plaintext, limb) of N / 16 threads lifts the N
// symbols of one plaintext and transforms them modulo one prime, in 4 N bytes of shared memory. `symbols` is [plaintext][N], `out`
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

#define HUSH_NTT_DB(name, log, blocks, Ring)                                 \
    extern "C" __global__ void __launch_bounds__(NTT_THREADS<log>, blocks)   \
        name(uint32_t* out, const uint32_t* symbols, Lift lift, Ring ring) { \
        HUSH_DYNAMIC_SHARED(uint32_t, shared);                               \
        ntt_db<log>(out, symbols, lift, ring, shared);                       \
    }                                                                        \
    HUSH_KERNEL(name)

HUSH_NTT_DB(ntt_db_6, 6, 1, RingView)
HUSH_NTT_DB(ntt_db_8, 8, 1, RingView)
HUSH_NTT_DB(ntt_db_11, 11, 10, RingView)
HUSH_NTT_DB(ntt_db_12, 12, 5, RingView)
HUSH_NTT_DB(ntt_db_11_wide, 11, 10, WideRingView)
