// Clusters (Hopper): blocks that run at the same time, wait at a common barrier and access each other's dynamic shared memory.
//
// A place in shared memory has an address of 32 bits in the window of the cluster: its address in the block, with the block's rank
// in the bits above. Other blocks access it by these functions alone. They fail the launch if the block has not begun, or has
// ended.
#pragma once
#include <cstdint>

namespace hush_emulate {

struct Thread;

/// Returns the rank of the running thread's block in its cluster.
uint32_t cluster_rank();

/// Arrives at the barrier of the cluster (barrier.cluster.arrive). A thread calls it once, and then cluster_wait.
void cluster_arrive();
/// Waits until all unfinished threads of the cluster have arrived (barrier.cluster.wait).
void cluster_wait();
/// Removes a thread that ends from the barrier of the cluster, which then no longer waits for it.
void leave_cluster(Thread& thread);

/// Returns the address in the shared memory of block `rank`.
uint32_t cluster_address(uint32_t address, uint32_t rank);
/// Returns the rank of the block that an address belongs to.
uint32_t cluster_rank_of(uint32_t address);
/// Returns the place of an address. `bytes` bytes from it must be in the dynamic shared memory of a running block, or the launch
/// fails.
uint8_t* cluster_pointer(uint32_t address, uint32_t bytes);

}  // namespace hush_emulate
