// Memory of the emulated GPU, and pinned memory of the host.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace hush_emulate {

/// Blocks of memory. Each ends where its pages end, with a page behind it that nobody may touch, and its pages go when it
/// is freed: what reads or writes beyond a block, or too late, ends the program.
class Blocks {
public:
    explicit Blocks(size_t capacity) : capacity_(capacity) {}

    /// A block full of 0xCD, aligned to 256 bytes; null if there is no room.
    void* allocate(size_t bytes);
    /// Whether there was a block at `address`.
    bool free(const void* address);
    /// Whether all these bytes are in one block.
    bool hold(const void* address, size_t bytes) const;
    size_t capacity() const { return capacity_; }
    size_t free_bytes() const;

private:
    struct Block {
        size_t bytes;
        void* pages;
        size_t mapped;
    };

    size_t capacity_;
    mutable std::mutex mutex_;
    std::map<uintptr_t, Block> blocks_;
    size_t taken_ = 0;
};

}  // namespace hush_emulate
