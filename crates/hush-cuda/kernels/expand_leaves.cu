// The last level of an expansion in one launch. It does the work of expand_stage and drop_prime. Selectors are written modulo Q_1.
// Leaves that become rows of RGSW ciphertexts are written modulo Q_e, since their bottom rows are made from them.
//
// To drop P from a leaf c + c' or (c - c') X^(-2^level), its centred residue modulo P is subtracted. X^(-2^level) permutes
// coefficients and changes signs, and so do centred residues modulo P, which is odd. So the residue of the odd leaf is that of
// c - c', times X^(-2^level), and no product modulo P is needed.
//
// Block (node, query) with N / 16 threads, and shared memory as for expand_stage. c' is kept until all digits are multiplied.
// Modulo P, it replaces the digits, which are two polynomials or more. Modulo the kept primes, it is where the even leaf will be,
// which is made last. Each degree has its own kernel, as in expand_stage.cu.
#include "drop_prime.cuh"
#include "expand.cuh"

namespace {

// The addresses of the leaves.
struct Leaves {
    uint32_t* const* selectors; // [query] to [leaf][a, b][kept limb][slot], of `rows` leaves
    uint32_t* others;           // [query][leaf from `rows` on][a, b][limb][slot]
    uint32_t rows, needed;      // selectors, and all leaves of a query
};

// Returns the address of a limb of one half of a leaf of a query.
template <int LOG>
HUSH_DEVICE uint32_t* leaf_limb(const Leaves& leaves, uint32_t leaf, uint32_t query, uint32_t half, uint32_t limb,
                                uint32_t limbs) {
    if (leaf < leaves.rows) {
        const uint32_t kept = limbs - 1;
        return leaves.selectors[query] + (size_t((2 * leaf + half) * kept + limb) << LOG);
    }
    const size_t other = size_t(query) * (leaves.needed - leaves.rows) + leaf - leaves.rows;
    return leaves.others + (((2 * other + half) * limbs + limb) << LOG);
}

// Adds y to x, or subtracts y from x.
template <class Modulus>
HUSH_DEVICE void add_or_sub(uint32_t (&x)[NTT_WORDS], const uint32_t (&y)[NTT_WORDS], bool add, Modulus p) {
    if (add) {
#pragma unroll
        for (uint32_t i = 0; i < NTT_WORDS; i++) x[i] = add_mod(x[i], y[i], p);
    } else {
#pragma unroll
        for (uint32_t i = 0; i < NTT_WORDS; i++) x[i] = sub_mod(x[i], y[i], p);
    }
}

// Computes both leaves of the block's node:
//     c' = image of the node, switched to its key, modulo each limb
//     for each half of the odd, then of the even leaf: leaf = (c -+ c' - y) factor
// For a selector, y is the centred residue modulo P, and the factor 1 / P; otherwise y = 0. The factor of the odd leaf includes
// X^(-2^level).
template <int LOG, class P>
HUSH_DEVICE void expand_leaves(uint32_t* shared, const Leaves& leaves, const uint32_t* inverses, const uint32_t* nodes,
                               const uint32_t* const* keys, uint64_t key_at, const uint32_t* powers, uint32_t level,
                               const RingOf<P>& ring, const GadgetView& gadget) {
    const uint32_t kept = ring.limbs - 1;
    uint32_t* digits = shared + (1u << LOG);
    auto node = [&](uint32_t half, uint32_t limb) {
        const size_t at = size_t(blockIdx.y) * gridDim.x + made_anew(blockIdx.x);
        return nodes + at * 2 * poly_words(ring) + (size_t(half * ring.limbs + limb) << LOG);
    };
    auto leaf = [&](uint32_t odd, uint32_t half, uint32_t limb) {
        return leaf_limb<LOG>(leaves, 2 * made_anew(blockIdx.x) + odd, blockIdx.y, half, limb, ring.limbs);
    };
    // The address where c' is kept. (Recomputed indices take no registers from the products.)
    auto image = [&](uint32_t half, uint32_t limb) {
        return limb == kept ? digits + (half << LOG) : leaf(0, half, limb);
    };

    decompose_at<LOG>(digits, ring, gadget, digits, Image{node(0, 0), level_exponent(level, ring), ring});
    __syncthreads();
#pragma unroll 1
    for (uint32_t limb = 0; limb < ring.limbs; limb++) {
        auto given = [&](uint32_t half, uint32_t vector) {
            return image_of_b(node(0, limb), half, made_anew(vector), level, ring);
        };
        // The last digit was read before the last barrier.
        auto wait = [&](uint32_t half, uint32_t vector, uint4 sums) {
            store_vector(image(half, made_anew(limb)), made_anew(vector), sums);
        };
        gadget_product_at<LOG, 2>(InTurn<LOG>{digits}, keys[blockIdx.y] + key_at, gadget.digits, limb, ring, gadget,
                                  shared, given, wait);
    }
    // Each thread reads the slots of c' that it wrote.
#pragma unroll 1
    for (uint32_t item = 0; item < 4; item++) {
        const uint32_t half = item / 2;
        const bool odd = item % 2 == 0;
        if (2 * blockIdx.x + odd >= leaves.needed) continue;
        // Stores (c + c' - y) factor, or (c - c' - y) factor X^(-2^level).
        auto put = [&](uint32_t limb, uint32_t (&y)[NTT_WORDS], uint32_t factor) {
            const P prime = ring.primes[limb];
            uint32_t words[NTT_WORDS];
            load_slots<LOG>(words, image(half, limb), threadIdx.x);
            add_or_sub(y, words, odd, prime.p);
            load_slots<LOG>(words, node(half, limb), threadIdx.x);
            add_or_sub(words, y, false, prime.p);
#pragma unroll
            for (uint32_t j = 0; j < NTT_WORDS / 4; j++) {
                const uint32_t slot = 4 * (threadIdx.x + j * NTT_THREADS<LOG>);
                uint32_t power = prime.r1;
                if (odd) {
                    power = monomial(powers + (size_t(limb) << LOG), slot, level, ring);
                    if (is_turned(slot, level)) power = value_of(prime.p) - power;
                }
                const uint32_t scale = mont_mul(factor, power, prime);
#pragma unroll
                for (uint32_t k = 0; k < 4; k++) words[4 * j + k] = mont_mul(words[4 * j + k], scale, prime);
            }
            store_slots<LOG>(leaf(odd, half, limb), words, threadIdx.x);
        };
        if (2 * blockIdx.x + odd < leaves.rows) {
            uint32_t rest[NTT_WORDS], words[NTT_WORDS];
            load_slots<LOG>(rest, node(half, kept), threadIdx.x);
            load_slots<LOG>(words, image(half, kept), threadIdx.x);
            add_or_sub(rest, words, !odd, ring.primes[kept].p);
            drop_last<LOG>(rest, shared, ring, [&](uint32_t limb, uint32_t (&y)[NTT_WORDS]) {
                put(limb, y, __ldg(inverses + limb));
            });
        } else {
#pragma unroll 1
            for (uint32_t limb = 0; limb < ring.limbs; limb++) {
                uint32_t none[NTT_WORDS] = {};
                put(limb, none, ring.primes[limb].r1);
            }
        }
    }
}

} // namespace

