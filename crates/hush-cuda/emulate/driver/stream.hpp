// Streams of an emulated GPU, which run work as late as a driver may.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

#include "context.hpp"

namespace hush_emulate {

/// A queue of work, which runs in order. No work runs before a thread waits for it. In a hasty stream, work runs when it is queued.
class Stream {
public:
    /// A piece of work; returns 0, or the driver's number of an error.
    using Work = std::function<int()>;

    Stream(Context* context, bool is_hasty) : context_(context), is_hasty_(is_hasty) {}

    /// Queues work, and returns its place in the order.
    uint64_t push(Work work);
    /// Runs all work up to `place`. After an error, all further work of all streams of the context is skipped: the error stays.
    /// Work may wait for work of another stream, which must not wait for it in turn.
    void run(uint64_t place);
    /// Runs all queued work.
    void run();

    Context* context() const { return context_; }

private:
    Context* context_;
    bool is_hasty_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Work> queue_;
    uint64_t queued_ = 0, done_ = 0;
    /// Whether a thread runs a piece of work.
    bool running_ = false;
};

}  // namespace hush_emulate
