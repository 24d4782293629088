#include "block.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "collective.hpp"
#include "registry.hpp"

namespace hush_emulate {

HUSH_UNSANITIZED void Block::make_ready(WaitList& list) {
    for (Thread* thread = list.first; thread != nullptr;) {
        Thread* next = thread->next_waiting;
        make_ready(*thread);
        thread = next;
    }
    list = WaitList{};
}

namespace {

HUSH_UNSANITIZED void report_hang(const Block& block) {
    std::fprintf(stderr, "hush_emulate: kernel %s, block (%u, %u, %u) hangs; waiting:\n", block.grid->kernel->name,
                 block.index.x, block.index.y, block.index.z);
    for (uint32_t first = 0; first < block.grid->threads;) {
        const char* what = block.threads[first].waits_for;
        uint32_t end = first + 1;
        while (end < block.grid->threads && block.threads[end].waits_for == what) end++;
        if (what != nullptr) std::fprintf(stderr, "    threads %u..%u: %s\n", first, end - 1, what);
        first = end;
    }
}

[[noreturn]] HUSH_UNSANITIZED void leave(Block& block) {
    switch_fiber(current->fiber, block.main, true);
    std::abort();
}

// The next thread to run. If none can, copies land until one can; without copies the block hangs.
HUSH_UNSANITIZED Thread* next_ready(Block& block) {
    while (block.ready_count == 0) {
        if (!land_bulk_copy(block)) return nullptr;
    }
    if (block.adversarial) {
        const uint32_t pick = (block.ready_first + block.random.below(block.ready_count)) % Block::max_threads;
        Thread* thread = block.ready[pick];
        block.ready[pick] = block.ready[block.ready_first];
        block.ready[block.ready_first] = thread;
    }
    Thread* thread = block.ready[block.ready_first];
    block.ready_first = (block.ready_first + 1) % Block::max_threads;
    block.ready_count--;
    return thread;
}

HUSH_UNSANITIZED void run_next(Block& block) {
    Thread* next = next_ready(block);
    if (next == nullptr) {
        report_hang(block);
        block.outcome = HUSH_EMULATE_HANG;
        leave(block);
    }
    Thread* self = current;
    if (next == self) return;
    current = next;
    switch_fiber(self->fiber, next->fiber, self->finished);
}

// The whole life of a thread.
HUSH_UNSANITIZED void run_thread() {
    Thread& self = *current;
    Block& block = *self.block;
    begin_fiber(block.main);
    order_after(&block.start_tag);
    block.grid->kernel->invoke(block.grid->params);
    cp_async_finish(self);
    wgmma_finish(self);
    order_before(&block.end_tag);
    self.finished = true;
    block.live--;
    leave_collectives(self);
    if (block.live > 0) run_next(block);
    if (block.copies.pending.count > 0) fail(HUSH_EMULATE_MISUSE, "the block ends before its bulk copies do");
    wgmma_check_warpgroups(block);
    leave(block);
}

}  // namespace

HUSH_UNSANITIZED void wait(WaitList& list, const char* what) {
    list.add(*current);
    current->waits_for = what;
    run_next(*current->block);
}

HUSH_UNSANITIZED void yield() {
    current->block->make_ready(*current);
    run_next(*current->block);
}

HUSH_UNSANITIZED void maybe_yield() {
    if (current->block->adversarial) yield();
}

HUSH_UNSANITIZED void fail(int outcome, const char* format, ...) {
    Block& block = *current->block;
    char reason[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    std::fprintf(stderr, "hush_emulate: kernel %s, block (%u, %u, %u), thread %u: %s\n", block.grid->kernel->name,
                 block.index.x, block.index.y, block.index.z, current->index.x, reason);
    block.outcome = outcome;
    leave(block);
}

HUSH_UNSANITIZED void require_capability(uint32_t major, const char* primitive) {
    const HushEmulation& options = *current->block->grid->options;
    if (options.capability_major >= major) return;
    fail(HUSH_EMULATE_UNSUPPORTED, "%s needs compute capability %u.0, the device has %u.%u", primitive, major,
         options.capability_major, options.capability_minor);
}

Arena::Arena(uint32_t capacity)
    : capacity_(capacity), stacks_(capacity), threads_(new Thread[capacity]()), block_(new Block()) {
    for (uint32_t i = 0; i < capacity; i++) {
        Thread& thread = threads_[i];
        thread.block = block_.get();
        thread.warp = &block_->warps[i / 32];
        thread.lane = i % 32;
        thread.index = {i, 0, 0};
        thread.fiber.stack = stacks_.at(i);
        thread.fiber.stack_bytes = Stacks::stack_bytes;
#ifdef HUSH_TSAN
        thread.fiber.tsan_fiber = __tsan_create_fiber(0);
#endif
    }
#ifdef HUSH_TSAN
    block_->tsan_proxy = __tsan_create_fiber(0);
#endif
    block_->threads = threads_.get();
    block_->copies.pending.reserve(BlockCopies::capacity);
}

Arena::~Arena() {
    for (uint32_t i = 0; i < capacity_; i++) {
        forget_stack(threads_[i].fiber);
#ifdef HUSH_TSAN
        __tsan_destroy_fiber(threads_[i].fiber.tsan_fiber);
#endif
    }
#ifdef HUSH_TSAN
    __tsan_destroy_fiber(block_->tsan_proxy);
#endif
}

HUSH_UNSANITIZED void Arena::reset(const Grid& grid, Index3 index, uint64_t seed, uint8_t* shared) {
    Block& block = *block_;
    block.grid = &grid;
    block.index = index;
    block.threads_dim = {grid.threads, 1, 1};
    block.main = Fiber{};
    block.live = grid.threads;
    block.outcome = HUSH_EMULATE_OK;
    block.adversarial = seed != 0;
    block.random.state = seed | 1;
    block.shared = shared;
    block.copies.pending.count = 0;
    block.mbarrier_waiters = WaitList{};
    block.ready_first = 0;
    block.ready_count = 0;
    for (Barrier& barrier : block.barriers) {
        barrier.arrived = 0;
        barrier.waiting = WaitList{};
    }
    for (uint32_t i = 0; i * 32 < grid.threads; i++) {
        Warp& warp = block.warps[i];
        const uint32_t lanes = grid.threads - i * 32;
        warp.present = lanes >= 32 ? ~0u : (1u << lanes) - 1;
        warp.meeting_count = 0;
        warp.wgmma_trace = 0;
    }
    for (uint32_t i = 0; i < grid.threads; i++) {
        Thread& thread = threads_[i];
        thread.finished = false;
        thread.copies.groups_committed = 0;
        thread.wgmmas.groups_committed = 0;
        thread.wgmmas.fenced = false;
        prepare_fiber(thread.fiber, run_thread, i * 5, block.adversarial);
        block.make_ready(thread);
    }
}

// Threads that were given up half-way did what they did before what follows.
HUSH_UNSANITIZED void Arena::give_up() {
#ifdef HUSH_TSAN
    Block& block = *block_;
    for (uint32_t i = 0; i < block.grid->threads; i++) {
        __tsan_switch_to_fiber(block.threads[i].fiber.tsan_fiber, __tsan_switch_to_fiber_no_sync);
        order_before(&block.end_tag);
    }
    __tsan_switch_to_fiber(block.main.tsan_fiber, __tsan_switch_to_fiber_no_sync);
#endif
}

HUSH_UNSANITIZED int Arena::run(const Grid& grid, Index3 index, uint64_t seed, uint8_t* shared) {
    reset(grid, index, seed, shared);
    Block& block = *block_;
#ifdef HUSH_TSAN
    block.main.tsan_fiber = __tsan_get_current_fiber();
#endif
    order_before(&block.start_tag);
    current = next_ready(block);
    switch_fiber(block.main, current->fiber, false);
    current = nullptr;
    if (block.outcome != HUSH_EMULATE_OK) give_up();
    order_after(&block.end_tag);
    return block.outcome;
}

}  // namespace hush_emulate
