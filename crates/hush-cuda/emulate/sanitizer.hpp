// Calls that tell the sanitizers about fibers and barriers. They do nothing in ordinary builds.
//
// Under ThreadSanitizer, each CUDA thread is a TSan fiber. So unordered accesses of two CUDA threads are found although one OS
// thread runs both. The fibers share the emulator's own state without locks: functions that access it are HUSH_UNSANITIZED.
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

/// The name of the sanitizer of this build: "address", "thread" or "".
#if defined(HUSH_ASAN)
#define HUSH_SANITIZER "address"
#elif defined(HUSH_TSAN)
#define HUSH_SANITIZER "thread"
#else
#define HUSH_SANITIZER ""
#endif

#define HUSH_UNSANITIZED __attribute__((no_sanitize("thread")))

namespace hush_emulate {

/// Orders all earlier accesses of this thread before the accesses that follow a later `order_after` of the same tag.
HUSH_UNSANITIZED inline void order_before([[maybe_unused]] void* tag) {
#ifdef HUSH_TSAN
    __tsan_release(tag);
#endif
}

/// Orders the accesses that follow after those before an earlier `order_before` of the same tag.
HUSH_UNSANITIZED inline void order_after([[maybe_unused]] void* tag) {
#ifdef HUSH_TSAN
    __tsan_acquire(tag);
#endif
}

}  // namespace hush_emulate
