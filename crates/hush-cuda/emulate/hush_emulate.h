// The C interface of the CUDA emulator. Kernels compiled as C++17 run on the CPU, with a fiber for each CUDA thread.
//
// All threads of a cluster, or of a single block, take turns on one OS thread. A thread yields only at barriers, collectives of a
// warp, and waits. Different clusters run on several OS threads. So no block may wait for a block of another cluster, and no thread
// may spin on memory. Dynamic shared memory is filled with 0xCD before each block. Global memory is the memory of the host.
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The emulated device, and the mode of the emulation.
struct HushEmulation {
    /// The compute capability. A primitive of a later one ends the launch with HUSH_EMULATE_UNSUPPORTED.
    uint32_t capability_major, capability_minor;
    /// The seed of the schedule. 0 means orderly. Any other seed is adversarial: threads are resumed in random order, asynchronous
    /// copies land late and poison their destination at issue, and the stacks of threads start poisoned.
    uint64_t seed;
    /// The number of OS threads that run blocks, at least one.
    uint32_t threads;
};

/// The outcome of a launch.
enum HushEmulateOutcome {
    HUSH_EMULATE_OK = 0,
    HUSH_EMULATE_UNKNOWN_KERNEL = 1,
    /// All unfinished threads of a cluster wait for events that cannot happen any more.
    HUSH_EMULATE_HANG = 2,
    /// The kernel used a primitive that the emulated device lacks.
    HUSH_EMULATE_UNSUPPORTED = 3,
    /// The launch or the kernel broke a rule of CUDA: a misaligned copy, lanes in different collectives, and so on.
    HUSH_EMULATE_MISUSE = 4,
};

/// Runs a kernel over a grid of one-dimensional blocks of `block` threads, and waits for it. `params` has pointers to the
/// arguments, as for cuLaunchKernel. Returns a HushEmulateOutcome, and prints the reason of a failure to stderr. Several OS threads
/// may call it at once.
int hush_emulate_launch(const char* kernel, const uint32_t grid[3], uint32_t block, uint32_t shared_bytes,
                        void** params, const struct HushEmulation* options);

/// Returns the number of kernels.
size_t hush_emulate_kernel_count(void);
/// Returns the name of kernel `at` in the order of names, or null if `at` is out of range.
const char* hush_emulate_kernel_name(size_t at);

/// Returns the sanitizer that emulator and kernels are compiled with: "address", "thread" or "".
const char* hush_emulate_sanitizer(void);

#ifdef __cplusplus
}
#endif
