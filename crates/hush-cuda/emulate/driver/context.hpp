// The emulated GPUs: each has its memory, and an error of its work that stays.
#pragma once
#include <atomic>
#include <set>

#include "memory.hpp"

namespace hush_emulate {

/// A GPU and its context, of which there is one.
struct Context {
    explicit Context(size_t memory_bytes) : memory(memory_bytes) {}

    Blocks memory;
    /// The error of work that failed, or 0.
    std::atomic<int> failure{0};
    /// GPUs whose memory it was allowed to reach. Behind the lock of all GPUs.
    std::set<Context*> peers;
};

/// How many there are: one of 4 GiB, or as the environment variables HUSH_EMULATED_GPUS and HUSH_EMULATED_MIB say.
int context_count();

/// Whether streams of the least priority are hasty, if the environment variable HUSH_EMULATED_HASTY is 1: work beside that of the
/// others is done as early as a driver may do it then, and theirs as late.
bool are_least_hasty();

/// Number `ordinal`; null if there is none.
Context* context(int ordinal);

/// Has `self` reach the memory of `peer`; whether it did not before.
bool enable_peer(Context* self, Context* peer);

/// Whether `address` is in the memory of a GPU that is not `self`.
bool is_elsewhere(const Context* self, const void* address);

}  // namespace hush_emulate
