// A polynomial modulo Q = p_0 p_1 in the registers of 2 T threads, T = N / 16. T threads hold limb 0 and T hold limb 1, in the
// order of ntt.cuh, slots as neighbours. Where coefficients are needed as integers, the two groups exchange their residues.
#pragma once

#include "gadget.cuh"
#include "ntt.cuh"

constexpr uint32_t PAIR = 2; // limbs

// The number of threads that hold a polynomial.
template <int LOG>
constexpr uint32_t PAIR_THREADS = PAIR * NTT_THREADS<LOG>;

// The number of words of a polynomial, and of the shared memory that an exchange takes.
template <int LOG>
constexpr uint32_t PAIR_WORDS = PAIR << LOG;

// The limb that a thread holds, and its index among the T threads of that limb.
struct PairThread {
    uint32_t limb, thread;
};

// Returns the limb and thread of thread `index` of the 2 T.
template <int LOG>
HUSH_DEVICE PairThread pair_thread(uint32_t index) {
    return {index / NTT_THREADS<LOG>, index % NTT_THREADS<LOG>};
}

// Loads the 16 neighbouring slots of a thread from a limb in global memory, aligned to 16 bytes.
HUSH_DEVICE void load_neighbours(uint32_t (&x)[NTT_WORDS], const uint32_t* limb, uint32_t thread) {
#pragma unroll
    for (uint32_t v = 0; v < NTT_WORDS / 4; v++) {
        const uint4 words = reinterpret_cast<const uint4*>(limb + thread * NTT_WORDS)[v];
        x[4 * v] = words.x, x[4 * v + 1] = words.y, x[4 * v + 2] = words.z, x[4 * v + 3] = words.w;
    }
}

// Stores the 16 neighbouring slots of a thread to a limb in global memory, aligned to 16 bytes.
HUSH_DEVICE void store_neighbours(uint32_t* limb, const uint32_t (&x)[NTT_WORDS], uint32_t thread) {
#pragma unroll
    for (uint32_t v = 0; v < NTT_WORDS / 4; v++) {
        reinterpret_cast<uint4*>(limb + thread * NTT_WORDS)[v] =
            make_uint4(x[4 * v], x[4 * v + 1], x[4 * v + 2], x[4 * v + 3]);
    }
}

// Shares the coefficients of both limbs with all threads of the polynomial: `residues` becomes [limb][coefficient]. All threads of
// the block must call it. Earlier contents of `residues` must have been read before the last barrier.
template <int LOG>
HUSH_DEVICE void share_residues(uint32_t* residues, const uint32_t (&x)[NTT_WORDS], PairThread at) {
    store_coefficients<LOG>(residues + (at.limb << LOG), x, at.thread);
    __syncthreads();
}

// Replaces coefficients by their digits for a gadget of one digit, both as canonical residues. The rules are those of
// share_residues.
template <int LOG>
HUSH_DEVICE void take_digit(uint32_t (&x)[NTT_WORDS], uint32_t* residues, const RingView& ring,
                            const GadgetView& gadget, PairThread at) {
    share_residues<LOG>(residues, x, at);
    const uint32_t p = ring.primes[at.limb].p;
#pragma unroll
    for (uint32_t i = 0; i < NTT_WORDS; i++) {
        const uint32_t* first = residues + at.thread + i * NTT_THREADS<LOG>;
        const uint32_t pair[PAIR] = {first[0], first[1 << LOG]};
        const Shifted<PAIR> value[] = {shifted_value<PAIR>(pair, ring.primes, gadget)};
        uint32_t digit[1];
        shifted_digits(digit, value, gadget.dropped, gadget);
        x[i] = digit_residue(digit[0], gadget, p);
    }
}
