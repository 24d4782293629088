// Where threads of a block meet: barriers, and collectives of a warp.
#pragma once
#include <cstdint>
#include <cstring>

#include "sanitizer.hpp"

namespace hush_emulate {

struct Thread;
using Collective = void (*)(void* const (&operands)[32], uint32_t lanes);

/// Waits for all unfinished threads of the block, as __syncthreads.
void sync_block();

/// Waits until `threads` threads have come to barrier `id`, 1 to 15, as bar.sync.
void sync_named(uint32_t id, uint32_t threads);

/// Waits for the unfinished lanes of `mask`, as __syncwarp: orders memory.
void sync_warp(uint32_t mask);

/// Meets the unfinished lanes of `mask`: the last to come calls `collective` with all operands. Orders nothing in
/// memory. `what` names the primitive in reports.
void meet(uint32_t mask, Collective collective, void* operand, const char* what);

/// Meets as `meet` does with the whole warp, which must be there.
void meet_warp(Collective collective, void* operand, const char* what);

/// A thread that ends is waited for no more.
void leave_collectives(Thread& thread);

/// The value of lane `source` of `mask`; poison if that lane does not take part.
uint64_t shuffle(uint32_t mask, uint64_t value, uint32_t source);

/// A bit for each lane of `mask` whose `value` is true.
uint32_t ballot(uint32_t mask, bool value);

/// The lane of the running thread.
uint32_t lane();

}  // namespace hush_emulate
