// The tests of the emulator. `tests clean` runs all checks, which must pass. `tests planted NAME` runs a kernel with its bug; the
// emulator or a sanitizer must find it, so that the program fails.
#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

#include "arithmetic.hpp"
#include "check.hpp"
#include "conformance.hpp"

namespace {

struct Planted {
    const char* kernel;
    uint32_t blocks, shared_bytes;
};
constexpr Planted all_planted[] = {
    {"missing_barrier", 1, 512},        {"missing_second_barrier", 1, 0}, {"missing_warp_barrier", 1, 512},
    {"race_between_blocks", 4, 0},      {"global_overflow", 1, 0},        {"shared_overflow", 1, 512},
    {"shared_underflow", 1, 512},       {"misaligned_vector", 1, 0},      {"missing_copy_wait", 1, 512},
    {"hang", 2, 0},                     {"mixed_collectives", 1, 0},      {"missing_bulk_wait", 1, 528},
    {"early_refill", 1, 528},           {"uninitialized_mbarrier", 1, 16}, {"missing_proxy_fence", 1, 9216},
    {"missing_product_barrier", 1, 9216}, {"missing_product_fence", 1, 9216}, {"missing_product_wait", 1, 9216},
    {"unbegun_block", 2, 2064},         {"missing_store_wait", 2, 2064},  {"ended_block", 2, 2064},
    {"early_multicast", 2, 528},
};

// Memory with a copy of some words, aligned to 16 bytes. AddressSanitizer knows its bounds.
struct Memory {
    explicit Memory(const Words& words) : data(static_cast<uint32_t*>(std::malloc(words.size() * 4))) {
        std::memcpy(data, words.data(), words.size() * 4);
    }
    ~Memory() { std::free(data); }
    Memory(const Memory&) = delete;
    uint32_t* data;
};

// Runs a planted kernel, with its bug if `planted` is 1. Returns the outcome, or -1 if the results are wrong.
int run(const Planted& what, uint32_t planted, uint64_t seed) {
    const Words words = random_words(128, 12);
    const Memory in(words), out(Words(128));
    const Shape shape{what.blocks, 128, what.shared_bytes};
    const uint32_t* const_in = in.data;
    const int outcome = launch(what.kernel, shape, device(seed), out.data, const_in, planted);
    if (outcome != HUSH_EMULATE_OK) return outcome;
    for (uint32_t i = 0; i < 128; i++)
        if (out.data[i] != words[(i + 1) % 128]) return -1;
    return HUSH_EMULATE_OK;
}

const Planted& find(const std::string& kernel) {
    for (const Planted& planted : all_planted)
        if (kernel == planted.kernel) return planted;
    std::fprintf(stderr, "no kernel %s\n", kernel.c_str());
    std::exit(2);
}

void check_outcomes() {
    uint32_t* none = nullptr;
    CHECK(launch("no_such_kernel", {1, 32, 0}, device(0), none, none) == HUSH_EMULATE_UNKNOWN_KERNEL);
    CHECK(launch("conform_bulk_copy_hopper", {1, 160, 4096}, device(0, 8), none, none, 1u) == HUSH_EMULATE_UNSUPPORTED);
    CHECK(launch("conform_mma_s8u8", {0, 32, 0}, device(0), none, none) == HUSH_EMULATE_MISUSE);
    CHECK(launch("conform_mma_s8u8", {1, 2048, 0}, device(0), none, none) == HUSH_EMULATE_MISUSE);
    CHECK(launch("conform_mma_s8u8", {1, 32, 1 << 20}, device(0), none, none) == HUSH_EMULATE_MISUSE);
    CHECK(launch("conform_cluster_hopper", {3, 128, 3096}, device(0), none, none) == HUSH_EMULATE_MISUSE);
    for (uint64_t seed : {0, 1}) {
        CHECK(run(find("hang"), 1, seed) == HUSH_EMULATE_HANG);
        CHECK(run(find("mixed_collectives"), 1, seed) == HUSH_EMULATE_MISUSE);
        CHECK(run(find("uninitialized_mbarrier"), 1, seed) == HUSH_EMULATE_MISUSE);
        CHECK(run(find("missing_product_fence"), 1, seed) == HUSH_EMULATE_MISUSE);
        CHECK(run(find("unbegun_block"), 1, seed) == HUSH_EMULATE_MISUSE);
        CHECK(run(find("ended_block"), 1, seed) == HUSH_EMULATE_MISUSE);
    }
}

void check_names() {
    const size_t count = hush_emulate_kernel_count();
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        CHECK(i == 0 || std::strcmp(hush_emulate_kernel_name(i - 1), hush_emulate_kernel_name(i)) < 0);
        found |= std::strcmp(hush_emulate_kernel_name(i), "conform_red_add") == 0;
    }
    CHECK(found && hush_emulate_kernel_name(count) == nullptr);
}

void check_concurrent_launches() {
    std::vector<std::thread> threads;
    for (uint64_t seed = 0; seed < 3; seed++) {
        threads.emplace_back([seed] {
            for (const Planted& planted : all_planted) CHECK(run(planted, 0, seed) == HUSH_EMULATE_OK);
        });
    }
    for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int count, char** arguments) {
    if (count == 3 && std::strcmp(arguments[1], "planted") == 0) {
        int outcome = HUSH_EMULATE_OK;
        for (uint64_t seed = 1; seed < 4 && outcome == HUSH_EMULATE_OK; seed++) outcome = run(find(arguments[2]), 1, seed);
        return outcome == HUSH_EMULATE_OK ? 0 : 1;
    }
    check_arithmetic();
    for (uint64_t seed = 0; seed < 4; seed++) check_conformance(device(seed));
    check_conformance(device(5, 8));
    check_outcomes();
    check_names();
    check_concurrent_launches();
    std::puts("clean");
    return 0;
}
