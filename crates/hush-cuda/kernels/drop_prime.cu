// The kernels `drop_prime`: polynomials in memory lose their last prime (drop_prime.cuh).
#include "drop_prime.cuh"

namespace {

// Returns x, as made_anew for primes of 32 bits: their kernel would otherwise spill a word.
template <class P>
HUSH_DEVICE uint32_t made_anew_if_wide(uint32_t x) {
    if constexpr (std::is_same<P, WidePrime>::value) {
        return made_anew(x);
    } else {
        return x;
    }
}

// Writes round(x / P) to polynomial `poly` of to[part], modulo Q_1, for polynomial `poly` of from[part], [limb][slot] modulo Q_e.
// Block (poly, part) with N / 16 threads. `inverses` has 1/P modulo each kept prime, in Montgomery form.
template <class P>
HUSH_DEVICE void drop(uint32_t* const* to, const uint32_t* const* from, const uint32_t* inverses,
                      const RingOf<P>& ring) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    for_degree(ring, [&](auto log) {
        constexpr int LOG = decltype(log)::value;
        const uint32_t kept = ring.limbs - 1;
        const uint32_t* x = from[blockIdx.y] + blockIdx.x * (size_t(ring.limbs) << LOG);
        uint32_t* out = to[blockIdx.y] + blockIdx.x * (size_t(kept) << LOG);
        uint32_t rest[NTT_WORDS];
        load_slots<LOG>(rest, x + (size_t(kept) << LOG), threadIdx.x);
        drop_last<LOG>(rest, shared, ring, [&](uint32_t limb, const uint32_t (&y)[NTT_WORDS]) {
            const P prime = ring.primes[made_anew_if_wide<P>(limb)];
            const uint32_t thread = made_anew_if_wide<P>(threadIdx.x);
            uint32_t words[NTT_WORDS];
            load_slots<LOG>(words, x + (size_t(limb) << LOG), thread);
#pragma unroll
            for (uint32_t i = 0; i < NTT_WORDS; i++) {
                words[i] = mont_mul(sub_mod(words[i], y[i], prime.p), inverses[limb], prime);
            }
            store_slots<LOG>(out + (size_t(limb) << LOG), words, thread);
        });
    });
}

} // namespace

extern "C" __global__ void __launch_bounds__(256, 3)
    drop_prime(uint32_t* const* to, const uint32_t* const* from, const uint32_t* inverses, RingView ring) {
    drop(to, from, inverses, ring);
}
HUSH_KERNEL(drop_prime)

extern "C" __global__ void __launch_bounds__(128, 6)
    drop_prime_wide(uint32_t* const* to, const uint32_t* const* from, const uint32_t* inverses, WideRingView ring) {
    drop(to, from, inverses, ring);
}
HUSH_KERNEL(drop_prime_wide)
