// Clusters (Hopper): blocks that run at the same time, in the first dimension of the grid, and access each other's shared memory.
// An address in a cluster's shared memory has 32 bits, like shared_address. Other blocks may access a block's shared memory once
// it has passed its first barrier of the cluster. A block must not end before the last such access.
#pragma once
#include <cstdint>

#include "address.cuh"
#ifndef __CUDACC__
#include "../../emulate/cluster.hpp"
#endif

namespace ptx {

// Returns the index of this block in its cluster.
HUSH_DEVICE uint32_t cluster_rank() {
#ifdef __CUDACC__
    uint32_t rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
#else
    return hush_emulate::cluster_rank();
#endif
}

// Arrives at the barrier of the cluster. Every thread calls it once, and then cluster_wait.
HUSH_DEVICE void cluster_arrive() {
#ifdef __CUDACC__
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
#else
    hush_emulate::cluster_arrive();
#endif
}

// Waits until all threads of the cluster that have not ended have arrived. Their accesses before it are ordered before those after.
HUSH_DEVICE void cluster_wait() {
#ifdef __CUDACC__
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#else
    hush_emulate::cluster_wait();
#endif
}

// Arrives at the barrier of the cluster, and waits for all of its threads.
HUSH_DEVICE void cluster_sync() {
    cluster_arrive();
    cluster_wait();
}

// Returns the cluster address of the same offset in the shared memory of block `rank`.
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
