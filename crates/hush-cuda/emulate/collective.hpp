// Synchronization of the threads of a block: barriers, and collectives of a warp.
#pragma once
#include <cstdint>
#include <cstring>

#include "sanitizer.hpp"

namespace hush_emulate {

struct Thread;
using Collective = void (*)(void* const (&operands)[32], uint32_t lanes);

/// Waits for all unfinished threads of the block, like __syncthreads.
void sync_block();

/// Waits until `threads` threads have arrived at barrier `id`, 1 to 15, like bar.sync.
void sync_named(uint32_t id, uint32_t threads);

/// Waits for the unfinished lanes of `mask`, like __syncwarp. Orders their memory accesses.
void sync_warp(uint32_t mask);

/// Waits for the unfinished lanes of `mask`. The last lane to arrive calls `collective` with all operands. Memory accesses are not
/// ordered. `what` names the primitive in reports.
void meet(uint32_t mask, Collective collective, void* operand, const char* what);

/// Waits for the whole warp like `meet`. A warp with missing lanes fails the launch.
void meet_warp(Collective collective, void* operand, const char* what);

/// Removes a thread that ends from the barriers and collectives, which then no longer wait for it.
void leave_collectives(Thread& thread);

/// Returns the value of lane `source` of `mask`, or poison if that lane does not take part.
uint64_t shuffle(uint32_t mask, uint64_t value, uint32_t source);

/// Returns a word with a bit for each lane of `mask` whose `value` is true.
uint32_t ballot(uint32_t mask, bool value);

/// Returns the lane of the running thread.
uint32_t lane();

}  // namespace hush_emulate
