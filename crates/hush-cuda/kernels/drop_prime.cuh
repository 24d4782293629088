// Rounded division by the last prime P, smaller than the others: round(x / P) modulo Q_1, from x modulo Q_e = Q_1 P. With y the
// centred residue of x modulo P, the result is (x - y) / P.
#pragma once

#include "gadget.cuh"

namespace {

// Returns the centred residue modulo P of r, modulo p. With P = 2 half + 1, both r + half for r <= half and r - half - 1 for larger
// r are in [0, P), and each is the centred residue plus half.
template <class Modulus>
HUSH_DEVICE uint32_t centred(uint32_t r, Modulus dropped, Modulus p) {
    const uint32_t half = value_of(dropped) / 2;
    return sub_mod(sub_mod(r, half + 1, dropped), half, p);
}

// Drops P from a polynomial with a block of N / 16 threads. `rest` has the slots of x modulo P of the calling thread (ntt.cuh).
// `divide(limb, y)` takes the slots of the centred residue y modulo each kept prime; it subtracts them from x and divides by P.
// `shared` is N words.
template <int LOG, class P, class Divide>
HUSH_DEVICE void drop_last(uint32_t (&rest)[NTT_WORDS], uint32_t* shared, const RingOf<P>& ring, const Divide& divide) {
    const uint32_t kept = ring.limbs - 1;
    const auto dropped = ring.primes[kept].p;
    ntt_inverse<LOG>(rest, shared, ring, kept, threadIdx.x);
#pragma unroll 1
    for (uint32_t limb = 0; limb < kept; limb++) {
        uint32_t y[NTT_WORDS];
#pragma unroll
        for (uint32_t i = 0; i < NTT_WORDS; i++) y[i] = centred(rest[i], dropped, ring.primes[limb].p);
        ntt_forward<LOG>(y, shared, ring, limb, threadIdx.x);
        divide(limb, y);
    }
}

} // namespace
