#include "wgmma.hpp"

#include <cstring>
#include <initializer_list>

#include "block.hpp"
#include "collective.hpp"
#include "memory.hpp"

namespace hush_emulate {
namespace {

constexpr uint32_t depth = 32, warp_rows = 16, max_columns = 256;

struct Descriptor {
    uint32_t start, stride;
};

HUSH_UNSANITIZED Descriptor decode(uint64_t word) {
    const uint32_t swizzle = word >> 62, base_offset = word >> 49 & 7;
    const Descriptor result{static_cast<uint32_t>(word & 0x3fff) << 4, static_cast<uint32_t>(word >> 32 & 0x3fff) << 4};
    if (swizzle != 1 || base_offset != 0 || result.stride % 1024 != 0)
        fail(HUSH_EMULATE_MISUSE, "wgmma with a descriptor other than of 128-byte swizzle and aligned tiles");
    return result;
}

// Reads 16 bytes. ThreadSanitizer sees the read: the function is not inlined.
__attribute__((noinline)) void read_16(uint8_t (&bytes)[16], const uint8_t* from) {
    std::memcpy(bytes, from, sizeof bytes);
}

// Reads rows `first` to `first + rows` of an operand, 32 bytes each. The hardware swizzles addresses, not offsets in a tile: bits
// 7 to 9 are added to bits 4 to 6 by XOR.
HUSH_UNSANITIZED void read_rows(int16_t* to, uint64_t descriptor, uint32_t first, uint32_t rows, bool is_signed) {
    const Descriptor operand = decode(descriptor);
    for (uint32_t row = first; row < first + rows; row++) {
        for (uint32_t chunk = 0; chunk < depth; chunk += 16) {
            uint32_t address = operand.start + row / 8 * operand.stride + row % 8 * 128 + chunk;
            address ^= (address >> 7 & 7) << 4;
            uint8_t bytes[16];
            read_16(bytes, shared_pointer(address, sizeof bytes));
            if (is_signed)
                for (uint8_t byte : bytes) *to++ = static_cast<int8_t>(byte);
            else
                for (uint8_t byte : bytes) *to++ = byte;
        }
    }
}

// Reads rows twice under ThreadSanitizer. The asynchronous proxy reads first, so that writes without a fence are found. The running
// lane then reads for its warp, so that writes without a barrier are found.
HUSH_UNSANITIZED void load(int16_t* to, uint64_t descriptor, uint32_t first, uint32_t rows, bool is_signed) {
#ifdef HUSH_TSAN
    Block& block = *current->block;
    void* self = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(block.tsan_proxy, __tsan_switch_to_fiber_no_sync);
    order_after(&block.cluster->start_tag);
    order_after(&block.proxy_tag);
    read_rows(to, descriptor, first, rows, is_signed);
    order_before(&current->warp->wgmma_trace);
    order_before(&block.cluster->end_tag);
    __tsan_switch_to_fiber(self, __tsan_switch_to_fiber_no_sync);
#endif
    read_rows(to, descriptor, first, rows, is_signed);
}

HUSH_UNSANITIZED ThreadWgmmas::Accumulator& accumulator(Thread& thread, const int32_t* d) {
    auto& all = thread.wgmmas.accumulators;
    uint32_t at = 0;
    while (all.items[at].d != d) at++;
    return all.items[at];
}

// Returns the index of word i of a lane's accumulators in the warp's 16 rows.
HUSH_UNSANITIZED uint32_t place(uint32_t lane, uint32_t i, uint32_t columns) {
    return (lane / 4 + i / 2 % 2 * 8) * columns + i / 4 * 8 + lane % 4 * 2 + i % 2;
}

HUSH_UNSANITIZED const ThreadWgmmas::Product& product(const void* lane, uint32_t at) {
    return static_cast<const Thread*>(lane)->wgmmas.pending.items[at];
}

// Runs products `at` to `end`, which add to the same accumulators.
HUSH_UNSANITIZED void multiply_add(void* const (&lanes)[32], uint32_t at, uint32_t end) {
    const uint32_t columns = product(lanes[0], at).columns, words = columns / 2;
    const uint32_t warp = static_cast<const Thread*>(lanes[0])->index.x / 32 % 4;
    int16_t a[warp_rows * depth], b[max_columns * depth];
    int32_t d[warp_rows * max_columns];
    int32_t* values[32];
    for (uint32_t lane = 0; lane < 32; lane++) {
        values[lane] = accumulator(*static_cast<Thread*>(lanes[lane]), product(lanes[lane], at).d).values;
        for (uint32_t i = 0; i < words; i++) d[place(lane, i, columns)] = values[lane][i];
    }
    for (; at < end; at++) {
        const ThreadWgmmas::Product& next = product(lanes[0], at);
        load(a, next.a, warp_rows * warp, warp_rows, next.signs.a_signed);
        load(b, next.b, 0, columns, next.signs.b_signed);
        multiply_16xk32(d, a, b, columns);
    }
    for (uint32_t lane = 0; lane < 32; lane++)
        for (uint32_t i = 0; i < words; i++) values[lane][i] = d[place(lane, i, columns)];
}

// Fails the launch unless all lanes of a warp have issued the same product. Either all or none must add it to the accumulators of
// the product before.
HUSH_UNSANITIZED void check_product(void* const (&lanes)[32], uint32_t at) {
    const ThreadWgmmas::Product& first = product(lanes[0], at);
    const bool chained = at > 0 && product(lanes[0], at - 1).d == first.d;
    for (void* lane : lanes) {
        bool same = at < static_cast<const Thread*>(lane)->wgmmas.pending.count;
        if (same) {
            const ThreadWgmmas::Product& own = product(lane, at);
            same = own.a == first.a && own.b == first.b && own.columns == first.columns && own.group == first.group;
            same = same && (at > 0 && product(lane, at - 1).d == own.d) == chained;
        }
        if (!same) fail(HUSH_EMULATE_MISUSE, "lanes of a warp issue different products of matrices");
    }
    Warp& warp = *static_cast<const Thread*>(lanes[0])->warp;
    for (uint64_t word : {first.a, first.b, uint64_t{first.columns}})
        warp.wgmma_trace = (warp.wgmma_trace ^ word) * 0x9e3779b97f4a7c15 + 1;
}

// Copies the results to the running thread's arrays whose last product is done.
HUSH_UNSANITIZED void finish_products(uint32_t done) {
    ThreadWgmmas& wgmmas = current->wgmmas;
    for (uint32_t at = 0; at < done; at++) {
        for (uint32_t i = 0; i < wgmmas.accumulators.count; i++) {
            auto& accumulator = wgmmas.accumulators.items[i];
            if (accumulator.d != wgmmas.pending.items[at].d || --accumulator.products > 0) continue;
            std::memcpy(accumulator.d, accumulator.values, accumulator.words * sizeof(int32_t));
            wgmmas.accumulators.take(i--);
            wgmmas.fenced = false;
        }
    }
    wgmmas.pending.drop_first(done);
}

struct WaitOperand {
    Thread* thread;
    /// The end of the groups that the thread waits for.
    uint32_t end;
    /// The number of products in these groups.
    uint32_t done;
};

HUSH_UNSANITIZED void run_products(void* const (&operands)[32], uint32_t) {
    void* lanes[32];
    const uint32_t end = static_cast<const WaitOperand*>(operands[0])->end;
    for (uint32_t i = 0; i < 32; i++) {
        lanes[i] = static_cast<const WaitOperand*>(operands[i])->thread;
        if (static_cast<const WaitOperand*>(operands[i])->end != end)
            fail(HUSH_EMULATE_MISUSE, "lanes of a warp wait for different products of matrices");
    }
    const auto& pending = static_cast<const Thread*>(lanes[0])->wgmmas.pending;
    uint32_t done = 0, chain = 0;
    for (; done < pending.count && pending.items[done].group < end; done++) {
        check_product(lanes, done);
        if (pending.items[done].d == pending.items[chain].d) continue;
        multiply_add(lanes, chain, done);
        chain = done;
    }
    if (done > chain) multiply_add(lanes, chain, done);
    order_before(&static_cast<const Thread*>(lanes[0])->warp->wgmma_trace);
    for (void* operand : operands) static_cast<WaitOperand*>(operand)->done = done;
}

}  // namespace

HUSH_UNSANITIZED void wgmma_fence() {
    require_capability(9, "wgmma.fence");
    current->wgmmas.fenced = true;
}

HUSH_UNSANITIZED void wgmma_m64k32(int32_t* d, uint32_t columns, uint64_t a, uint64_t b, Signs signs) {
    require_capability(9, "wgmma");
    ThreadWgmmas& wgmmas = current->wgmmas;
    if (!wgmmas.fenced) fail(HUSH_EMULATE_MISUSE, "wgmma without a wgmma.fence since the accumulators were touched");
    if (current->index.x / 128 * 128 + 128 > current->block->grid->threads)
        fail(HUSH_EMULATE_MISUSE, "wgmma in a warpgroup that lacks warps");
    wgmmas.pending.push({d, a, b, columns, signs, wgmmas.groups_committed});
    for (uint32_t i = 0; i < wgmmas.accumulators.count; i++) {
        auto& accumulator = wgmmas.accumulators.items[i];
        if (accumulator.d != d) continue;
        if (accumulator.words != columns / 2)
            fail(HUSH_EMULATE_MISUSE, "wgmma of another shape into accumulators that are in use");
        accumulator.products++;
        return;
    }
    ThreadWgmmas::Accumulator fresh{d, columns / 2, 1, {}};
    std::memcpy(fresh.values, d, fresh.words * sizeof(int32_t));
    wgmmas.accumulators.push(fresh);
    if (current->block->adversarial) std::memset(d, 0xCD, fresh.words * sizeof(int32_t));
}

HUSH_UNSANITIZED void wgmma_commit() {
    require_capability(9, "wgmma.commit_group");
    current->wgmmas.groups_committed++;
}

HUSH_UNSANITIZED void wgmma_wait(uint32_t pending) {
    require_capability(9, "wgmma.wait_group");
    const uint32_t committed = current->wgmmas.groups_committed;
    WaitOperand operand{current, committed > pending ? committed - pending : 0, 0};
    meet_warp(run_products, &operand, "wgmma.wait_group");
    order_after(&current->warp->wgmma_trace);
    finish_products(operand.done);
}

HUSH_UNSANITIZED void wgmma_finish(Thread& thread) {
    if (thread.wgmmas.pending.count > 0) fail(HUSH_EMULATE_MISUSE, "the thread ends before its products of matrices do");
}

HUSH_UNSANITIZED void wgmma_check_warpgroups(Block& block) {
    for (uint32_t i = 0; (i + 1) * 32 <= block.grid->threads; i++)
        if (block.warps[i].wgmma_trace != block.warps[i / 4 * 4].wgmma_trace)
            fail(HUSH_EMULATE_MISUSE, "warps %u and %u issued different products of matrices", i / 4 * 4, i);
}

}  // namespace hush_emulate
