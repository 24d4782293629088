// Launches: the distribution of clusters, or of single blocks, to OS threads.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "block.hpp"
#include "registry.hpp"

namespace hush_emulate {
namespace {

/// A pool of arenas that no launch uses now.
class ArenaPool {
public:
    std::unique_ptr<Arena> take(uint32_t threads) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            for (auto& arena : free_) {
                if (arena->capacity() < threads) continue;
                std::swap(arena, free_.back());
                std::unique_ptr<Arena> taken = std::move(free_.back());
                free_.pop_back();
                return taken;
            }
        }
        uint32_t capacity = 128;
        while (capacity < threads) capacity *= 2;
        return std::make_unique<Arena>(capacity);
    }

    void give(std::unique_ptr<Arena> arena) {
        std::lock_guard<std::mutex> lock(mutex_);
        free_.push_back(std::move(arena));
    }

private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<Arena>> free_;
};

ArenaPool& arena_pool() {
    static ArenaPool* pool = new ArenaPool();  // never destroyed: launches may outlive main's statics
    return *pool;
}

/// The dynamic shared memory of a block, aligned to 1024 bytes and exactly as long as requested.
class SharedMemory {
public:
    explicit SharedMemory(uint32_t bytes) : bytes_(bytes) {
        void* memory = nullptr;
        if (posix_memalign(&memory, alignment, bytes) != 0) throw std::bad_alloc();
        memory_ = static_cast<uint8_t*>(memory);
    }
    ~SharedMemory() { std::free(memory_); }
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;

    uint8_t* poisoned() {
        std::memset(memory_, 0xCD, bytes_);
        return memory_;
    }

private:
    static constexpr size_t alignment = 1024;
    uint32_t bytes_;
    uint8_t* memory_;
};

/// Returns the number of blocks of a cluster.
uint32_t cluster_of(const Grid& grid) { return grid.kernel->cluster; }
/// Returns the number of threads of a cluster.
uint32_t threads_of(const Grid& grid) { return cluster_of(grid) * grid.threads; }

uint64_t clusters_of(const Grid& grid) {
    return uint64_t{grid.blocks.x} * grid.blocks.y * grid.blocks.z / cluster_of(grid);
}

uint64_t mix(uint64_t seed, uint64_t value) {
    uint64_t z = seed + 0x9e3779b97f4a7c15 * (value + 1);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (z ^ (z >> 31)) | 1;
}

class Launch {
public:
    Launch(const Grid& grid, uint32_t workers) : grid_(grid), clusters_(clusters_of(grid)), workers_(workers) {}

    int run() {
        // Arenas are taken before any worker runs: an arena that passes from one worker to another would order their clusters.
        std::vector<std::unique_ptr<Arena>> arenas;
        for (uint32_t i = 0; i < workers_; i++) arenas.push_back(arena_pool().take(threads_of(grid_)));
        std::vector<std::thread> others;
        for (uint32_t i = 1; i < workers_; i++) others.emplace_back([this, i, &arenas] { work(i, arenas[i]); });
        work(0, arenas[0]);
        for (std::thread& other : others) other.join();
        for (auto& arena : arenas)
            if (arena != nullptr) arena_pool().give(std::move(arena));
        return outcome_;
    }

private:
    // Runs clusters until none is left. If a cluster fails, its arena is destroyed: it has threads that stopped half-way.
    void work(uint32_t worker, std::unique_ptr<Arena>& arena) {
        std::vector<std::unique_ptr<SharedMemory>> memory;
        for (uint32_t i = 0; i < cluster_of(grid_); i++)
            memory.push_back(std::make_unique<SharedMemory>(grid_.shared_bytes));
        uint8_t* shared[Cluster::max_blocks];
        for (uint64_t at = first(worker); at < clusters_ && outcome_ == HUSH_EMULATE_OK; at = following(at)) {
            const uint64_t seed = grid_.options->seed;
            for (uint32_t i = 0; i < cluster_of(grid_); i++) shared[i] = memory[i]->poisoned();
            const int outcome = arena->run(grid_, first_block(at), seed == 0 ? 0 : mix(seed, at), shared);
            if (outcome == HUSH_EMULATE_OK) continue;
            outcome_ = outcome;
            arena.reset();
            return;
        }
    }

#ifdef HUSH_TSAN
    // ThreadSanitizer sees the blocks of one worker as ordered, so neighbours always go to different workers.
    uint64_t first(uint32_t worker) { return worker; }
    uint64_t following(uint64_t at) { return at + workers_; }
#else
    uint64_t first(uint32_t) { return next_.fetch_add(1, std::memory_order_relaxed); }
    uint64_t following(uint64_t) { return next_.fetch_add(1, std::memory_order_relaxed); }
#endif

