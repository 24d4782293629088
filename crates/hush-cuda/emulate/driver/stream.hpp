// Work of an emulated GPU, which is done as late as the driver may do it.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

#include "context.hpp"

namespace hush_emulate {

/// Work in order. None of it is done before somebody waits for it; or all of it as soon as it is queued, in a hasty one.
class Stream {
public:
    /// A piece of work; returns 0, or the driver's number of an error.
    using Work = std::function<int()>;

    Stream(Context* context, bool is_hasty) : context_(context), is_hasty_(is_hasty) {}

    /// Queues work; returns its place in the order.
    uint64_t push(Work work);
    /// Does all work up to `place`. After an error that is all that is done, here and in all other streams of the context: it
    /// stays. Work may wait for that of another stream, which must not wait for it.
    void run(uint64_t place);
    /// Does all that is queued.
    void run();

    Context* context() const { return context_; }

private:
    Context* context_;
    bool is_hasty_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Work> queue_;
    uint64_t queued_ = 0, done_ = 0;
    /// Whether a thread does a piece of it.
    bool running_ = false;
};

}  // namespace hush_emulate
