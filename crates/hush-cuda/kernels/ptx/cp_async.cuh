// Asynchronous copies of 16 bytes from global to shared memory (sm_80). A thread collects its copies in groups.
#pragma once
#include <cstdint>

#include "address.cuh"
#ifndef __CUDACC__
#include "../../emulate/copies.hpp"
#endif

namespace ptx {

// Starts a copy that bypasses L1. Both addresses are multiples of 16.
HUSH_DEVICE void cp_async_16(void* shared, const void* global) {
#ifdef __CUDACC__
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(shared)), "l"(global) : "memory");
#else
    hush_emulate::cp_async_16(shared, global);
#endif
}

// Closes the group of this thread's copies since the last commit.
HUSH_DEVICE void cp_async_commit() {
#ifdef __CUDACC__
    asm volatile("cp.async.commit_group;" ::: "memory");
#else
    hush_emulate::cp_async_commit();
#endif
}

// Waits until at most the last `pending` groups of this thread are in flight. Other threads see the bytes after a barrier.
template <int pending>
HUSH_DEVICE void cp_async_wait() {
    static_assert(pending >= 0);
#ifdef __CUDACC__
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#else
    hush_emulate::cp_async_wait(pending);
#endif
}

}  // namespace ptx
