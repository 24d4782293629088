// One block of CUDA threads, run as fibers by one OS thread: its threads, warps, barriers, and who runs next.
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
    /// What it waits for, null if nothing; for reports of hangs.
    const char* waits_for;
    bool finished;
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

/// What the lanes of a warp do together: called once, by the last lane to arrive, with each lane's operand.
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

/// A barrier of the block: number 0 is __syncthreads.
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

/// What all blocks of a launch share.
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
    Index3 index, threads_dim;
    Fiber main;
    uint32_t live;
    int outcome;
    bool adversarial;
    Random random;
    /// Dynamic shared memory: exactly as long as asked for.
    uint8_t* shared;
    Barrier barriers[max_barriers];
    WaitList mbarrier_waiters;
    BlockCopies copies;
    /// Tags of happens-before: the start and the end of the block, and what the asynchronous proxy was shown.
    char start_tag, end_tag, proxy_tag;
    /// Who reads for wgmma, as ThreadSanitizer sees it: writes that no fence.proxy.async follows race with it.
    void* tsan_proxy;

    /// Threads that can run: a ring.
    Thread* ready[max_threads];
    uint32_t ready_first, ready_count;

    Thread* threads;
    Warp warps[max_threads / 32];

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

/// Room to run blocks of up to `capacity` threads, one after another: stacks and threads. Kept for later launches.
class Arena {
public:
    explicit Arena(uint32_t capacity);
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    uint32_t capacity() const { return capacity_; }

    /// Runs block number `index` of `grid` in this OS thread. After an outcome other than HUSH_EMULATE_OK the arena
    /// can only be destroyed.
    int run(const Grid& grid, Index3 index, uint64_t seed, uint8_t* shared);

private:
    void reset(const Grid& grid, Index3 index, uint64_t seed, uint8_t* shared);
    void give_up();

    uint32_t capacity_;
    Stacks stacks_;
    std::unique_ptr<Thread[]> threads_;
    std::unique_ptr<Block> block_;
};

}  // namespace hush_emulate
