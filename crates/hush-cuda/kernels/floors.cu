// Benchmarks of a GPU's peak rates, the bounds that the steps are measured against. A result is written only under a condition that
// hardly ever holds, so that the compiler keeps the work.
#include "prelude.cuh"

namespace {

constexpr int CHAINS = 8;  // independent chains of operations a thread, enough to hide their latency

// Writes `value` to `out` if it is one value of 2^32. A benchmark that hits this value writes one extra word.
HUSH_DEVICE void keep(uint32_t value, uint32_t* out) {
    if (value == 0x9e3779b9u) *out = value;
}

// Returns an operand that looks random, for small `index`. Zeros would draw less power, and run faster than data.
HUSH_DEVICE uint32_t operand(uint32_t index) {
    return 0x9e3779b9u * (index + 1);
}

// Returns an odd factor that looks random.
HUSH_DEVICE uint32_t odd_factor() {
    return 0x85ebca6bu | threadIdx.x << 1;
}

// Returns the word, and hides its origin from the compiler. Otherwise the compiler treats half of a number as a number of 64 bits,
// and its product takes an extra addition of zero.
HUSH_DEVICE uint32_t opaque(uint32_t word) {
    asm("" : "+r"(word));
    return word;
}

}  // namespace

// Reads `count` x 16 bytes once; neighbouring threads read neighbouring bytes. The compiler keeps about four of the eight loads of
// a round in flight in each thread: 128 KiB on a multiprocessor of 2,048 threads.
extern "C" __global__ void __launch_bounds__(512) floor_read(const uint4* in, uint64_t count, uint32_t* out) {
    const uint64_t threads = (uint64_t)gridDim.x * blockDim.x;
    uint32_t sum = 0;
    uint64_t at = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; at + 7 * threads < count; at += 8 * threads) {
        uint4 part[8];
#pragma unroll
        for (int i = 0; i < 8; i++) part[i] = ptx::load_stream_16(in + at + i * threads);
#pragma unroll
        for (int i = 0; i < 8; i++) sum ^= part[i].x ^ part[i].y ^ part[i].z ^ part[i].w;
    }
    for (; at < count; at += threads) sum ^= ptx::load_stream_16(in + at).x;
    keep(sum, out);
}
HUSH_KERNEL(floor_read)

// Computes `rounds` x CHAINS multiply-adds of 32 x 32 -> 64 bits in each thread (IMAD.WIDE.U32). A round multiplies the lower half
// of a sum by the odd `factor + 1`. The lower half is odd at first, so it never becomes zero.
extern "C" __global__ void __launch_bounds__(512) floor_multiply_wide(uint32_t rounds, uint32_t* out) {
    uint64_t sum[CHAINS];
    uint32_t factor = odd_factor() - 1;
#pragma unroll
    for (int i = 0; i < CHAINS; i++) sum[i] = operand(threadIdx.x + i) | 1;
    for (uint32_t round = 0; round < rounds; round++) {
        factor = opaque(factor);
#pragma unroll
        for (int i = 0; i < CHAINS; i++) sum[i] += (uint64_t)opaque((uint32_t)sum[i]) * factor;
    }
    uint64_t all = 0;
#pragma unroll
    for (int i = 0; i < CHAINS; i++) all ^= sum[i];
    keep((uint32_t)(all ^ all >> 32), out);
}
HUSH_KERNEL(floor_multiply_wide)

// Computes `rounds` x CHAINS high halves of products of 32 x 32 bits in each thread (IMAD.HI.U32). A round subtracts at most a
// 2^-16th of a value. So the value still has all its bits after 2^15 rounds, and their lower half changes in every round.
extern "C" __global__ void __launch_bounds__(512) floor_multiply_high(uint32_t rounds, uint32_t* out) {
    uint32_t value[CHAINS];
    uint32_t factor = 0xffff0001u | threadIdx.x << 1;
#pragma unroll
    for (int i = 0; i < CHAINS; i++) value[i] = 0xfffffff0u - threadIdx.x - i;
    for (uint32_t round = 0; round < rounds; round++) {
#pragma unroll
        for (int i = 0; i < CHAINS; i++) value[i] = __umulhi(value[i], factor);
    }
    uint32_t all = 0;
#pragma unroll
    for (int i = 0; i < CHAINS; i++) all ^= value[i];
    keep(all, out);
}
HUSH_KERNEL(floor_multiply_high)

// Computes `rounds` x CHAINS low halves of products with an addition in each thread (IMAD).
extern "C" __global__ void __launch_bounds__(512) floor_multiply_low(uint32_t rounds, uint32_t* out) {
    uint32_t value[CHAINS];
    uint32_t factor = odd_factor();
#pragma unroll
    for (int i = 0; i < CHAINS; i++) value[i] = operand(threadIdx.x + i);
    for (uint32_t round = 0; round < rounds; round++) {
#pragma unroll
        for (int i = 0; i < CHAINS; i++) value[i] = value[i] * factor + (uint32_t)i;
    }
    uint32_t all = 0;
#pragma unroll
    for (int i = 0; i < CHAINS; i++) all ^= value[i];
    keep(all, out);
}
HUSH_KERNEL(floor_multiply_low)

// Computes `rounds` x CHAINS products of 16 x 32 by 32 x 8 bytes from registers in each warp.
extern "C" __global__ void __launch_bounds__(256) floor_mma(uint32_t rounds, uint32_t* out) {
    int32_t sum[CHAINS][4] = {};
    uint32_t a[4], b[2];
#pragma unroll
    for (int i = 0; i < 4; i++) a[i] = operand(threadIdx.x + i);
    b[0] = odd_factor(), b[1] = ~b[0];
    for (uint32_t round = 0; round < rounds; round++) {
#pragma unroll
        for (int i = 0; i < CHAINS; i++) ptx::mma_m16n8k32_s8u8(sum[i], a, b);
    }
    uint32_t all = 0;
#pragma unroll
    for (int i = 0; i < CHAINS; i++) all ^= (uint32_t)(sum[i][0] ^ sum[i][1] ^ sum[i][2] ^ sum[i][3]);
    keep(all, out);
}
HUSH_KERNEL(floor_mma)

// Fills `out` with `count` random words, for tables that are made on the device. Word i is a hash (splitmix64) of i + seed, below
// `below` unless that is 0.
extern "C" __global__ void __launch_bounds__(256) fill_random(uint32_t* out, uint64_t count, uint64_t seed, uint32_t below) {
    const uint64_t threads = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t at = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += threads) {
        // splitmix64
        uint64_t z = (at + seed) * 0x9e3779b97f4a7c15ull;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ z >> 27) * 0x94d049bb133111ebull;
        const uint32_t word = (uint32_t)(z ^ z >> 31);
        out[at] = below ? __umulhi(word, below) : word;
    }
}
HUSH_KERNEL(fill_random)
