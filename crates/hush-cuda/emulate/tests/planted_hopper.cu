// Kernels with planted bugs, as in planted.cu, for the primitives of Hopper.
#include "prelude.cuh"

namespace {

HUSH_DEVICE uint32_t neighbour() { return (threadIdx.x + 1) % 128; }

// Copies `in` into shared memory in `turns` turns through one stage of 512 bytes. Thread 0 fetches.
HUSH_DEVICE uint32_t fetch(const uint32_t* in, uint32_t turns, bool wait_full, bool wait_empty) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    uint64_t* full = reinterpret_cast<uint64_t*>(shared + 128);
    uint64_t* empty = full + 1;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(full, 1);
        ptx::mbarrier_init(empty, 128);
        ptx::mbarrier_init_fence();
    }
    __syncthreads();
    uint32_t word = 0;
    for (uint32_t turn = 0; turn < turns; turn++) {
        if (threadIdx.x == 0) {
            if (wait_empty) ptx::mbarrier_wait(empty, (turn & 1) ^ 1);
            ptx::mbarrier_expect(full, 512);
            ptx::bulk_copy(shared, in, 512, full);
        }
        if (wait_full) ptx::mbarrier_wait(full, turn & 1);
        word = shared[neighbour()];
        ptx::mbarrier_arrive(empty);
    }
    ptx::mbarrier_wait(full, (turns - 1) & 1);
    return word;
}

}  // namespace

// Shared: 528 bytes. The bug: the threads read before the copy is complete.
extern "C" __global__ void missing_bulk_wait(uint32_t* out, const uint32_t* in, uint32_t planted) {
    out[threadIdx.x] = fetch(in, 1, !planted, true);
}
HUSH_KERNEL(missing_bulk_wait)

// Shared: 528 bytes. The bug: the stage is filled again before all threads have read it.
extern "C" __global__ void early_refill(uint32_t* out, const uint32_t* in, uint32_t planted) {
    out[threadIdx.x] = fetch(in, 3, true, !planted);
}
HUSH_KERNEL(early_refill)

// Shared: 16 bytes. The bug: a thread arrives at a barrier that was never initialized.
extern "C" __global__ void uninitialized_mbarrier(uint32_t* out, const uint32_t* in, uint32_t planted) {
    HUSH_DYNAMIC_SHARED(uint64_t, barriers);
    if (threadIdx.x == 0) ptx::mbarrier_init(&barriers[0], 128);
    __syncthreads();
    ptx::mbarrier_arrive(&barriers[planted]);
    ptx::mbarrier_wait(&barriers[0], 0);
    out[threadIdx.x] = in[neighbour()];
}
HUSH_KERNEL(uninitialized_mbarrier)

namespace {

// Adds a product that is zero. Shared: (64 + 8) x 128 bytes.
HUSH_DEVICE uint32_t multiply(uint32_t word, bool fence_proxy, bool barrier, bool fence, bool wait) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    for (uint32_t i = threadIdx.x; i < 72 * 32; i += 128) shared[i] = 0;
    if (fence_proxy) ptx::fence_proxy_async();
    if (barrier) __syncthreads();
    int32_t d[4] = {static_cast<int32_t>(word)};
    if (fence) ptx::wgmma_fence();
    ptx::wgmma_m64k32_s8u8<8>(d, ptx::descriptor_128b(shared), ptx::descriptor_128b(shared + 64 * 32));
    ptx::wgmma_commit();
    if (wait) ptx::wgmma_wait<0>();
    else ptx::wgmma_wait<1>();
    word = static_cast<uint32_t>(d[0]);
    ptx::wgmma_wait<0>();
    return word;
}

}  // namespace

// The bug: the writes to shared memory are not visible to the asynchronous proxy.
extern "C" __global__ void missing_proxy_fence(uint32_t* out, const uint32_t* in, uint32_t planted) {
    out[threadIdx.x] = multiply(in[neighbour()], !planted, true, true, true);
}
HUSH_KERNEL(missing_proxy_fence)

// The bug: the product reads the writes of other threads without a barrier.
extern "C" __global__ void missing_product_barrier(uint32_t* out, const uint32_t* in, uint32_t planted) {
    out[threadIdx.x] = multiply(in[neighbour()], true, !planted, true, true);
}
HUSH_KERNEL(missing_product_barrier)

// The bug: no wgmma.fence.
extern "C" __global__ void missing_product_fence(uint32_t* out, const uint32_t* in, uint32_t planted) {
    out[threadIdx.x] = multiply(in[neighbour()], true, true, !planted, true);
}
HUSH_KERNEL(missing_product_fence)

