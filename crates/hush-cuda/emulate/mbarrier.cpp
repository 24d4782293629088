#include "mbarrier.hpp"

#include <cstring>

#include "block.hpp"
#include "cluster.hpp"

namespace hush_emulate {
namespace {

// The content of an mbarrier's 8 bytes.
struct State {
    int32_t missing_bytes;
    uint16_t phase : 1, pending : 15;
    uint16_t count;
};
static_assert(sizeof(State) == sizeof(uint64_t));
constexpr uint32_t max_count = 1024;

HUSH_UNSANITIZED State load(const uint64_t* barrier) {
    if (reinterpret_cast<uintptr_t>(barrier) % 8 != 0)
        fail(HUSH_EMULATE_MISUSE, "an mbarrier must be aligned to 8 bytes");
    const uint64_t word = *barrier;
    State state;
    std::memcpy(&state, &word, sizeof state);
    if (state.count == 0 || state.count > max_count || state.pending > state.count)
        fail(HUSH_EMULATE_MISUSE, "an mbarrier is used that was not initialized or was overwritten");
    return state;
}

// Returns the happens-before tag of a phase of a barrier.
HUSH_UNSANITIZED char* tag(uint64_t* barrier, uint32_t phase) { return reinterpret_cast<char*>(barrier) + (phase & 1); }

HUSH_UNSANITIZED void store(uint64_t* barrier, State state) {
    if (state.pending == 0 && state.missing_bytes == 0) {
        state.phase ^= 1;
        state.pending = state.count;
        Cluster& cluster = *current->block->cluster;
        cluster.make_ready(cluster.mbarrier_waiters);
    }
    uint64_t word;
    std::memcpy(&word, &state, sizeof word);
    *barrier = word;
}

HUSH_UNSANITIZED void arrive(uint64_t* barrier, uint32_t bytes) {
    require_capability(9, "mbarrier");
    State state = load(barrier);
    order_before(tag(barrier, state.phase));
    if (state.pending == 0) fail(HUSH_EMULATE_MISUSE, "more arrivals at an mbarrier than its count");
    state.missing_bytes += static_cast<int32_t>(bytes);
    state.pending--;
    store(barrier, state);
    maybe_yield();
}

}  // namespace

void mbarrier_init(uint64_t* barrier, uint32_t count) {
    require_capability(9, "mbarrier.init");
    if (count == 0 || count > max_count) fail(HUSH_EMULATE_MISUSE, "mbarrier.init with a count of %u", count);
    const State state{0, 0, static_cast<uint16_t>(count & 0x7fff), static_cast<uint16_t>(count)};
    uint64_t word;
    std::memcpy(&word, &state, sizeof word);
    *barrier = word;  // an ordinary store, so that ThreadSanitizer sees initializations that race
}

HUSH_UNSANITIZED void mbarrier_expect(uint64_t* barrier, uint32_t bytes) { arrive(barrier, bytes); }

HUSH_UNSANITIZED void mbarrier_arrive(uint64_t* barrier) { arrive(barrier, 0); }

HUSH_UNSANITIZED void mbarrier_arrive_cluster(uint32_t barrier) {
    arrive(reinterpret_cast<uint64_t*>(cluster_pointer(barrier, sizeof(uint64_t))), 0);
}

HUSH_UNSANITIZED void mbarrier_wait(uint64_t* barrier, uint32_t parity) {
    require_capability(9, "mbarrier.try_wait");
    Cluster& cluster = *current->block->cluster;
    while (load(barrier).phase == (parity & 1)) {
        if (cluster.adversarial && cluster.random.below(3) == 0 && land_bulk_copy(cluster)) continue;
        wait(cluster.mbarrier_waiters, "mbarrier.try_wait");
    }
    order_after(tag(barrier, parity));
}

HUSH_UNSANITIZED void mbarrier_complete(uint64_t* barrier, uint32_t bytes) {
    State state = load(barrier);
    order_before(tag(barrier, state.phase));
    state.missing_bytes -= static_cast<int32_t>(bytes);
    store(barrier, state);
}

}  // namespace hush_emulate
