#include "copies.hpp"

#include <cstring>

#include "block.hpp"
#include "mbarrier.hpp"

namespace hush_emulate {
namespace {

constexpr int poison = 0xCD;

bool misaligned(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 != 0; }

// Not inlined into functions that ThreadSanitizer does not see.
__attribute__((noinline)) void copy(void* to, const void* from, uint32_t bytes) { std::memcpy(to, from, bytes); }
__attribute__((noinline)) void spoil(void* to, uint32_t bytes) { std::memset(to, poison, bytes); }

HUSH_UNSANITIZED void land_groups_below(Thread& thread, uint32_t end) {
    auto& pending = thread.copies.pending;
    uint32_t landed = 0;
    while (landed < pending.count && pending.items[landed].group < end) {
        copy(pending.items[landed].shared, pending.items[landed].global, 16);
        landed++;
    }
    pending.drop_first(landed);
}

}  // namespace

HUSH_UNSANITIZED void cp_async_16(void* shared, const void* global) {
    require_capability(8, "cp.async");
    if (misaligned(shared) || misaligned(global)) fail(HUSH_EMULATE_MISUSE, "cp.async of 16 bytes is misaligned");
    if (!current->block->adversarial) {
        copy(shared, global, 16);
        return;
    }
    spoil(shared, 16);
    current->copies.pending.push({shared, global, current->copies.groups_committed});
}

HUSH_UNSANITIZED void cp_async_commit() {
    require_capability(8, "cp.async.commit_group");
    current->copies.groups_committed++;
}

HUSH_UNSANITIZED void cp_async_wait(uint32_t pending) {
    require_capability(8, "cp.async.wait_group");
    const uint32_t committed = current->copies.groups_committed;
    land_groups_below(*current, committed > pending ? committed - pending : 0);
}

HUSH_UNSANITIZED void cp_async_finish(Thread& thread) { land_groups_below(thread, ~0u); }

namespace {

// As the thread that issued the copy, whoever runs now: that is who ThreadSanitizer must see.
HUSH_UNSANITIZED void land(const BlockCopies::Copy& item) {
#ifdef HUSH_TSAN
    void* self = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(item.issuer->fiber.tsan_fiber, __tsan_switch_to_fiber_no_sync);
#endif
    copy(item.shared, item.global, item.bytes);
    order_before(&current->block->proxy_tag);
    mbarrier_complete(item.barrier, item.bytes);
#ifdef HUSH_TSAN
    __tsan_switch_to_fiber(self, __tsan_switch_to_fiber_no_sync);
#endif
}

}  // namespace

HUSH_UNSANITIZED void bulk_copy(void* shared, const void* global, uint32_t bytes, uint64_t* barrier) {
    require_capability(9, "cp.async.bulk");
    if (misaligned(shared) || misaligned(global) || bytes % 16 != 0)
        fail(HUSH_EMULATE_MISUSE, "cp.async.bulk of %u bytes is not in units of 16", bytes);
    Block& block = *current->block;
    const BlockCopies::Copy item{shared, global, bytes, barrier, current};
    if (!block.adversarial) {
        land(item);
        return;
    }
    spoil(shared, bytes);
    if (block.copies.pending.count == BlockCopies::capacity) land_bulk_copy(block);
    block.copies.pending.push(item);
}

HUSH_UNSANITIZED void fence_proxy_async() {
    require_capability(9, "fence.proxy.async");
    order_before(&current->block->proxy_tag);
}

HUSH_UNSANITIZED bool land_bulk_copy(Block& block) {
    auto& pending = block.copies.pending;
    if (pending.count == 0) return false;
    land(pending.take(block.random.below(pending.count)));
    return true;
}

}  // namespace hush_emulate
