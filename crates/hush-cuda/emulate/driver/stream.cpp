#include "stream.hpp"

#include <utility>

namespace hush_emulate {

std::atomic<int> Stream::failure_{0};

uint64_t Stream::push(Work work) {
    std::lock_guard<std::mutex> lock(queue_mutex_);
    queue_.push_back(std::move(work));
    return ++queued_;
}

void Stream::run(uint64_t place) {
    // Others may queue meanwhile, but not run.
    std::lock_guard<std::mutex> running(run_mutex_);
    while (done_ < place) {
        Work work;
        {
            std::lock_guard<std::mutex> lock(queue_mutex_);
            work = std::move(queue_.front());
            queue_.pop_front();
        }
        done_++;
        if (failure_ != 0) continue;
        if (const int error = work()) failure_ = error;
    }
}

void Stream::run() {
    uint64_t queued;
    {
        std::lock_guard<std::mutex> lock(queue_mutex_);
        queued = queued_;
    }
    run(queued);
}

}  // namespace hush_emulate
