#include "collective.hpp"

#include "block.hpp"

namespace hush_emulate {
namespace {

HUSH_UNSANITIZED void complete(Block& block, Barrier& barrier) {
    barrier.arrived = 0;
    barrier.phase++;
    block.cluster->make_ready(barrier.waiting);
}

HUSH_UNSANITIZED void arrive(Barrier& barrier, uint32_t threads, const char* what) {
    // Two tags alternate: the accesses of a fast thread after this barrier are not ordered before those of a slow thread.
    char* tag = &barrier.tags[barrier.phase % 2];
    order_before(tag);
    if (++barrier.arrived == threads) {
        complete(*current->block, barrier);
        maybe_yield();
    } else {
        wait(barrier.waiting, what);
    }
    order_after(tag);
}

HUSH_UNSANITIZED void no_operation(void* const (&)[32], uint32_t) {}

HUSH_UNSANITIZED void complete(Block& block, Warp& warp, Meeting& meeting) {
    meeting.collective(warp.operands, meeting.arrived);
    block.cluster->make_ready(meeting.waiting);
    meeting = warp.meetings[--warp.meeting_count];
}

HUSH_UNSANITIZED Meeting& find_meeting(Warp& warp, uint32_t mask, Collective collective, const char* what) {
    for (uint32_t i = 0; i < warp.meeting_count; i++) {
        Meeting& meeting = warp.meetings[i];
        if (meeting.mask != mask) {
            if (meeting.mask & mask & warp.present & (1u << current->lane))
                fail(HUSH_EMULATE_MISUSE, "%s with mask %08x, while other lanes wait with mask %08x", what, mask,
                     meeting.mask);
            continue;
        }
        if (meeting.collective != collective)
            fail(HUSH_EMULATE_MISUSE, "%s, while other lanes of the warp wait at %s", what,
                 meeting.waiting.first->waits_for);
        return meeting;
    }
    Meeting& meeting = warp.meetings[warp.meeting_count++];
    meeting = {mask, 0, collective, WaitList{}, &warp.tags[warp.tags_used++ % sizeof warp.tags]};
    return meeting;
}

HUSH_UNSANITIZED void meet(uint32_t mask, Collective collective, void* operand, bool orders, const char* what) {
    Warp& warp = *current->warp;
    const uint32_t self = 1u << current->lane;
    if (!(mask & self)) fail(HUSH_EMULATE_MISUSE, "%s with mask %08x from lane %u", what, mask, current->lane);
    Meeting& meeting = find_meeting(warp, mask, collective, what);
    warp.operands[current->lane] = operand;
    meeting.arrived |= self;
    char* tag = meeting.tag;
    if (orders) order_before(tag);
    if (meeting.arrived == (mask & warp.present)) {
        complete(*current->block, warp, meeting);
        maybe_yield();
    } else {
        wait(meeting.waiting, what);
    }
    if (orders) order_after(tag);
}

}  // namespace

HUSH_UNSANITIZED void sync_block() {
    Block& block = *current->block;
    arrive(block.barriers[0], block.live, "__syncthreads");
}

HUSH_UNSANITIZED void sync_named(uint32_t id, uint32_t threads) {
    if (id == 0 || id >= Block::max_barriers) fail(HUSH_EMULATE_MISUSE, "there is no named barrier %u", id);
    if (threads == 0 || threads % 32 != 0)
        fail(HUSH_EMULATE_MISUSE, "a named barrier of %u threads: must be a multiple of 32", threads);
    Barrier& barrier = current->block->barriers[id];
    if (barrier.arrived == 0) barrier.threads = threads;
    if (barrier.threads != threads)
        fail(HUSH_EMULATE_MISUSE, "barrier %u of %u threads, while others wait for %u", id, threads, barrier.threads);
    arrive(barrier, threads, "a named barrier");
}

HUSH_UNSANITIZED void sync_warp(uint32_t mask) { meet(mask, no_operation, nullptr, true, "__syncwarp"); }

HUSH_UNSANITIZED void meet(uint32_t mask, Collective collective, void* operand, const char* what) {
    meet(mask, collective, operand, false, what);
}

HUSH_UNSANITIZED void meet_warp(Collective collective, void* operand, const char* what) {
    if (current->warp->present != ~0u) fail(HUSH_EMULATE_MISUSE, "%s in a warp with missing lanes", what);
    meet(~0u, collective, operand, false, what);
}

HUSH_UNSANITIZED void leave_collectives(Thread& thread) {
    Block& block = *thread.block;
    Warp& warp = *thread.warp;
    warp.present &= ~(1u << thread.lane);
    for (uint32_t i = warp.meeting_count; i-- > 0;) {
        Meeting& meeting = warp.meetings[i];
        if (meeting.arrived == (meeting.mask & warp.present)) complete(block, warp, meeting);
    }
    Barrier& barrier = block.barriers[0];
    if (barrier.arrived > 0 && barrier.arrived == block.live) complete(block, barrier);
}

namespace {

struct ShuffleOperand {
    uint64_t value, result;
    uint32_t source;
};

HUSH_UNSANITIZED void shuffle_lanes(void* const (&operands)[32], uint32_t lanes) {
    constexpr uint64_t poison = 0xcdcdcdcdcdcdcdcd;
    for (uint32_t i = 0; i < 32; i++) {
        if (!(lanes >> i & 1)) continue;
        ShuffleOperand& to = *static_cast<ShuffleOperand*>(operands[i]);
        const bool there = lanes >> to.source & 1;
        to.result = there ? static_cast<const ShuffleOperand*>(operands[to.source])->value : poison;
    }
}

struct BallotOperand {
    bool value;
    uint32_t result;
};

HUSH_UNSANITIZED void ballot_lanes(void* const (&operands)[32], uint32_t lanes) {
    uint32_t result = 0;
    for (uint32_t i = 0; i < 32; i++)
        if (lanes >> i & 1) result |= static_cast<uint32_t>(static_cast<BallotOperand*>(operands[i])->value) << i;
    for (uint32_t i = 0; i < 32; i++)
        if (lanes >> i & 1) static_cast<BallotOperand*>(operands[i])->result = result;
}

}  // namespace

HUSH_UNSANITIZED uint64_t shuffle(uint32_t mask, uint64_t value, uint32_t source) {
    ShuffleOperand operand{value, 0, source % 32};
    meet(mask, shuffle_lanes, &operand, "a shuffle");
    return operand.result;
}

HUSH_UNSANITIZED uint32_t ballot(uint32_t mask, bool value) {
    BallotOperand operand{value, 0};
    meet(mask, ballot_lanes, &operand, "a vote");
    return operand.result;
}

HUSH_UNSANITIZED uint32_t lane() { return current->lane; }

}  // namespace hush_emulate
