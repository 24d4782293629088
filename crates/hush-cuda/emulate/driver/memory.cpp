#include "memory.hpp"

#include <sys/mman.h>

#include <cstring>

namespace hush_emulate {
namespace {

constexpr size_t page = 4096, alignment = 256;

size_t rounded_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

void* Blocks::allocate(size_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    bytes = rounded_up(bytes, alignment);
    if (bytes == 0 || bytes > capacity_ - taken_) return nullptr;
    const size_t mapped = rounded_up(bytes, page) + page;
    void* pages = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return nullptr;
    uint8_t* const end = static_cast<uint8_t*>(pages) + mapped - page;
    mprotect(end, page, PROT_NONE);
    std::memset(end - bytes, 0xCD, bytes);
    blocks_[reinterpret_cast<uintptr_t>(end - bytes)] = {bytes, pages, mapped};
    taken_ += bytes;
    return end - bytes;
}

bool Blocks::free(const void* address) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto block = blocks_.find(reinterpret_cast<uintptr_t>(address));
    if (block == blocks_.end()) return false;
    munmap(block->second.pages, block->second.mapped);
    taken_ -= block->second.bytes;
    blocks_.erase(block);
    return true;
}

bool Blocks::hold(const void* address, size_t bytes) const {
    std::lock_guard<std::mutex> lock(mutex_);
    const uintptr_t at = reinterpret_cast<uintptr_t>(address);
    auto block = blocks_.upper_bound(at);
    if (block == blocks_.begin()) return false;
    --block;
    const size_t before = at - block->first;
    return before <= block->second.bytes && bytes <= block->second.bytes - before;
}

size_t Blocks::free_bytes() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return capacity_ - taken_;
}

}  // namespace hush_emulate
