// Asynchronous copies from global to shared memory: cp.async of each thread, and bulk copies to the blocks of a cluster.
//
// Orderly launches copy at issue. Adversarial ones poison the destination at issue and copy as late as CUDA allows:
// when a thread waits for its group, or when somebody waits at an mbarrier.
#pragma once
#include <cstdint>

#include "queue.hpp"

namespace hush_emulate {

struct Thread;
struct Block;
struct Cluster;

/// cp.async of one thread, in the order of issue.
struct ThreadCopies {
    struct Copy {
        void* shared;
        const void* global;
        /// How many groups were committed before this copy was issued.
        uint32_t group;
    };
    Queue<Copy> pending;
    uint32_t groups_committed = 0;
};

/// Bulk copies to the blocks of a cluster that have not landed.
struct BulkCopies {
    static constexpr uint32_t capacity = 1024;
    struct Copy {
        void* shared;
        /// Null for what `value` has.
        const void* global;
        uint32_t bytes;
        uint64_t* barrier;
        Thread* issuer;
        /// The block whose shared memory it is.
        Block* to;
        uint64_t value[2];
    };
    Queue<Copy> pending;
};

void cp_async_16(void* shared, const void* global);
void cp_async_commit();
/// Waits until at most the last `pending` groups of this thread are under way.
void cp_async_wait(uint32_t pending);
/// All copies of a thread that ends land.
void cp_async_finish(Thread& thread);

void bulk_copy(void* shared, const void* global, uint32_t bytes, uint64_t* barrier);
/// Copies to each block of the cluster whose bit of `blocks` is set, at the places that these addresses have in the
/// issuer's.
void bulk_copy_multicast(void* shared, const void* global, uint32_t bytes, uint64_t* barrier, uint32_t blocks);
/// st.async: writes 16 bytes to an address of the cluster as a bulk copy does; the barrier is in the same block.
void store_async_16(uint32_t shared, const void* value, uint32_t barrier);
/// fence.proxy.async: what this thread wrote to shared memory can be read by wgmma and bulk copies.
void fence_proxy_async();
/// Lands one bulk copy, any; false if none is under way.
bool land_bulk_copy(Cluster& cluster);
/// When a block ends: none that it started, and none to its shared memory, may be under way.
void bulk_copies_finish(const Block& block);

}  // namespace hush_emulate
