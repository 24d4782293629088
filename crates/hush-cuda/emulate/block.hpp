// Blocks of CUDA threads, run as fibers by one OS thread: their threads, warps and barriers, and the scheduler. The blocks of a
// cluster take turns on one OS thread, like the threads of a block. A single block is a cluster of one.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "copies.hpp"
#include "fiber.hpp"
#include "hush_emulate.h"
#include "queue.hpp"
#include "wgmma.hpp"

namespace hush_emulate {

struct Block;
struct Cluster;
struct Warp;
struct Kernel;

struct Index3 {
    unsigned x, y, z;
};

/// A CUDA thread.
struct Thread {
    Fiber fiber;
    Index3 index;
    Block* block;
    Warp* warp;
    uint32_t lane;
    Thread* next_waiting;
    /// The name of the event that the thread waits for, null if none. Reports of hangs print it.
    const char* waits_for;
    bool finished;
    /// Whether the thread has arrived at the barrier of its cluster and not waited yet.
    bool arrived;
    /// The phase of that arrival.
    uint32_t arrived_phase;
    ThreadCopies copies;
    ThreadWgmmas wgmmas;
};

/// A list of threads that wait for one event, in the order of their arrival.
struct WaitList {
    Thread* first = nullptr;
    Thread* last = nullptr;

    HUSH_UNSANITIZED void add(Thread& thread) {
        thread.next_waiting = nullptr;
        if (last != nullptr) last->next_waiting = &thread;
        else first = &thread;
        last = &thread;
    }
};

/// The joint operation of a warp's lanes: called once, by the last lane to arrive, with each lane's operand.
using Collective = void (*)(void* const (&operands)[32], uint32_t lanes);

/// A collective of some lanes of one warp for which not all lanes have arrived.
struct Meeting {
    uint32_t mask, arrived;
    Collective collective;
    WaitList waiting;
    char* tag;
};

/// A warp of a block.
struct Warp {
    /// The lanes that exist and have not finished.
    uint32_t present;
    uint32_t meeting_count;
    Meeting meetings[32];
    void* operands[32];
    uint32_t tags_used;
    char tags[64];
    /// A hash of all matrix products that the warp ran. Its address is also the happens-before tag of their reads.
    uint64_t wgmma_trace;
};

/// A barrier of a cluster, or of a block, whose barrier 0 is __syncthreads.
struct Barrier {
    uint32_t arrived, threads, phase;
    WaitList waiting;
    char tags[2];
};

/// A small and fast random generator (xorshift). Its quality suffices to pick an order.
struct Random {
    uint64_t state;

    HUSH_UNSANITIZED uint32_t below(uint32_t bound) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return static_cast<uint32_t>((state >> 32) * bound >> 32);
    }
};

/// The state that all blocks of a launch share.
struct Grid {
    const Kernel* kernel;
    void** params;
    Index3 blocks;
    uint32_t threads, shared_bytes;
    const HushEmulation* options;
};

/// A block of threads.
struct Block {
    static constexpr uint32_t max_threads = 1024, max_barriers = 16;

    const Grid* grid;
    Cluster* cluster;
    /// The index of the block in the cluster.
    uint32_t rank;
    Index3 index, threads_dim;
    /// Whether one of the block's threads has run.
    bool started;
    /// The number of threads that have not finished.
    uint32_t live;
    bool adversarial;
    /// The dynamic shared memory, exactly as long as requested.
    uint8_t* shared;
    Barrier barriers[max_barriers];
    /// The happens-before tag of the accesses that the asynchronous proxy sees.
    char proxy_tag;
    /// The fiber that reads for wgmma under ThreadSanitizer. Writes without a later fence.proxy.async race with it.
    void* tsan_proxy;
    Thread* threads;
    Warp warps[max_threads / 32];
};

/// A cluster: blocks that run at the same time and access each other's shared memory.
struct Cluster {
    static constexpr uint32_t max_blocks = 2, max_threads = max_blocks * Block::max_threads;

    const Grid* grid;
    Fiber main;
    /// The number of threads that have not finished.
    uint32_t live;
    int outcome;
    bool adversarial;
    Random random;
    /// The block that adversarial launches currently favour.
    uint32_t favoured;
    Barrier barrier;
    WaitList mbarrier_waiters;
    BulkCopies copies;
    /// Happens-before tags of the start and the end of all threads.
    char start_tag, end_tag;

    /// The ring of threads that can run.
    Thread* ready[max_threads];
    uint32_t ready_first, ready_count;

    Block blocks[max_blocks];

    HUSH_UNSANITIZED void make_ready(Thread& thread) {
        thread.waits_for = nullptr;
        ready[(ready_first + ready_count++) % max_threads] = &thread;
    }
    void make_ready(WaitList& list);
};

/// The CUDA thread that runs on this OS thread.
inline thread_local Thread* current __attribute__((tls_model("initial-exec"))) = nullptr;

/// Adds the running thread to `list`, and runs other threads until it is made ready. `what` names the event that it waits for.
void wait(WaitList& list, const char* what);

/// Runs other threads. The running thread stays ready.
void yield();

/// Yields in adversarial launches.
void maybe_yield();

/// Ends the launch from inside a kernel with `outcome`, and prints the reason to stderr.
[[noreturn]] void fail(int outcome, const char* format, ...) __attribute__((format(printf, 2, 3)));

/// Ends the launch unless the device has this compute capability.
void require_capability(uint32_t major, const char* primitive);

/// The stacks and threads to run clusters of up to `capacity` threads, one after another. Later launches reuse an arena.
class Arena {
public:
    explicit Arena(uint32_t capacity);
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    uint32_t capacity() const { return capacity_; }

    /// Runs the cluster of `grid` that begins at block `first`, in this OS thread. `shared` has the dynamic shared memory of each
    /// block. After an outcome other than HUSH_EMULATE_OK, the arena can only be destroyed.
    int run(const Grid& grid, Index3 first, uint64_t seed, uint8_t* const* shared);

private:
    void reset(const Grid& grid, Index3 first, uint64_t seed, uint8_t* const* shared);
    void reset(Block& block, const Grid& grid, Thread* threads, uint8_t* shared);
    void give_up();

    uint32_t capacity_;
    Stacks stacks_;
    std::unique_ptr<Thread[]> threads_;
    std::unique_ptr<Cluster> cluster_;
};

}  // namespace hush_emulate
