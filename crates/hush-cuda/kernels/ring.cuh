// R = Z_Q[X]/(X^N + 1) for a product Q of up to four primes, as kernels see it. A polynomial is [limb][coefficient] or
// [limb][slot], canonical residues, in the slot order of hush_math's NttPlan: slot i is the value at
// psi^(2 reverse(i) + 1).
#pragma once

#include "modular.cuh"

constexpr uint32_t MAX_LIMBS = 4;

// Passed by value as a kernel argument; the pointers are on the device. Mirrored by `RingView` in src/ring/tables.rs.
struct RingView {
    uint32_t degree, log_degree; // N, log2 N
    uint32_t limbs;              // primes
    uint32_t reserved;
    Prime primes[MAX_LIMBS];
    // Plantard factors (plantard_mul) of the transforms, in the order that ntt.cuh describes.
    const uint2* forward[MAX_LIMBS];
    const uint2* inverse[MAX_LIMBS];
    uint2 inverse_degree[MAX_LIMBS]; // Plantard factor of 1/N
};

// Mirrored in src/ring/tables.rs.
static_assert(sizeof(Prime) == 16 && sizeof(RingView) == 176, "the layout of RingView");
static_assert(offsetof(RingView, primes) == 16 && offsetof(RingView, forward) == 80, "the layout of RingView");
static_assert(offsetof(RingView, inverse) == 112 && offsetof(RingView, inverse_degree) == 144, "the layout of RingView");
