// mbarrier objects (Hopper): 8 bytes of shared memory that count arrivals of threads and bytes of bulk copies.
#pragma once
#include <cstdint>

namespace hush_emulate {

void mbarrier_init(uint64_t* barrier, uint32_t count);
/// Makes this phase wait for `bytes` more bytes of bulk copies, then arrives.
void mbarrier_expect(uint64_t* barrier, uint32_t bytes);
void mbarrier_arrive(uint64_t* barrier);
/// Arrives at a barrier of any block of the cluster.
void mbarrier_arrive_cluster(uint32_t barrier);
/// Waits until the phase of this parity is complete.
void mbarrier_wait(uint64_t* barrier, uint32_t parity);
/// Reports `bytes` bytes of a bulk copy that have landed.
void mbarrier_complete(uint64_t* barrier, uint32_t bytes);

}  // namespace hush_emulate
