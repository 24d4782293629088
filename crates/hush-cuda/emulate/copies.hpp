// Asynchronous copies from global to shared memory: cp.async of each thread, and bulk copies to the blocks of a cluster.
//
// Orderly launches copy at issue. Adversarial launches poison the destination at issue and copy as late as CUDA allows: when a
// thread waits for its group, or when a thread waits at an mbarrier.
#pragma once
#include <cstdint>

#include "queue.hpp"

namespace hush_emulate {

struct Thread;
struct Block;
struct Cluster;

/// The copies (cp.async) of one thread, in the order of issue.
struct ThreadCopies {
    struct Copy {
        void* shared;
        const void* global;
        /// The number of groups committed before this copy was issued.
        uint32_t group;
    };
    Queue<Copy> pending;
    uint32_t groups_committed = 0;
};

/// The bulk copies to the blocks of a cluster that have not landed.
struct BulkCopies {
    static constexpr uint32_t capacity = 1024;
    struct Copy {
        void* shared;
        /// The source. If it is null, `value` is copied.
        const void* global;
        uint32_t bytes;
        uint64_t* barrier;
        Thread* issuer;
        /// The block of the destination.
        Block* to;
        uint64_t value[2];
    };
    Queue<Copy> pending;
};

void cp_async_16(void* shared, const void* global);
void cp_async_commit();
/// Waits until at most the last `pending` groups of this thread are in flight.
void cp_async_wait(uint32_t pending);
/// Lands all copies of a thread that ends.
void cp_async_finish(Thread& thread);

void bulk_copy(void* shared, const void* global, uint32_t bytes, uint64_t* barrier);
/// Copies like bulk_copy to each block of the cluster whose bit of `blocks` is set, at the same offsets as in the issuer's block.
void bulk_copy_multicast(void* shared, const void* global, uint32_t bytes, uint64_t* barrier, uint32_t blocks);
/// Writes 16 bytes to an address of the cluster like a bulk copy (st.async). The barrier is in the same block.
void store_async_16(uint32_t shared, const void* value, uint32_t barrier);
/// Makes this thread's writes to shared memory visible to wgmma and bulk copies (fence.proxy.async).
void fence_proxy_async();
/// Lands one random bulk copy. Returns false if none is in flight.
bool land_bulk_copy(Cluster& cluster);
/// Fails the launch if a bulk copy from or to a block that ends is in flight.
void bulk_copies_finish(const Block& block);

}  // namespace hush_emulate
