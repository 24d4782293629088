// The C interface of the CUDA emulator: kernels compiled as C++17 run on the CPU, one fiber a CUDA thread.
//
// The threads of a block take turns on one OS thread, which they leave only at barriers, collectives of a warp, and
// waits, and so do the blocks of a cluster; others run on several OS threads. So no block may wait for what one of another
// cluster does, and no thread may spin on memory. Dynamic shared memory is filled with 0xCD before each block. Memory that
// kernels share is the host's.
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The device that is emulated and how.
struct HushEmulation {
    /// Compute capability: primitives of a later one end the launch with HUSH_EMULATE_UNSUPPORTED.
    uint32_t capability_major, capability_minor;
    /// 0: orderly. Otherwise adversarial: threads are resumed in random order, asynchronous copies land late with
    /// their destination poisoned at issue, and the stacks of threads start poisoned.
    uint64_t seed;
    /// OS threads that run blocks, at least one.
    uint32_t threads;
};

enum HushEmulateOutcome {
    HUSH_EMULATE_OK = 0,
    HUSH_EMULATE_UNKNOWN_KERNEL = 1,
    /// All unfinished threads of a block wait for what cannot happen any more.
    HUSH_EMULATE_HANG = 2,
    /// The kernel used a primitive that the emulated device lacks.
    HUSH_EMULATE_UNSUPPORTED = 3,
    /// The launch or the kernel broke a rule of CUDA: a misaligned copy, lanes in different collectives, and so on.
    HUSH_EMULATE_MISUSE = 4,
};

/// Runs a kernel over a grid of one-dimensional blocks and waits for it. `params` are pointers to the arguments, as
/// for cuLaunchKernel. Returns a HushEmulateOutcome; what went wrong is said on stderr. May be called by several OS
/// threads at once.
int hush_emulate_launch(const char* kernel, const uint32_t grid[3], uint32_t block, uint32_t shared_bytes,
                        void** params, const struct HushEmulation* options);

/// How many kernels there are, and the name of number `at` (sorted by name; null if out of range).
size_t hush_emulate_kernel_count(void);
const char* hush_emulate_kernel_name(size_t at);

/// The sanitizer that emulator and kernels are compiled with: "address", "thread" or "".
const char* hush_emulate_sanitizer(void);

#ifdef __cplusplus
}
#endif
