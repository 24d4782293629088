// Work of the emulated GPU, which is done as late as the driver may do it.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

namespace hush_emulate {

/// Work in order. None of it is done before somebody waits for it.
class Stream {
public:
    /// A piece of work; returns 0, or the driver's number of an error.
    using Work = std::function<int()>;

    /// Queues work; returns its place in the order.
    uint64_t push(Work work);
    /// Does all work up to `place`. After an error that is all that is done, here and in all other streams: it stays.
    void run(uint64_t place);
    /// Does all that is queued.
    void run();

    /// The error of work that failed, or 0.
    static int failure() { return failure_; }

private:
    static std::atomic<int> failure_;

    std::mutex queue_mutex_, run_mutex_;
    std::deque<Work> queue_;
    uint64_t queued_ = 0, done_ = 0;
};

}  // namespace hush_emulate
