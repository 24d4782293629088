#include "stream.hpp"

#include <utility>

namespace hush_emulate {

uint64_t Stream::push(Work work) {
    uint64_t place;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        queue_.push_back(std::move(work));
        place = ++queued_;
    }
    if (is_hasty_) run(place);
    return place;
}

void Stream::run(uint64_t place) {
    std::unique_lock<std::mutex> lock(mutex_);
    // A thread that waits for one piece does not wait for the next, which may wait for that thread.
    while (done_ < place) {
        if (running_) {
            changed_.wait(lock);
            continue;
        }
        Work work = std::move(queue_.front());
        queue_.pop_front();
        running_ = true;
        lock.unlock();
        if (context_->failure == 0) {
            if (const int error = work()) context_->failure = error;
        }
        // The resources that a piece of work holds are freed before it counts as done.
        work = nullptr;
        lock.lock();
        running_ = false;
        done_++;
        changed_.notify_all();
    }
}

void Stream::run() {
    uint64_t queued;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        queued = queued_;
    }
    run(queued);
}

}  // namespace hush_emulate
