// Fibers: stacks that a single OS thread switches between.
#pragma once
#include <cstddef>
#include <cstdint>

#include "sanitizer.hpp"
// Twenty instructions on x86-64; elsewhere, or where HUSH_EMULATE_UCONTEXT asks for it, the system's slower way.
#if !defined(__x86_64__) && !defined(HUSH_EMULATE_UCONTEXT)
#define HUSH_EMULATE_UCONTEXT 1
#endif
#ifdef HUSH_EMULATE_UCONTEXT
#include <ucontext.h>
#endif

namespace hush_emulate {

/// A stack and where its execution stopped. The OS thread's own stack is one too (`stack` null until it was left).
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

/// Stacks of `count` fibers with a guard page each, mapped once and used again for many blocks.
class Stacks {
public:
    explicit Stacks(uint32_t count);
    ~Stacks();
    Stacks(const Stacks&) = delete;
    Stacks& operator=(const Stacks&) = delete;

    /// The lowest byte of stack number `at`.
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

/// Makes `fiber` start with `entry` (which never returns) at the top of its stack, lowered by `colour` * 64 bytes, a
/// different number for each fiber, so that the tops do not share cache sets. `poison` fills the first 4 KiB.
void prepare_fiber(Fiber& fiber, void (*entry)(), uint32_t colour, bool poison);

/// Stops `from`, which runs, and continues `to`; `for_good` if `from` is never continued.
void switch_fiber(Fiber& from, Fiber& to, bool for_good);

/// To be called first in a fiber; `main` is whom the first fiber was entered from.
void begin_fiber(Fiber& main);

/// Forgets what sanitizers hold about a stack that was given up half-way.
void forget_stack(const Fiber& fiber);

}  // namespace hush_emulate
