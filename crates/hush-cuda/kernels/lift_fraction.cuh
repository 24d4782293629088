// A lift of fractions b / 2^32 to fractions of Q: round(b Q / 2^32) / divisor modulo each prime of Q.
//
// With rest = b Q + 2^31 mod 2^32 the rounded lift is (b Q + 2^31 - rest) / 2^32, an integer. Modulo a prime of Q the
// first term vanishes, so one Montgomery reduction suffices.
#pragma once

#include "ring.cuh"

// A kernel argument by value. Mirrored by `FractionLift` in src/column/views.rs.
struct FractionLift {
    uint32_t product;            // Q mod 2^32
    uint32_t factor[MAX_LIMBS];  // 1 / divisor mod p
    uint32_t half[MAX_LIMBS];    // 2^31 / 2^32 / divisor mod p
};
static_assert(sizeof(FractionLift) == 36, "the layout of FractionLift");

// Returns the lift of a word modulo one prime, canonical.
HUSH_DEVICE uint32_t lift_fraction(uint32_t word, const FractionLift& lift, const Prime& prime, uint32_t limb) {
    const uint32_t rest = word * lift.product + (1u << 31);
    return sub_mod(lift.half[limb], mont_mul(rest, lift.factor[limb], prime), prime.p);
}
