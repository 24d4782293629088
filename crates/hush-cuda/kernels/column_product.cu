// The kernels `column_product`: the contribution of conjugation keys to packed words, round(t_z z 2^32 / Q) for every plaintext and
// query.
#include "limb_pair.cuh"
#include "pack.cuh"
#include "switch.cuh"

namespace {

// Adds: words[query][row] += round(digit z 2^32 / Q) modulo 2^32, for the coefficient of each row of the plaintext. Block
// (plaintext, query), 2 T threads.
//   digits  [plaintext][limb][slot], Montgomery forms
//   keys    [query][limb][slot]: z
// Shared memory: 4 N words.
template <int LOG>
HUSH_DEVICE void add_product(uint32_t* words, const uint32_t* digits, const uint32_t* keys, const PackColumns& shape,
                             const RingView& ring, const MixedRadix& radix, uint32_t* shared) {
    constexpr uint32_t N = 1 << LOG;
    const PairThread at = pair_thread<LOG>(threadIdx.x);
    uint32_t x[NTT_WORDS], z[NTT_WORDS];
    load_neighbours(x, digits + size_t(blockIdx.x) * PAIR_WORDS<LOG> + at.limb * N, at.thread);
    load_neighbours(z, keys + size_t(blockIdx.y) * PAIR_WORDS<LOG> + at.limb * N, at.thread);
#pragma unroll
    for (uint32_t i = 0; i < NTT_WORDS; i++) x[i] = mont_mul(x[i], z[i], ring.primes[at.limb]);
    ntt_inverse_neighbours<LOG>(x, shared + at.limb * N, ring, at.limb, at.thread);
    uint32_t* const residues = shared + 2 * N;
    share_residues<LOG>(residues, x, at);

    const uint32_t bits = 32;
    const uint32_t powers[PAIR] = {montgomery_power_of_two(bits, ring.primes[0]),
                                   montgomery_power_of_two(bits, ring.primes[1])};
    const PlaintextRows range = plaintext_rows(shape, blockIdx.x);
    uint32_t* const to = words + size_t(blockIdx.y) * shape.rows + range.start;
    for (uint32_t i = threadIdx.x; i < range.count; i += PAIR_THREADS<LOG>) {
        const uint32_t pair[PAIR] = {residues[i], residues[N + i]};
        to[i] += uint32_t(switch_to_power_of_two<PAIR>(pair, ring.primes, radix, powers, bits));
    }
}

} // namespace

#define HUSH_COLUMN_PRODUCT(name, log, blocks)                                                                \
    extern "C" __global__ void __launch_bounds__(PAIR_THREADS<log>, blocks)                                   \
        name(uint32_t* words, const uint32_t* digits, const uint32_t* keys, PackColumns shape, RingView ring, \
             MixedRadix radix) {                                                                              \
        HUSH_DYNAMIC_SHARED(uint32_t, shared);                                                                \
        add_product<log>(words, digits, keys, shape, ring, radix, shared);                                    \
    }                                                                                                         \
    HUSH_KERNEL(name)

HUSH_COLUMN_PRODUCT(column_product_6, 6, 1)
HUSH_COLUMN_PRODUCT(column_product_8, 8, 1)
HUSH_COLUMN_PRODUCT(column_product_11, 11, 2)
