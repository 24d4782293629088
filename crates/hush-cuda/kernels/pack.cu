// The kernels `pack_add_folded`: the part of `pack` that needs no key. They add the folded words to the folded hint.
#include "lift.cuh"
#include "ntt.cuh"
#include "pack.cuh"
#include "rlwe_fold.cuh"

// Delta modulo each prime, in Montgomery form. Mirrored by `Delta` in src/pack/add_folded.rs.
struct Delta {
    uint32_t limb[MAX_LIMBS];
};
static_assert(sizeof(Delta) == 16, "the layout of Delta");

// Adds Delta G to half b of every ciphertext `[column][a, b][limb][slot]` of every query. The coefficients of G are the column's
// rounded words of `folded`, `[query][row]`. Block (column, limb, query) transforms one limb with N / 16 threads, in 4 N bytes of
// shared memory.
template <int LOG>
HUSH_DEVICE void add_folded(const QueryPointers& out, const uint32_t* folded, const RingView& ring,
                            const PackColumns& shape, const Delta& delta, const Lift& lift) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    uint32_t column = blockIdx.x, limb = blockIdx.y, query = blockIdx.z;
    const Prime& prime = ring.primes[limb];
    PlaintextRows rows = plaintext_rows(shape, column);
    const uint32_t* words = folded + uint64_t(query) * shape.rows + rows.start;
    uint32_t x[NTT_WORDS];
#pragma unroll
    for (uint32_t i = 0; i < NTT_WORDS; i++) {
        uint32_t coefficient = threadIdx.x + i * NTT_THREADS<LOG>;
        uint32_t word = coefficient < rows.count ? words[coefficient] : 0;
        x[i] = lift_word(word, lift, prime);
    }
    ntt_forward<LOG>(x, shared, ring, limb, threadIdx.x);
    uint64_t poly = uint64_t(column) * RLWE_POLYS + 1;
    uint32_t* b = out.query[query] + ((poly * ring.limbs + limb) << LOG);
    uint32_t y[NTT_WORDS];
    load_slots<LOG>(y, b, threadIdx.x);
#pragma unroll
    for (uint32_t i = 0; i < NTT_WORDS; i++) x[i] = add_mod(y[i], mont_mul(x[i], delta.limb[limb], prime), prime.p);
    store_slots<LOG>(b, x, threadIdx.x);
}

#define HUSH_PACK_ADD_FOLDED(name, log, blocks)                                                        \
    extern "C" __global__ void __launch_bounds__(NTT_THREADS<log>, blocks)                             \
        name(QueryPointers out, const uint32_t* folded, RingView ring, PackColumns shape, Delta delta, \
             Lift lift) {                                                                              \
        add_folded<log>(out, folded, ring, shape, delta, lift);                                        \
    }                                                                                                  \
    HUSH_KERNEL(name)

HUSH_PACK_ADD_FOLDED(pack_add_folded_6, 6, 1)
HUSH_PACK_ADD_FOLDED(pack_add_folded_8, 8, 1)
HUSH_PACK_ADD_FOLDED(pack_add_folded_11, 11, 10)
HUSH_PACK_ADD_FOLDED(pack_add_folded_12, 12, 5)
