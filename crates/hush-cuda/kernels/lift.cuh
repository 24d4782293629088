// Conversion of words to symbols modulo t = 2^bits, centred to -t/2..t/2, as residues.
#pragma once

#include "modular.cuh"

// The constants of a lift: t / 2 is added to a symbol, the higher bits are cut off, and t / 2 is subtracted modulo a prime.
// Mirrored by `Lift` in src/ring/ntt_db.rs.
struct Lift {
    uint32_t bits;    // of a symbol, 1 to 32
    uint32_t dropped; // bits of a word below the symbol
    uint32_t addend;  // half of t, and half a symbol if bits are dropped
};
static_assert(sizeof(Lift) == 12, "the layout of Lift");

// Returns the symbol plus half of t.
HUSH_DEVICE uint32_t positive_symbol(uint32_t word, const Lift& lift) {
    return (word + lift.addend) >> lift.dropped & (0xffffffffu >> (32 - lift.bits));
}

// Returns the canonical residue of a word's symbol.
template <class P>
HUSH_DEVICE uint32_t lift_word(uint32_t word, const Lift& lift, const P& prime) {
    uint32_t half = reduce_32(1u << (lift.bits - 1), prime);
    return sub_mod(reduce_32(positive_symbol(word, lift), prime), half, prime.p);
}
