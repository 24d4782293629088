#include "block.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "cluster.hpp"
#include "collective.hpp"
#include "registry.hpp"

namespace hush_emulate {

HUSH_UNSANITIZED void Cluster::make_ready(WaitList& list) {
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

[[noreturn]] HUSH_UNSANITIZED void leave(Cluster& cluster) {
    switch_fiber(current->fiber, cluster.main, true);
    std::abort();
}

// Draws a place in the ring at random. In a cluster of several blocks, one block is favoured for a while, so that it gets far
// ahead.
HUSH_UNSANITIZED uint32_t draw(Cluster& cluster) {
    constexpr uint32_t steps = 512, tries = 8;
    if (cluster.grid->kernel->cluster > 1 && cluster.random.below(steps) == 0)
        cluster.favoured = cluster.random.below(cluster.grid->kernel->cluster);
    uint32_t place = 0;
    for (uint32_t i = 0; i < tries; i++) {
        place = (cluster.ready_first + cluster.random.below(cluster.ready_count)) % Cluster::max_threads;
        if (cluster.ready[place]->block->rank == cluster.favoured) break;
    }
    return place;
}

// Returns the next thread to run. If none can run, copies land until one can. Returns null if no copy is left: the cluster hangs.
HUSH_UNSANITIZED Thread* next_ready(Cluster& cluster) {
    while (cluster.ready_count == 0) {
        if (!land_bulk_copy(cluster)) return nullptr;
    }
    if (cluster.adversarial) {
        const uint32_t pick = draw(cluster);
        Thread* thread = cluster.ready[pick];
        cluster.ready[pick] = cluster.ready[cluster.ready_first];
        cluster.ready[cluster.ready_first] = thread;
    }
    Thread* thread = cluster.ready[cluster.ready_first];
    cluster.ready_first = (cluster.ready_first + 1) % Cluster::max_threads;
    cluster.ready_count--;
    return thread;
}

HUSH_UNSANITIZED void run_next(Cluster& cluster) {
    Thread* next = next_ready(cluster);
    if (next == nullptr) {
        for (uint32_t i = 0; i < cluster.grid->kernel->cluster; i++) report_hang(cluster.blocks[i]);
        cluster.outcome = HUSH_EMULATE_HANG;
        leave(cluster);
    }
    Thread* self = current;
    if (next == self) return;
    current = next;
    switch_fiber(self->fiber, next->fiber, self->finished);
}

// Runs a thread from its start to its end.
HUSH_UNSANITIZED void run_thread() {
    Thread& self = *current;
    Block& block = *self.block;
    Cluster& cluster = *block.cluster;
    begin_fiber(cluster.main);
    order_after(&cluster.start_tag);
    block.started = true;
    block.grid->kernel->invoke(block.grid->params);
    cp_async_finish(self);
    wgmma_finish(self);
    order_before(&cluster.end_tag);
    self.finished = true;
    block.live--;
    cluster.live--;
    leave_collectives(self);
    leave_cluster(self);
    if (block.live == 0) {
        bulk_copies_finish(block);
        wgmma_check_warpgroups(block);
    }
    if (cluster.live > 0) run_next(cluster);
    leave(cluster);
}

}  // namespace

HUSH_UNSANITIZED void wait(WaitList& list, const char* what) {
    list.add(*current);
    current->waits_for = what;
    run_next(*current->block->cluster);
}

HUSH_UNSANITIZED void yield() {
    current->block->cluster->make_ready(*current);
    run_next(*current->block->cluster);
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
    block.cluster->outcome = outcome;
    leave(*block.cluster);
}

HUSH_UNSANITIZED void require_capability(uint32_t major, const char* primitive) {
    const HushEmulation& options = *current->block->grid->options;
    if (options.capability_major >= major) return;
    fail(HUSH_EMULATE_UNSUPPORTED, "%s needs compute capability %u.0, the device has %u.%u", primitive, major,
         options.capability_major, options.capability_minor);
}

Arena::Arena(uint32_t capacity)
    : capacity_(capacity), stacks_(capacity), threads_(new Thread[capacity]()), cluster_(new Cluster()) {
    for (uint32_t i = 0; i < capacity; i++) {
        Fiber& fiber = threads_[i].fiber;
        fiber.stack = stacks_.at(i);
        fiber.stack_bytes = Stacks::stack_bytes;
#ifdef HUSH_TSAN
        fiber.tsan_fiber = __tsan_create_fiber(0);
#endif
    }
#ifdef HUSH_TSAN
    for (Block& block : cluster_->blocks) block.tsan_proxy = __tsan_create_fiber(0);
#endif
    cluster_->copies.pending.reserve(BulkCopies::capacity);
}

Arena::~Arena() {
    for (uint32_t i = 0; i < capacity_; i++) {
        forget_stack(threads_[i].fiber);
#ifdef HUSH_TSAN
        __tsan_destroy_fiber(threads_[i].fiber.tsan_fiber);
#endif
    }
#ifdef HUSH_TSAN
    for (Block& block : cluster_->blocks) __tsan_destroy_fiber(block.tsan_proxy);
#endif
}

HUSH_UNSANITIZED void Arena::reset(Block& block, const Grid& grid, Thread* threads, uint8_t* shared) {
    block.grid = &grid;
    block.cluster = cluster_.get();
    block.threads_dim = {grid.threads, 1, 1};
    block.started = false;
    block.live = grid.threads;
    block.adversarial = block.cluster->adversarial;
    block.shared = shared;
    block.threads = threads;
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
        Thread& thread = threads[i];
        thread.block = &block;
        thread.warp = &block.warps[i / 32];
        thread.lane = i % 32;
        thread.index = {i, 0, 0};
        thread.finished = false;
        thread.arrived = false;
        thread.copies.groups_committed = 0;
        thread.wgmmas.groups_committed = 0;
        thread.wgmmas.fenced = false;
        prepare_fiber(thread.fiber, run_thread, i * 5, block.adversarial);
        block.cluster->make_ready(thread);
    }
}

