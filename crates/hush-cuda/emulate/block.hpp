// Blocks of CUDA threads, run as fibers by one OS thread: their threads, warps and barriers, and who runs next. The blocks of a
// cluster take turns on one OS thread, like the threads of a block; a block by itself is a cluster of one.
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
    /// The thing that the thread waits for, null if none; for reports of hangs.
    const char* waits_for;
    bool finished;
    /// Whether it has arrived at the barrier of its cluster and not waited yet, and in which phase.
    bool arrived;
    uint32_t arrived_phase;
    ThreadCopies copies;
    ThreadWgmmas wgmmas;
};

/// Threads that wait for one event, in the order of their arrival.
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

/// Lanes of one warp that meet for one collective.
struct Meeting {
    uint32_t mask, arrived;
    Collective collective;
    WaitList waiting;
    char* tag;
};

struct Warp {
    /// Lanes that exist and have not finished.
    uint32_t present;
    uint32_t meeting_count;
    Meeting meetings[32];
    void* operands[32];
    uint32_t tags_used;
    char tags[64];
    /// A hash of all products of matrices that the warp ran; its address is also a tag for their reads.
    uint64_t wgmma_trace;
};

/// A barrier of the block, of which number 0 is __syncthreads, or of the cluster.
struct Barrier {
    uint32_t arrived, threads, phase;
    WaitList waiting;
    char tags[2];
};

/// Small and fast; good enough to pick an order.
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

struct Block {
    static constexpr uint32_t max_threads = 1024, max_barriers = 16;

    const Grid* grid;
    Cluster* cluster;
    /// The number of the block in the cluster.
    uint32_t rank;
    Index3 index, threads_dim;
    /// Whether one of its threads has run, and how many have not finished.
    bool started;
    uint32_t live;
    bool adversarial;
    /// Dynamic shared memory: exactly as long as asked for.
    uint8_t* shared;
    Barrier barriers[max_barriers];
    /// A tag of happens-before: what the asynchronous proxy was shown.
    char proxy_tag;
    /// The threads that read for wgmma, as ThreadSanitizer sees it: writes that no fence.proxy.async follows race
    /// with it.
    void* tsan_proxy;
    Thread* threads;
    Warp warps[max_threads / 32];
};

/// Blocks that run at the same time and reach each other's shared memory.
struct Cluster {
    static constexpr uint32_t max_blocks = 2, max_threads = max_blocks * Block::max_threads;

    const Grid* grid;
    Fiber main;
    /// Threads that have not finished.
    uint32_t live;
    int outcome;
    bool adversarial;
    Random random;
    /// The block whose threads go first, for now, if adversarial.
    uint32_t favoured;
    Barrier barrier;
    WaitList mbarrier_waiters;
    BulkCopies copies;
    /// Tags of happens-before: the start and the end of all threads.
    char start_tag, end_tag;

    /// Threads that can run: a ring.
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

/// Stops the running thread until it is made ready; `what` it waits for. Meanwhile others run.
void wait(WaitList& list, const char* what);

/// Lets others run; the running thread stays ready.
void yield();

/// In adversarial launches: lets others run first.
void maybe_yield();

/// Ends the launch from inside a kernel with `outcome` and says why on stderr.
[[noreturn]] void fail(int outcome, const char* format, ...) __attribute__((format(printf, 2, 3)));

/// Ends the launch unless the device has this compute capability.
void require_capability(uint32_t major, const char* primitive);

/// Room to run clusters of up to `capacity` threads, one after another: stacks and threads. Kept for later launches.
class Arena {
public:
    explicit Arena(uint32_t capacity);
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    uint32_t capacity() const { return capacity_; }

    /// Runs the blocks of `grid` from number `first` on that make up a cluster, in this OS thread. `shared` is the dynamic shared
    /// memory of each. After an outcome other than HUSH_EMULATE_OK the arena can only be destroyed.
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
