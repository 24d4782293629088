// R = Z_Q[X]/(X^N + 1) for a product Q of up to four primes, as kernels see it. A polynomial is [limb][coefficient] or
// [limb][slot], canonical residues, in the slot order of hush_math's NttPlan: slot i is the value at
// psi^(2 reverse(i) + 1).
#pragma once

#include <type_traits>

#include "wide_modular.cuh"

constexpr uint32_t MAX_LIMBS = 4;

// Passed by value as a kernel argument; the pointers are on the device. Mirrored by `RingView` in src/ring/tables/mod.rs.
template <class P>
struct RingOf {
    uint32_t degree, log_degree; // N, log2 N
    uint32_t limbs;              // primes
    uint32_t reserved;
    P primes[MAX_LIMBS];
    // Constant factors (plantard_mul, constant_mul) of the transforms, in the order that ntt.cuh describes.
    const uint2* forward[MAX_LIMBS];
    const uint2* inverse[MAX_LIMBS];
    uint2 inverse_degree[MAX_LIMBS]; // the factor of 1/N
};

// A ring modulo primes below 2^31, and a ring with a prime above 2^31: such rings have N = 2048 and up to two primes.
using RingView = RingOf<Prime>;
using WideRingView = RingOf<WidePrime>;

// Mirrored in src/ring/tables/mod.rs.
static_assert(sizeof(Prime) == 16 && sizeof(RingView) == 176, "the layout of RingView");
static_assert(offsetof(RingView, primes) == 16 && offsetof(RingView, forward) == 80, "the layout of RingView");
static_assert(offsetof(RingView, inverse) == 112 && offsetof(RingView, inverse_degree) == 144, "the layout of RingView");
static_assert(sizeof(WideRingView) == sizeof(RingView), "the layout of WideRingView");

// Calls `step` with the number of limbs as a constant.
template <class Step>
HUSH_DEVICE void for_limbs(const RingView& ring, const Step& step) {
    switch (ring.limbs) {
    case 1: return step(std::integral_constant<uint32_t, 1>());
    case 2: return step(std::integral_constant<uint32_t, 2>());
    case 3: return step(std::integral_constant<uint32_t, 3>());
    default: return step(std::integral_constant<uint32_t, 4>());
    }
}

template <class Step>
HUSH_DEVICE void for_limbs(const WideRingView& ring, const Step& step) {
    return ring.limbs == 1 ? step(std::integral_constant<uint32_t, 1>()) : step(std::integral_constant<uint32_t, 2>());
}

// Calls `step` with the log2 of the degree as a constant. The degree is one of those of the parameter sets.
template <class Step>
HUSH_DEVICE void for_degree(const RingView& ring, const Step& step) {
    switch (ring.log_degree) {
    case 6: return step(std::integral_constant<int, 6>());
    case 8: return step(std::integral_constant<int, 8>());
    case 11: return step(std::integral_constant<int, 11>());
    case 12: return step(std::integral_constant<int, 12>());
    }
}

template <class Step>
HUSH_DEVICE void for_degree(const WideRingView&, const Step& step) {
    step(std::integral_constant<int, 11>());
}
