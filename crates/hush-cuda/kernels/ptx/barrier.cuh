// Named barriers: barriers of some warps of a block.
#pragma once
#include <cstdint>

namespace ptx {

// Waits until `threads` threads (a multiple of 32) have arrived at barrier `id`, 1 to 15. Orders their memory accesses.
HUSH_DEVICE void named_barrier_sync(uint32_t id, uint32_t threads) {
#ifdef __CUDACC__
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
#else
    hush_emulate::sync_named(id, threads);
#endif
}

}  // namespace ptx
