// Fibers: stacks that a single OS thread switches between.
#pragma once
#include <cstddef>
#include <cstdint>

#include "sanitizer.hpp"
// A switch takes twenty instructions on x86-64. Elsewhere, or if HUSH_EMULATE_UCONTEXT is defined, the slower ucontext makes it.
#if !defined(__x86_64__) && !defined(HUSH_EMULATE_UCONTEXT)
#define HUSH_EMULATE_UCONTEXT 1
#endif
#ifdef HUSH_EMULATE_UCONTEXT
#include <ucontext.h>
#endif

namespace hush_emulate {

/// A stack, and the state in which its execution stopped. The OS thread's own stack is a fiber too (`stack` is null until the first
/// switch from it).
struct Fiber {
    const void* stack = nullptr;
    size_t stack_bytes = 0;
    void* asan_fake_stack = nullptr;
    void* tsan_fiber = nullptr;
#ifdef HUSH_EMULATE_UCONTEXT
    ucontext_t context;
#else
    void* stack_pointer = nullptr;
#endif
};

/// The stacks of `count` fibers with a guard page each. They are mapped once and reused for many blocks.
class Stacks {
public:
    explicit Stacks(uint32_t count);
    ~Stacks();
    Stacks(const Stacks&) = delete;
    Stacks& operator=(const Stacks&) = delete;

    /// Returns the lowest byte of stack number `at`.
    char* at(uint32_t at) const { return memory_ + at * stride_ + guard_bytes; }

    static constexpr size_t guard_bytes = 4096;
#if defined(HUSH_ASAN) || defined(HUSH_TSAN)
    static constexpr size_t stack_bytes = 256 << 10;
#else
    static constexpr size_t stack_bytes = 128 << 10;
#endif

private:
    static constexpr size_t stride_ = guard_bytes + stack_bytes;
    size_t bytes_;
    char* memory_;
};

/// Prepares `fiber` to start with `entry`, which never returns, at the top of its stack, lowered by `colour % 64` * 64 bytes.
/// Neighbouring fibers have different colours, so that the tops do not share cache sets. With `poison`, the first 4 KiB are filled
/// with 0xCD.
void prepare_fiber(Fiber& fiber, void (*entry)(), uint32_t colour, bool poison);

/// Stops `from`, which runs, and continues `to`. `for_good` means that `from` is never continued.
void switch_fiber(Fiber& from, Fiber& to, bool for_good);

/// Completes the first switch to a fiber, which must call it first. `main` is the fiber that entered the first fiber.
void begin_fiber(Fiber& main);

/// Clears the sanitizers' state of a stack that was abandoned half-way.
void forget_stack(const Fiber& fiber);

}  // namespace hush_emulate
