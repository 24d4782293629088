#include "cluster.hpp"

#include "block.hpp"
#include "memory.hpp"
#include "registry.hpp"

namespace hush_emulate {
namespace {

constexpr uint32_t rank_shift = 24;

HUSH_UNSANITIZED void complete(Cluster& cluster) {
    Barrier& barrier = cluster.barrier;
    barrier.arrived = 0;
    barrier.phase++;
    cluster.make_ready(barrier.waiting);
}

}  // namespace

HUSH_UNSANITIZED uint32_t cluster_rank() {
    require_capability(9, "%cluster_ctarank");
    return current->block->rank;
}

HUSH_UNSANITIZED void cluster_arrive() {
    require_capability(9, "barrier.cluster.arrive");
    Cluster& cluster = *current->block->cluster;
    if (current->arrived) fail(HUSH_EMULATE_MISUSE, "two barrier.cluster.arrive without a wait between");
    current->arrived = true;
    current->arrived_phase = cluster.barrier.phase;
    // Two tags alternate, as for barriers of the block.
    order_before(&cluster.barrier.tags[cluster.barrier.phase % 2]);
    if (++cluster.barrier.arrived == cluster.live) complete(cluster);
    maybe_yield();
}

HUSH_UNSANITIZED void cluster_wait() {
    require_capability(9, "barrier.cluster.wait");
    Cluster& cluster = *current->block->cluster;
    if (!current->arrived) fail(HUSH_EMULATE_MISUSE, "barrier.cluster.wait before barrier.cluster.arrive");
    if (cluster.barrier.phase == current->arrived_phase) wait(cluster.barrier.waiting, "barrier.cluster.wait");
    order_after(&cluster.barrier.tags[current->arrived_phase % 2]);
    current->arrived = false;
}

HUSH_UNSANITIZED void leave_cluster(Thread& thread) {
    if (thread.arrived) fail(HUSH_EMULATE_MISUSE, "the thread ends between barrier.cluster.arrive and its wait");
    Cluster& cluster = *thread.block->cluster;
    if (cluster.barrier.arrived > 0 && cluster.barrier.arrived == cluster.live) complete(cluster);
}

HUSH_UNSANITIZED uint32_t cluster_address(uint32_t address, uint32_t rank) {
    return (address & ((1u << rank_shift) - 1)) | rank << rank_shift;
}

HUSH_UNSANITIZED uint32_t cluster_rank_of(uint32_t address) { return address >> rank_shift; }

HUSH_UNSANITIZED uint8_t* cluster_pointer(uint32_t address, uint32_t bytes) {
    const uint32_t rank = cluster_rank_of(address), place = cluster_address(address, 0);
    const Grid& grid = *current->block->grid;
    if (rank >= grid.kernel->cluster)
        fail(HUSH_EMULATE_MISUSE, "a cluster of %u blocks has no block %u", grid.kernel->cluster, rank);
    const Block& block = current->block->cluster->blocks[rank];
    if (!block.started) fail(HUSH_EMULATE_MISUSE, "shared memory of block %u, which has not begun", rank);
    if (block.live == 0) fail(HUSH_EMULATE_MISUSE, "shared memory of block %u, which has ended", rank);
    if (place < shared_base || place - shared_base + bytes > grid.shared_bytes)
        fail(HUSH_EMULATE_MISUSE, "%u bytes at address %x of the cluster lie outside of shared memory", bytes, address);
    return block.shared + (place - shared_base);
}

}  // namespace hush_emulate
