// The dropped prime of polynomials that wait in memory (drop_prime.cuh).
#include "drop_prime.cuh"

// Block (poly, part) with N / 16 threads: polynomial `poly` of from[part], [limb][slot] modulo Q_e, becomes that of
// to[part], modulo Q_1. `inverses` has 1/P modulo each kept prime, in Montgomery form.
extern "C" __global__ void __launch_bounds__(256, 3)
    drop_prime(uint32_t* const* to, const uint32_t* const* from, const uint32_t* inverses, RingView ring) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    for_degree(ring, [&](auto log) {
        constexpr int LOG = decltype(log)::value;
        const uint32_t kept = ring.limbs - 1;
        const uint32_t* x = from[blockIdx.y] + blockIdx.x * (size_t(ring.limbs) << LOG);
        uint32_t* out = to[blockIdx.y] + blockIdx.x * (size_t(kept) << LOG);
        uint32_t rest[NTT_WORDS];
        load_slots<LOG>(rest, x + (size_t(kept) << LOG), threadIdx.x);
        drop_last<LOG>(rest, shared, ring, [&](uint32_t limb, const uint32_t (&y)[NTT_WORDS]) {
            const Prime prime = ring.primes[limb];
            uint32_t words[NTT_WORDS];
            load_slots<LOG>(words, x + (size_t(limb) << LOG), threadIdx.x);
#pragma unroll
            for (uint32_t i = 0; i < NTT_WORDS; i++) {
                words[i] = mont_mul(sub_mod(words[i], y[i], prime.p), inverses[limb], prime);
            }
            store_slots<LOG>(out + (size_t(limb) << LOG), words, threadIdx.x);
        });
    });
}
HUSH_KERNEL(drop_prime)
