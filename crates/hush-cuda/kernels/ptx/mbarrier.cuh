// mbarriers and bulk copies (Hopper). An mbarrier is 8 bytes of shared memory at which threads wait; a bulk copy reports its bytes
// to one.
#pragma once
#include <cstdint>

#include "address.cuh"
#ifndef __CUDACC__
#include "../../emulate/copies.hpp"
#include "../../emulate/mbarrier.hpp"
#endif

namespace ptx {

// Initializes an mbarrier whose phases take `count` arrivals. One thread calls it; mbarrier_init_fence and a barrier follow.
HUSH_DEVICE void mbarrier_init(uint64_t* barrier, uint32_t count) {
#ifdef __CUDACC__
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count) : "memory");
#else
    hush_emulate::mbarrier_init(barrier, count);
#endif
}

// Makes this thread's initializations visible to the copy engine.
HUSH_DEVICE void mbarrier_init_fence() {
#ifdef __CUDACC__
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#else
    hush_emulate::require_capability(9, "fence.mbarrier_init");
#endif
}

// Arrives once, and makes the phase wait for `bytes` bytes of bulk copies as well.
HUSH_DEVICE void mbarrier_expect(uint64_t* barrier, uint32_t bytes) {
#ifdef __CUDACC__
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
#else
    hush_emulate::mbarrier_expect(barrier, bytes);
#endif
}

// Arrives once.
HUSH_DEVICE void mbarrier_arrive(uint64_t* barrier) {
#ifdef __CUDACC__
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
#else
    hush_emulate::mbarrier_arrive(barrier);
#endif
}

// Arrives once at an mbarrier of any block of the cluster (cluster_address). The arrival is ordered after this thread's reads, but
// not after its writes: the other block sees these after a barrier of the cluster, or by store_async. (`.release.cluster` would
// order the writes too, with a fence for all memory of the GPU.)
HUSH_DEVICE void mbarrier_arrive_cluster(uint32_t barrier) {
#ifdef __CUDACC__
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
#else
    hush_emulate::mbarrier_arrive_cluster(barrier);
#endif
}

#ifdef __CUDACC__
// Waits for the phase of this parity for a time that the hardware chooses. Returns whether the phase is complete.
HUSH_DEVICE bool mbarrier_try_wait(uint64_t* barrier, uint32_t parity) {
    uint32_t complete;
    asm volatile(
        "{\n"
        ".reg .pred complete;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 complete, [%1], %2;\n"
        "selp.u32 %0, 1, 0, complete;\n"
        "}"
        : "=r"(complete)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
    return complete;
}

// Returns the time in units of 2^32 ns, 4.3 s: a wait has one register to spare, not two.
HUSH_DEVICE uint32_t coarse_time() {
    uint32_t time;
    asm volatile("mov.u32 %0, %%globaltimer_hi;" : "=r"(time));
    return time;
}
#endif

// Waits until the phase of this parity is complete. The first phase has parity 0, then 1, 0, and so on. A fresh barrier counts as
// having completed a phase of parity 1.
//
// A phase that never completes is a defect of the kernel. The kernel then traps after 9 to 13 s: the device is lost with an error,
// and does not hang with all queued work. The clock is read only after several failed tries.
HUSH_DEVICE void mbarrier_wait(uint64_t* barrier, uint32_t parity) {
#ifdef __CUDACC__
    constexpr uint32_t patience = 3;
    if (mbarrier_try_wait(barrier, parity)) return;
    uint32_t start = coarse_time();
    while (true) {
#pragma unroll
        for (uint32_t tries = 0; tries < 4; tries++) {
            if (mbarrier_try_wait(barrier, parity)) return;
        }
        if (coarse_time() - start >= patience) __trap();
    }
#else
    hush_emulate::mbarrier_wait(barrier, parity);
#endif
}

// Starts a copy of `bytes` bytes from global to shared memory. One thread calls it; addresses and size are multiples of 16.
HUSH_DEVICE void bulk_copy(void* shared, const void* global, uint32_t bytes, uint64_t* barrier) {
#ifdef __CUDACC__
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(shared)),
                 "l"(global), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
#else
    hush_emulate::bulk_copy(shared, global, bytes, barrier);
#endif
}

// Copies like bulk_copy to every block of the cluster whose bit of `blocks` is set: to the same offset, completing on the barrier
// at the same offset. These blocks have begun, and must not end before the copy is complete.
HUSH_DEVICE void bulk_copy_multicast(void* shared, const void* global, uint32_t bytes, uint64_t* barrier,
                                     uint32_t blocks) {
#ifdef __CUDACC__
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(
            shared_address(shared)),
        "l"(global), "r"(bytes), "r"(shared_address(barrier)), "h"(static_cast<uint16_t>(blocks))
        : "memory");
#else
    hush_emulate::bulk_copy_multicast(shared, global, bytes, barrier, blocks);
#endif
}

// Starts a write of 16 bytes to the cluster address `shared`, a multiple of 16. The write completes like a bulk copy of 16 bytes on
// `barrier`, which is in the same block as `shared`.
HUSH_DEVICE void store_async_16(uint32_t shared, uint4 value, uint32_t barrier) {
#ifdef __CUDACC__
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(shared),
        "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w), "r"(barrier)
        : "memory");
#else
    hush_emulate::store_async_16(shared, &value, barrier);
#endif
}

// Copies like bulk_copy, for bytes that are read once: L2 evicts them first.
HUSH_DEVICE void bulk_copy_evict_first(void* shared, const void* global, uint32_t bytes, uint64_t* barrier) {
#ifdef __CUDACC__
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(
            shared_address(shared)),
        "l"(global), "r"(bytes), "r"(shared_address(barrier)), "l"(policy)
        : "memory");
#else
    hush_emulate::bulk_copy(shared, global, bytes, barrier);
#endif
}

// Makes this thread's writes to shared memory visible to wgmma and bulk copies. A barrier that these wait for follows.
HUSH_DEVICE void fence_proxy_async() {
#ifdef __CUDACC__
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#else
    hush_emulate::fence_proxy_async();
#endif
}

}  // namespace ptx
