// Step (7h) with a block for a plane (power_fold.cuh).
#include "power_fold.cuh"

namespace {

// The threads of a block: T threads for each of two limbs of the polynomials a and b.
template <int LOG>
constexpr uint32_t FOLD_THREADS = 2 * PAIR_THREADS<LOG>;

// The exchange of digits between the two halves, in shared memory.
template <int LOG>
struct BlockExchange {
    uint4* digits; // [half][v][thread], from this limb and thread on
    uint32_t half;

    HUSH_DEVICE uint4& place(uint32_t of, uint32_t v) const {
        return digits[of * (PAIR_WORDS<LOG> / 4) + v * NTT_THREADS<LOG>];
    }
    HUSH_DEVICE void give(const uint32_t (&x)[NTT_WORDS]) const {
#pragma unroll
        for (uint32_t v = 0; v < NTT_WORDS / 4; v++) {
            place(half, v) = make_uint4(x[4 * v], x[4 * v + 1], x[4 * v + 2], x[4 * v + 3]);
        }
        __syncthreads();
    }
    HUSH_DEVICE uint4 take(uint32_t v) const { return place(1 - half, v); }
};

// Folds a plane in block (unit) of 4 T threads. Shared memory: 8 N words, for four transforms, and the residues of both halves,
// whose memory the digits reuse.
template <int LOG>
HUSH_DEVICE void fold_by_block(const PowerFold& fold, const RingView& ring, const GadgetView& gadget,
                               uint32_t* shared) {
    constexpr uint32_t N = 1 << LOG;
    const uint32_t half = threadIdx.x / PAIR_THREADS<LOG>;
    const PairThread at = pair_thread<LOG>(threadIdx.x % PAIR_THREADS<LOG>);
    uint32_t* const residues = shared + 2 * PAIR_WORDS<LOG>;
    BlockExchange<LOG> exchange = {reinterpret_cast<uint4*>(residues + at.limb * N) + at.thread, half};
    fold_terms<LOG>(fold, ring, gadget, blockIdx.x, half, at, shared + (half * PAIR + at.limb) * N,
                    residues + half * PAIR_WORDS<LOG>, exchange);
}

} // namespace

#define HUSH_POWER_FOLD(name, log)                                     \
    extern "C" __global__ void __launch_bounds__(FOLD_THREADS<log>, 1) \
        name(PowerFold fold, RingView ring, GadgetView gadget) {       \
        HUSH_DYNAMIC_SHARED(uint32_t, shared);                         \
        fold_by_block<log>(fold, ring, gadget, shared);                \
    }                                                                  \
    HUSH_KERNEL(name)

HUSH_POWER_FOLD(power_fold_6, 6)
HUSH_POWER_FOLD(power_fold_8, 8)
HUSH_POWER_FOLD(power_fold_11, 11)
