// The calls that tell the sanitizers about fibers and barriers; nothing in ordinary builds.
//
// Under ThreadSanitizer each CUDA thread is a TSan fiber, so that unordered accesses of two CUDA threads are found
// although one OS thread runs them. The emulator's own state is shared by the fibers without locks: functions that
// touch it are HUSH_UNSANITIZED.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define HUSH_ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#define HUSH_TSAN 1
#include <sanitizer/tsan_interface.h>
#endif

/// The sanitizer that this is compiled with.
#if defined(HUSH_ASAN)
#define HUSH_SANITIZER "address"
#elif defined(HUSH_TSAN)
#define HUSH_SANITIZER "thread"
#else
#define HUSH_SANITIZER ""
#endif

#define HUSH_UNSANITIZED __attribute__((no_sanitize("thread")))

namespace hush_emulate {

/// All that this thread did so far comes before what follows a later `order_after` of the same tag.
HUSH_UNSANITIZED inline void order_before([[maybe_unused]] void* tag) {
#ifdef HUSH_TSAN
    __tsan_release(tag);
#endif
}

HUSH_UNSANITIZED inline void order_after([[maybe_unused]] void* tag) {
#ifdef HUSH_TSAN
    __tsan_acquire(tag);
#endif
}

}  // namespace hush_emulate
