// Asynchronous copies from global to shared memory: cp.async of each thread, and bulk copies of a block.
//
// Orderly launches copy at issue. Adversarial ones poison the destination at issue and copy as late as CUDA allows:
// when a thread waits for its group, or when somebody waits at an mbarrier.
#pragma once
#include <cstdint>

#include "queue.hpp"

namespace hush_emulate {

struct Thread;
struct Block;

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

/// Bulk copies of a block that have not landed.
struct BlockCopies {
    static constexpr uint32_t capacity = 1024;
    struct Copy {
        void* shared;
        const void* global;
        uint32_t bytes;
        uint64_t* barrier;
        Thread* issuer;
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
/// fence.proxy.async: what this thread wrote to shared memory can be read by wgmma and bulk copies.
void fence_proxy_async();
/// Lands one bulk copy, any; false if none is under way.
bool land_bulk_copy(Block& block);

}  // namespace hush_emulate
