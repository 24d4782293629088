// round(x / P) modulo Q_1, from x modulo Q_e = Q_1 P: the last prime P, smaller than the others, goes.
#include "gadget.cuh"

namespace {

// The centred residue modulo P of r, modulo p. With P = 2 half + 1, both r + half for r <= half and r - half - 1 for
// others are in [0, P), and half too large.
template <class Modulus>
HUSH_DEVICE uint32_t centred(uint32_t r, Modulus dropped, Modulus p) {
    const uint32_t half = value_of(dropped) / 2;
    return sub_mod(sub_mod(r, half + 1, dropped), half, p);
}

// Block (poly, part) with N / 16 threads: polynomial `poly` of from[part], [limb][slot] modulo Q_e, becomes that of
// to[part], modulo Q_1. `inverses` has 1/P modulo each kept prime, in Montgomery form.
template <class P>
HUSH_DEVICE void drop(uint32_t* const* to, const uint32_t* const* from, const uint32_t* inverses,
                      const RingOf<P>& ring) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    for_degree(ring, [&](auto log) {
        constexpr int LOG = decltype(log)::value;
        const uint32_t kept = ring.limbs - 1;
        const auto dropped = ring.primes[kept].p;
        const uint32_t* x = from[blockIdx.y] + blockIdx.x * (size_t(ring.limbs) << LOG);
        uint32_t* out = to[blockIdx.y] + blockIdx.x * (size_t(kept) << LOG);
        uint32_t rest[NTT_WORDS];
        load_slots<LOG>(rest, x + (size_t(kept) << LOG), threadIdx.x);
        ntt_inverse<LOG>(rest, shared, ring, kept, threadIdx.x);
        for (uint32_t limb = 0; limb < kept; limb++, x += 1u << LOG, out += 1u << LOG) {
            const P prime = ring.primes[limb];
            uint32_t y[NTT_WORDS];
#pragma unroll
            for (uint32_t i = 0; i < NTT_WORDS; i++) y[i] = centred(rest[i], dropped, prime.p);
            ntt_forward<LOG>(y, shared, ring, limb, threadIdx.x);
            uint32_t words[NTT_WORDS];
            load_slots<LOG>(words, x, threadIdx.x);
#pragma unroll
            for (uint32_t i = 0; i < NTT_WORDS; i++) {
                words[i] = mont_mul(sub_mod(words[i], y[i], prime.p), inverses[limb], prime);
            }
            store_slots<LOG>(out, words, threadIdx.x);
        }
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
