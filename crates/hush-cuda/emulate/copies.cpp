#include "copies.hpp"

#include <cstring>

#include "block.hpp"
#include "cluster.hpp"
#include "mbarrier.hpp"
#include "memory.hpp"
#include "registry.hpp"

namespace hush_emulate {
namespace {

constexpr int poison = 0xCD;

bool misaligned(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 != 0; }

// Memory accesses that ThreadSanitizer sees. The functions are not inlined, since it does not see their callers.
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

// Lands a copy as the thread that issued it, whichever thread runs now: ThreadSanitizer must see that thread.
HUSH_UNSANITIZED void land(const BulkCopies::Copy& item) {
#ifdef HUSH_TSAN
    void* self = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(item.issuer->fiber.tsan_fiber, __tsan_switch_to_fiber_no_sync);
#endif
    copy(item.shared, item.global == nullptr ? item.value : item.global, item.bytes);
    order_before(&item.to->proxy_tag);
    mbarrier_complete(item.barrier, item.bytes);
#ifdef HUSH_TSAN
    __tsan_switch_to_fiber(self, __tsan_switch_to_fiber_no_sync);
#endif
}

HUSH_UNSANITIZED void start(const BulkCopies::Copy& item) {
    Cluster& cluster = *item.to->cluster;
    if (!cluster.adversarial) {
        land(item);
        return;
    }
    spoil(item.shared, item.bytes);
    if (cluster.copies.pending.count == BulkCopies::capacity) land_bulk_copy(cluster);
    cluster.copies.pending.push(item);
}

HUSH_UNSANITIZED uint64_t* barrier_pointer(uint32_t barrier) {
    return reinterpret_cast<uint64_t*>(cluster_pointer(barrier, sizeof(uint64_t)));
}

HUSH_UNSANITIZED void check_bulk_copy(const void* shared, const void* global, uint32_t bytes) {
    require_capability(9, "cp.async.bulk");
    if (misaligned(shared) || misaligned(global) || bytes % 16 != 0)
        fail(HUSH_EMULATE_MISUSE, "cp.async.bulk of %u bytes is not in units of 16", bytes);
}

}  // namespace

HUSH_UNSANITIZED void bulk_copy(void* shared, const void* global, uint32_t bytes, uint64_t* barrier) {
    check_bulk_copy(shared, global, bytes);
    start({shared, global, bytes, barrier, current, current->block, {}});
}

HUSH_UNSANITIZED void bulk_copy_multicast(void* shared, const void* global, uint32_t bytes, uint64_t* barrier,
                                          uint32_t blocks) {
    check_bulk_copy(shared, global, bytes);
    const uint32_t count = current->block->grid->kernel->cluster;
    if (blocks == 0 || blocks >= 1u << count)
        fail(HUSH_EMULATE_MISUSE, "a copy to blocks %x of a cluster of %u", blocks, count);
    for (uint32_t rank = 0; rank < count; rank++) {
        if (!(blocks >> rank & 1)) continue;
        uint8_t* to = cluster_pointer(cluster_address(shared_address(shared), rank), bytes);
        uint64_t* reported = barrier_pointer(cluster_address(shared_address(barrier), rank));
        start({to, global, bytes, reported, current, &current->block->cluster->blocks[rank], {}});
    }
}

HUSH_UNSANITIZED void store_async_16(uint32_t shared, const void* value, uint32_t barrier) {
    require_capability(9, "st.async");
    if (shared % 16 != 0) fail(HUSH_EMULATE_MISUSE, "st.async of 16 bytes is misaligned");
    if (cluster_rank_of(shared) != cluster_rank_of(barrier))
        fail(HUSH_EMULATE_MISUSE, "st.async to block %u with a barrier of block %u", cluster_rank_of(shared),
             cluster_rank_of(barrier));
    Block& block = current->block->cluster->blocks[cluster_rank_of(shared)];
    BulkCopies::Copy item{cluster_pointer(shared, 16), nullptr, 16, barrier_pointer(barrier), current, &block, {}};
    std::memcpy(item.value, value, sizeof item.value);
    start(item);
}

HUSH_UNSANITIZED void fence_proxy_async() {
    require_capability(9, "fence.proxy.async");
    order_before(&current->block->proxy_tag);
}

HUSH_UNSANITIZED bool land_bulk_copy(Cluster& cluster) {
    auto& pending = cluster.copies.pending;
    if (pending.count == 0) return false;
    land(pending.take(cluster.random.below(pending.count)));
    return true;
}

HUSH_UNSANITIZED void bulk_copies_finish(const Block& block) {
    const auto& pending = block.cluster->copies.pending;
    for (uint32_t i = 0; i < pending.count; i++)
        if (pending.items[i].to == &block || pending.items[i].issuer->block == &block)
            fail(HUSH_EMULATE_MISUSE, "the block ends before its bulk copies do");
}

}  // namespace hush_emulate
