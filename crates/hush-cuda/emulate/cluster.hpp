// Clusters (Hopper): blocks that run at the same time, meet at a barrier and reach each other's dynamic shared memory.
//
// A place in it has an address of 32 bits in the window of the cluster: that in its block, and the block's rank in the bits above.
// It is reached by these functions alone, which fail if the block has not begun, or has ended.
#pragma once
#include <cstdint>

namespace hush_emulate {

struct Thread;

/// The number of the running thread's block in its cluster.
uint32_t cluster_rank();

/// barrier.cluster.arrive: once, then cluster_wait.
void cluster_arrive();
/// barrier.cluster.wait: until all unfinished threads of the cluster have arrived.
void cluster_wait();
/// A thread that ends is waited for no more.
void leave_cluster(Thread& thread);

/// Returns the address in the shared memory of block `rank`.
uint32_t cluster_address(uint32_t address, uint32_t rank);
/// The rank of the block whose place it is.
uint32_t cluster_rank_of(uint32_t address);
/// Where that address is; `bytes` from it must be in the dynamic shared memory of a block that runs.
uint8_t* cluster_pointer(uint32_t address, uint32_t bytes);

}  // namespace hush_emulate
