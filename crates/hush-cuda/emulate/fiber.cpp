#include "fiber.hpp"

#include <cstring>
#include <new>
#include <sys/mman.h>

#ifndef HUSH_EMULATE_UCONTEXT
// Saves the callee-saved registers on the old stack, and restores them from the new stack.
extern "C" void hush_emulate_switch(void** save_stack_pointer, void* stack_pointer);
asm(R"(
    .text
    .globl hush_emulate_switch
    .hidden hush_emulate_switch
    .type hush_emulate_switch, @function
hush_emulate_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size hush_emulate_switch, . - hush_emulate_switch
)");
#endif

namespace hush_emulate {

Stacks::Stacks(uint32_t count) : bytes_(count * stride_) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    memory_ = static_cast<char*>(memory);
    for (uint32_t i = 0; i < count; i++) mprotect(memory_ + i * stride_, guard_bytes, PROT_NONE);
}

Stacks::~Stacks() { munmap(memory_, bytes_); }

HUSH_UNSANITIZED void prepare_fiber(Fiber& fiber, void (*entry)(), uint32_t colour, bool poison) {
    char* stack = static_cast<char*>(const_cast<void*>(fiber.stack));
    char* top = stack + fiber.stack_bytes - colour % 64 * 64;
#ifndef HUSH_ASAN
    if (poison) std::memset(top - 4096, 0xCD, 4096);
#else
    (void)poison;  // AddressSanitizer finds what poison would show
#endif
#ifndef HUSH_EMULATE_UCONTEXT
    constexpr int saved_registers = 6;
    void** slot = reinterpret_cast<void**>(top);
    *--slot = nullptr;  // where the return address of `entry` would be, and the stack aligned as after a call
    *--slot = reinterpret_cast<void*>(entry);
    for (int i = 0; i < saved_registers; i++) *--slot = nullptr;
    fiber.stack_pointer = slot;
#else
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = stack;
    fiber.context.uc_stack.ss_size = top - stack;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, entry, 0);
#endif
}

HUSH_UNSANITIZED void switch_fiber(Fiber& from, Fiber& to, [[maybe_unused]] bool for_good) {
#ifdef HUSH_ASAN
    __sanitizer_start_switch_fiber(for_good ? nullptr : &from.asan_fake_stack, to.stack, to.stack_bytes);
#endif
#ifdef HUSH_TSAN
    __tsan_switch_to_fiber(to.tsan_fiber, __tsan_switch_to_fiber_no_sync);
#endif
#ifndef HUSH_EMULATE_UCONTEXT
    hush_emulate_switch(&from.stack_pointer, to.stack_pointer);
#else
    swapcontext(&from.context, &to.context);
#endif
#ifdef HUSH_ASAN
    __sanitizer_finish_switch_fiber(from.asan_fake_stack, nullptr, nullptr);
#endif
}

HUSH_UNSANITIZED void begin_fiber([[maybe_unused]] Fiber& main) {
#ifdef HUSH_ASAN
    const void* stack = nullptr;
    size_t stack_bytes = 0;
    __sanitizer_finish_switch_fiber(nullptr, &stack, &stack_bytes);
    if (main.stack == nullptr) {
        main.stack = stack;
        main.stack_bytes = stack_bytes;
    }
#endif
}

void forget_stack([[maybe_unused]] const Fiber& fiber) {
#ifdef HUSH_ASAN
    ASAN_UNPOISON_MEMORY_REGION(fiber.stack, fiber.stack_bytes);
#endif
}

}  // namespace hush_emulate
