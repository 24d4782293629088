// Helpers of the tests: inputs, launches, comparisons.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "../hush_emulate.h"

using Words = std::vector<uint32_t>;

#define CHECK(condition)                                                             \
    do {                                                                             \
        if (condition) break;                                                        \
        std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
        std::exit(1);                                                                \
    } while (false)

/// Returns random words. One in four is extreme in each byte.
inline Words random_words(size_t count, uint32_t seed) {
    std::mt19937 random(seed);
    Words words(count);
    constexpr uint32_t extremes[] = {0, 0xffffffff, 0x80808080, 0x7f7f7f7f, 0x80000000, 0x7fffffff};
    for (uint32_t& word : words) word = random() % 4 == 0 ? extremes[random() % 6] : static_cast<uint32_t>(random());
    return words;
}

struct Shape {
    uint32_t blocks, threads, shared_bytes;
};

inline HushEmulation device(uint64_t seed, uint32_t major = 9) { return {major, 0, seed, 2}; }

/// Launches a kernel with arguments of its exact types. Returns a HushEmulateOutcome.
template <class... Args>
int launch(const char* kernel, Shape shape, const HushEmulation& options, Args... args) {
    const uint32_t grid[3] = {shape.blocks, 1, 1};
    void* params[] = {static_cast<void*>(&args)..., nullptr};
    return hush_emulate_launch(kernel, grid, shape.threads, shape.shared_bytes, params, &options);
}
