// Clusters (Hopper): blocks that run at the same time, in the first dimension of the grid, and reach each other's shared memory.
// A place in it has an address of 32 bits, as shared_address has for the block's own. A block may be reached from its first
// barrier of the cluster on, and must not end before the others have reached it last.
#pragma once
#include <cstdint>

#include "address.cuh"
#ifndef __CUDACC__
#include "../../emulate/cluster.hpp"
#endif

namespace ptx {

// The number of this block in its cluster.
HUSH_DEVICE uint32_t cluster_rank() {
#ifdef __CUDACC__
    uint32_t rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
#else
    return hush_emulate::cluster_rank();
#endif
}

// Arrives at the barrier of the cluster: every thread once, then cluster_wait.
HUSH_DEVICE void cluster_arrive() {
#ifdef __CUDACC__
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
#else
    hush_emulate::cluster_arrive();
#endif
}

// Waits until all threads of the cluster that have not ended have arrived; what they did before comes before what follows.
HUSH_DEVICE void cluster_wait() {
#ifdef __CUDACC__
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#else
    hush_emulate::cluster_wait();
#endif
}

HUSH_DEVICE void cluster_sync() {
    cluster_arrive();
    cluster_wait();
}

// The address of the same place in the shared memory of block `rank`.
HUSH_DEVICE uint32_t cluster_address(const void* shared, uint32_t rank) {
#ifdef __CUDACC__
    uint32_t address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address(shared)), "r"(rank));
    return address;
#else
    return hush_emulate::cluster_address(shared_address(shared), rank);
#endif
}

}  // namespace ptx