#define HUSH_EXPAND_LEAVES(name, log, blocks, Ring)                                                       \
    extern "C" __global__ void __launch_bounds__(NTT_THREADS<log>, blocks)                                \
        name(uint32_t* const* selectors, uint32_t* others, uint32_t rows, const uint32_t* inverses,       \
             const uint32_t* nodes, const uint32_t* const* keys, uint64_t key_at, const uint32_t* powers, \
             uint32_t level, uint32_t needed, Ring ring, GadgetView gadget) {                             \
        HUSH_DYNAMIC_SHARED(uint32_t, shared);                                                            \
        const Leaves leaves = {selectors, others, rows, needed};                                          \
        expand_leaves<log>(shared, leaves, inverses, nodes, keys, key_at, powers, level, ring, gadget);   \
    }                                                                                                     \
    HUSH_KERNEL(name)

HUSH_EXPAND_LEAVES(expand_leaves_6, 6, 1, RingView)
HUSH_EXPAND_LEAVES(expand_leaves_8, 8, 1, RingView)
HUSH_EXPAND_LEAVES(expand_leaves_11, 11, 4, RingView)
HUSH_EXPAND_LEAVES(expand_leaves_12, 12, 2, RingView)
HUSH_EXPAND_LEAVES(expand_leaves_11_wide, 11, 3, WideRingView)
