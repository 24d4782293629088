// Step (7h) with a cluster of two blocks for a plane (power_fold.cuh). Each block has a half of the ciphertext, so a product takes
// little more than half the time. The kernel is for few planes, which would leave multiprocessors idle.
#include "power_fold.cuh"

namespace {

// The exchange of digits between the two blocks, in the shared memory of the block that reads them. Writes report their bytes to a
// barrier of that block. There are two turns of digits and barriers, used alternately. So digits may arrive while the digits of the
// product before are read, but no earlier. For a block sends the digits of a product only after it has received all digits of the
// product before. Their sender had then read the digits of the product before that.
template <int LOG>
struct ClusterExchange {
    const uint4* digits; // [turn][v][limb and thread], from this limb and thread on
    uint64_t* given;     // [turn]
    uint32_t other;      // the rank of the other block
    uint32_t products;   // the number of products so far

    HUSH_DEVICE const uint4* place(uint32_t v) const {
        return digits + products % 2 * (PAIR_WORDS<LOG> / 4) + v * PAIR_THREADS<LOG>;
    }
    HUSH_DEVICE void give(const uint32_t (&x)[NTT_WORDS]) {
        products++;
        uint64_t* const barrier = given + products % 2;
        if (threadIdx.x == 0) ptx::mbarrier_expect(barrier, PAIR_WORDS<LOG> * sizeof(uint32_t));
        const uint32_t there = ptx::cluster_address(barrier, other);
#pragma unroll
        for (uint32_t v = 0; v < NTT_WORDS / 4; v++) {
            ptx::store_async_16(ptx::cluster_address(place(v), other),
                                make_uint4(x[4 * v], x[4 * v + 1], x[4 * v + 2], x[4 * v + 3]), there);
        }
        ptx::mbarrier_wait(barrier, (products - 1) / 2 % 2);
    }
    HUSH_DEVICE uint4 take(uint32_t v) const { return *place(v); }
};

// Folds a plane in cluster (unit), with 2 T threads in each block. Shared memory: 8 N words, for two transforms, residues and two
// turns of digits; then two barriers.
template <int LOG>
HUSH_DEVICE void fold_by_cluster(const PowerFold& fold, const RingView& ring, const GadgetView& gadget,
                                 uint32_t* shared) {
    const uint32_t half = ptx::cluster_rank();
    const PairThread at = pair_thread<LOG>(threadIdx.x);
    uint32_t* const residues = shared + PAIR_WORDS<LOG>;
    uint32_t* const digits = residues + PAIR_WORDS<LOG>;
    uint64_t* const given = reinterpret_cast<uint64_t*>(digits + 2 * PAIR_WORDS<LOG>);
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&given[0], 1);
        ptx::mbarrier_init(&given[1], 1);
        ptx::mbarrier_init_fence();
    }
    ptx::cluster_sync();
    ClusterExchange<LOG> exchange = {reinterpret_cast<const uint4*>(digits) + threadIdx.x, given, half ^ 1, 0};
    fold_terms<LOG>(fold, ring, gadget, blockIdx.x / 2, half, at, shared + (at.limb << LOG), residues, exchange);
    // This block must not end before the words that it has sent have arrived.
    ptx::cluster_sync();
}

} // namespace

#define HUSH_POWER_FOLD_HOPPER(name, log)                                                        \
    extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(PAIR_THREADS<log>, 1) \
        name(PowerFold fold, RingView ring, GadgetView gadget) {                                 \
        HUSH_DYNAMIC_SHARED(uint32_t, shared);                                                   \
        fold_by_cluster<log>(fold, ring, gadget, shared);                                        \
    }                                                                                            \
    HUSH_CLUSTER_KERNEL(name, 2)

HUSH_POWER_FOLD_HOPPER(power_fold_6_hopper, 6)
HUSH_POWER_FOLD_HOPPER(power_fold_8_hopper, 8)
HUSH_POWER_FOLD_HOPPER(power_fold_11_hopper, 11)
