// The emulated GPUs: each has its memory, and the first error of its work, which stays.
#pragma once
#include <atomic>
#include <set>

#include "memory.hpp"

namespace hush_emulate {

/// A GPU and its only context.
struct Context {
    explicit Context(size_t memory_bytes) : memory(memory_bytes) {}

    Blocks memory;
    /// The error of work that failed, or 0.
    std::atomic<int> failure{0};
    /// The GPUs whose memory this GPU may access. `enable_peer` guards it with a lock of all GPUs.
    std::set<Context*> peers;
};

/// Returns the number of GPUs: 1, or the environment variable HUSH_EMULATED_GPUS, at most 8. Each has 4 GiB, or HUSH_EMULATED_MIB.
int context_count();

/// Returns whether streams of the least priority are hasty: whether the environment variable HUSH_EMULATED_HASTY is 1. Their work
/// then runs as early as a driver may run it, and the work of other streams as late.
bool are_least_hasty();

/// Returns GPU `ordinal`, or null if there is none.
Context* context(int ordinal);

/// Allows `self` to access the memory of `peer`. Returns whether it was not allowed before.
bool enable_peer(Context* self, Context* peer);

/// Returns whether `address` is in the memory of another GPU than `self`.
bool is_elsewhere(const Context* self, const void* address);

}  // namespace hush_emulate
