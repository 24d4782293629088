// mbarriers and bulk copies (Hopper): copies that report their bytes to 8 bytes of shared memory that threads wait at.
#pragma once
#include <cstdint>

#include "address.cuh"
#ifndef __CUDACC__
#include "../../emulate/copies.hpp"
#include "../../emulate/mbarrier.hpp"
#endif

namespace ptx {

// Makes an mbarrier whose phases take `count` arrivals. By one thread; then mbarrier_init_fence and a barrier.
HUSH_DEVICE void mbarrier_init(uint64_t* barrier, uint32_t count) {
#ifdef __CUDACC__
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count) : "memory");
#else
    hush_emulate::mbarrier_init(barrier, count);
#endif
}

// Shows this thread's initializations to the copy engine.
HUSH_DEVICE void mbarrier_init_fence() {
#ifdef __CUDACC__
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#else
    hush_emulate::require_capability(9, "fence.mbarrier_init");
#endif
}

// Arrives once, and makes the phase wait for `bytes` bytes of bulk copies, too.
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

// Arrives once at a barrier of any block of the cluster (cluster_address). It comes after what this thread has read,
// as in its
// own block; what it wrote the other block sees after a barrier of the cluster, or by store_async. (Of all that, `.release.cluster`
// would make a fence for all memory of the GPU.)
HUSH_DEVICE void mbarrier_arrive_cluster(uint32_t barrier) {
#ifdef __CUDACC__
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
#else
    hush_emulate::mbarrier_arrive_cluster(barrier);
#endif
}

#ifdef __CUDACC__
// Whether the phase of this parity is complete, after waiting for it as long as the hardware cares to.
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

// The time in units of 2^32 ns, 4.3 s: one register, where there are none to spare.
HUSH_DEVICE uint32_t coarse_time() {
    uint32_t time;
    asm volatile("mov.u32 %0, %%globaltimer_hi;" : "=r"(time));
    return time;
}
#endif

// Waits until the phase of this parity is complete: 0 for the first, then 1, 0, ... A fresh barrier counts as having
// completed a phase of parity 1.
//
// A phase that does not come is a defect of the kernel, which then traps after 9 to 13 s: the device is lost, and says
// so, where it would otherwise hang with all that is queued. The clock is looked at after several tries in vain.
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

// Starts a copy from global to shared memory, by one thread; addresses and size are multiples of 16.
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

// Copies like bulk_copy, to every block of the cluster whose bit of `blocks` is set: to the same place there,
// completing on the same
// barrier there. These blocks have begun and must not end before.
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

// Starts a write of 16 bytes to an address of the cluster, a multiple of 16; it completes as a copy of 16 bytes on a barrier of the
// same block.
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

// Copies like bulk_copy, for bytes that are read once: they leave L2 first.
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

// Shows what this thread wrote to shared memory to wgmma and bulk copies; before the barrier that they wait for.
HUSH_DEVICE void fence_proxy_async() {
#ifdef __CUDACC__
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#else
    hush_emulate::fence_proxy_async();
#endif
}

}  // namespace ptx
