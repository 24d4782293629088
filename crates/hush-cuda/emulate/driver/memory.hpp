// The memory of the emulated GPU, and pinned memory of the host.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace hush_emulate {

/// Allocated blocks of memory. A block ends at the end of its pages, an inaccessible page follows, and the pages are unmapped when
/// the block is freed. So an access beyond the end of a block, or after its release, ends the program.
class Blocks {
public:
    explicit Blocks(size_t capacity) : capacity_(capacity) {}

    /// Allocates a block filled with 0xCD, aligned to 256 bytes. Returns null if `bytes` is 0 or there is no room.
    void* allocate(size_t bytes);
    /// Frees the block at `address`. Returns whether there was one.
    bool free(const void* address);
    /// Returns whether all these bytes are in one block.
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