// The bug: the accumulators are read before the wait for the product.
extern "C" __global__ void missing_product_wait(uint32_t* out, const uint32_t* in, uint32_t planted) {
    out[threadIdx.x] = multiply(in[neighbour()], true, true, true, !planted);
}
HUSH_KERNEL(missing_product_wait)

namespace {

// Sends the words of `in` to the other block of a cluster of two, and returns a word that the other block sends. Shared: 128 x 16 +
// 16 bytes.
HUSH_DEVICE uint32_t exchange(const uint32_t* in, bool wait_for_begin, bool wait_for_words, bool wait_for_end) {
    HUSH_DYNAMIC_SHARED(uint4, shared);
    uint64_t* given = reinterpret_cast<uint64_t*>(shared + 128);
    const uint32_t rank = ptx::cluster_rank();
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&given[0], 1);
        ptx::mbarrier_init(&given[1], 256);
        ptx::mbarrier_init_fence();
        ptx::mbarrier_expect(&given[0], 128 * sizeof(uint4));
    }
    if (wait_for_begin) ptx::cluster_sync();
    uint32_t word = in[neighbour()];
    ptx::store_async_16(ptx::cluster_address(&shared[neighbour()], rank ^ 1), make_uint4(word, word, word, word),
                        ptx::cluster_address(&given[0], rank ^ 1));
    if (wait_for_words) ptx::mbarrier_wait(&given[0], 0);
    word = shared[neighbour()].x;
    ptx::mbarrier_wait(&given[0], 0);
    // The other block needs nothing more from this block.
    ptx::mbarrier_arrive_cluster(ptx::cluster_address(&given[1], rank ^ 1));
    if (wait_for_end) ptx::cluster_sync();
    return word;
}

HUSH_DEVICE void store_of_first(uint32_t* out, uint32_t word) {
    if (ptx::cluster_rank() == 0) out[threadIdx.x] = word;
}

}  // namespace

// The bug: the other block is written to before it has begun.
extern "C" __global__ void __cluster_dims__(2, 1, 1)
    unbegun_block(uint32_t* out, const uint32_t* in, uint32_t planted) {
    store_of_first(out, exchange(in, !planted, true, true));
}
HUSH_CLUSTER_KERNEL(unbegun_block, 2)

// The bug: the words of the other block are read before they arrive.
extern "C" __global__ void __cluster_dims__(2, 1, 1)
    missing_store_wait(uint32_t* out, const uint32_t* in, uint32_t planted) {
    store_of_first(out, exchange(in, true, !planted, true));
}
HUSH_CLUSTER_KERNEL(missing_store_wait, 2)

// The bug: a block ends while the other still arrives at its barrier.
extern "C" __global__ void __cluster_dims__(2, 1, 1)
    ended_block(uint32_t* out, const uint32_t* in, uint32_t planted) {
    store_of_first(out, exchange(in, true, true, !planted));
}
HUSH_CLUSTER_KERNEL(ended_block, 2)

// Shared: 528 bytes. Each block of a cluster of two fetches half of a stage for both. The bug: before it fetches the next stage, a
// block waits only for its own readers.
extern "C" __global__ void __cluster_dims__(2, 1, 1)
    early_multicast(uint32_t* out, const uint32_t* in, uint32_t planted) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    uint64_t* full = reinterpret_cast<uint64_t*>(shared + 128);
    uint64_t* empty = full + 1;
    const uint32_t rank = ptx::cluster_rank(), half = 64 * rank;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(full, 1);
        ptx::mbarrier_init(empty, planted ? 128 : 256);
        ptx::mbarrier_init_fence();
    }
    ptx::cluster_sync();
    uint32_t word = 0;
    for (uint32_t turn = 0; turn < 3; turn++) {
        if (threadIdx.x == 0) {
            ptx::mbarrier_wait(empty, (turn & 1) ^ 1);
            ptx::mbarrier_expect(full, 512);
            ptx::bulk_copy_multicast(shared + half, in + half, 256, full, 3);
        }
        ptx::mbarrier_wait(full, turn & 1);
        word = shared[neighbour()];
        ptx::mbarrier_arrive_cluster(ptx::cluster_address(empty, rank));
        if (!planted) ptx::mbarrier_arrive_cluster(ptx::cluster_address(empty, rank ^ 1));
    }
    ptx::cluster_sync();
    store_of_first(out, word);
}
HUSH_CLUSTER_KERNEL(early_multicast, 2)