    Index3 first_block(uint64_t cluster) const {
        const uint64_t at = cluster * cluster_of(grid_), row = at / grid_.blocks.x;
        return {static_cast<unsigned>(at % grid_.blocks.x), static_cast<unsigned>(row % grid_.blocks.y),
                static_cast<unsigned>(row / grid_.blocks.y)};
    }

    const Grid& grid_;
    uint64_t clusters_;
    uint32_t workers_;
    [[maybe_unused]] std::atomic<uint64_t> next_{0};
    std::atomic<int> outcome_{HUSH_EMULATE_OK};
};

uint32_t worker_count(const Grid& grid, uint32_t wanted) {
#ifdef HUSH_TSAN
    // Races between blocks show only between OS threads. There are as many as ThreadSanitizer has room for, up to eight.
    wanted = std::max(wanted, std::min(8u, 4096 / threads_of(grid)));
#endif
    return static_cast<uint32_t>(std::min<uint64_t>(std::max(wanted, 1u), clusters_of(grid)));
}

/// Returns the most bytes of shared memory of a block: 163 KiB for capability 8.0, 99 KiB for other 8.x and 12.x, else 227 KiB.
uint32_t most_shared(const HushEmulation& options) {
    const uint32_t major = options.capability_major, minor = options.capability_minor;
    if (major == 8) return minor == 0 ? 163 << 10 : 99 << 10;
    return major == 12 ? 99 << 10 : 227 << 10;
}

bool launchable(const Grid& grid) {
    const char* reason = nullptr;
    if (grid.blocks.x == 0 || grid.blocks.y == 0 || grid.blocks.z == 0 || grid.blocks.x >= 1u << 31 ||
        grid.blocks.y >= 1 << 16 || grid.blocks.z >= 1 << 16)
        reason = "the grid has no block or too many";
    if (grid.threads == 0 || grid.threads > Block::max_threads) reason = "a block has 1 to 1024 threads";
    if (grid.blocks.x % cluster_of(grid) != 0) reason = "the grid has no whole number of clusters";
    if (grid.shared_bytes > most_shared(*grid.options)) reason = "too much dynamic shared memory";
    if (reason == nullptr) return true;
    std::fprintf(stderr, "hush_emulate: kernel %s, grid (%u, %u, %u), %u threads, %u bytes of shared memory: %s\n",
                 grid.kernel->name, grid.blocks.x, grid.blocks.y, grid.blocks.z, grid.threads, grid.shared_bytes,
                 reason);
    return false;
}

}  // namespace
}  // namespace hush_emulate

extern "C" const char* hush_emulate_sanitizer() { return HUSH_SANITIZER; }

extern "C" int hush_emulate_launch(const char* kernel, const uint32_t grid[3], uint32_t block, uint32_t shared_bytes,
                                   void** params, const HushEmulation* options) {
    using namespace hush_emulate;
    const Kernel* found = find_kernel(kernel);
    if (found == nullptr) {
        std::fprintf(stderr, "hush_emulate: no kernel is named %s\n", kernel);
        return HUSH_EMULATE_UNKNOWN_KERNEL;
    }
    const Grid launched{found, params, {grid[0], grid[1], grid[2]}, block, shared_bytes, options};
    if (!launchable(launched)) return HUSH_EMULATE_MISUSE;
    return Launch(launched, worker_count(launched, options->threads)).run();
}