HUSH_UNSANITIZED void Arena::reset(const Grid& grid, Index3 first, uint64_t seed, uint8_t* const* shared) {
    Cluster& cluster = *cluster_;
    const uint32_t blocks = grid.kernel->cluster;
    cluster.grid = &grid;
    cluster.main = Fiber{};
    cluster.live = blocks * grid.threads;
    cluster.outcome = HUSH_EMULATE_OK;
    cluster.adversarial = seed != 0;
    cluster.random.state = seed | 1;
    cluster.favoured = cluster.random.below(blocks);
    cluster.barrier.arrived = 0;
    cluster.barrier.waiting = WaitList{};
    cluster.mbarrier_waiters = WaitList{};
    cluster.copies.pending.count = 0;
    cluster.ready_first = 0;
    cluster.ready_count = 0;
    for (uint32_t rank = 0; rank < blocks; rank++) {
        Block& block = cluster.blocks[rank];
        block.rank = rank;
        block.index = {first.x + rank, first.y, first.z};
        reset(block, grid, &threads_[rank * grid.threads], shared[rank]);
    }
}

// Orders the accesses of threads that stopped half-way before the accesses that follow.
HUSH_UNSANITIZED void Arena::give_up() {
#ifdef HUSH_TSAN
    Cluster& cluster = *cluster_;
    Thread* const threads = cluster.blocks[0].threads;
    for (uint32_t i = 0; i < cluster.grid->kernel->cluster * cluster.grid->threads; i++) {
        __tsan_switch_to_fiber(threads[i].fiber.tsan_fiber, __tsan_switch_to_fiber_no_sync);
        order_before(&cluster.end_tag);
    }
    __tsan_switch_to_fiber(cluster.main.tsan_fiber, __tsan_switch_to_fiber_no_sync);
#endif
}

HUSH_UNSANITIZED int Arena::run(const Grid& grid, Index3 first, uint64_t seed, uint8_t* const* shared) {
    reset(grid, first, seed, shared);
    Cluster& cluster = *cluster_;
#ifdef HUSH_TSAN
    cluster.main.tsan_fiber = __tsan_get_current_fiber();
#endif
    order_before(&cluster.start_tag);
    current = next_ready(cluster);
    switch_fiber(cluster.main, current->fiber, false);
    current = nullptr;
    if (cluster.outcome != HUSH_EMULATE_OK) give_up();
    order_after(&cluster.end_tag);
    return cluster.outcome;
}

}  // namespace hush_emulate
