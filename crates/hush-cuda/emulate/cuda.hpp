// The part of CUDA C++ that the kernels use, for g++.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "block.hpp"
#include "collective.hpp"
#include "registry.hpp"
#include "memory.hpp"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __cluster_dims__(...)
// Static shared memory is thread-local: all threads of a block run on one OS thread. So do all blocks of a cluster, whose kernels
// must use dynamic shared memory alone.
#define __shared__ static thread_local

// The prefix of device functions, members too. They are always inlined, so that functions of one name in two kernel files stay
// distinct.
#define HUSH_DEVICE __forceinline__
#define HUSH_DYNAMIC_SHARED(type, name) type* name = reinterpret_cast<type*>(::hush_emulate::current->block->shared)

#define threadIdx (::hush_emulate::current->index)
#define blockIdx (::hush_emulate::current->block->index)
#define blockDim (::hush_emulate::current->block->threads_dim)
#define gridDim (::hush_emulate::current->block->grid->blocks)
#define warpSize 32

#define __syncthreads() ::hush_emulate::sync_block()

struct alignas(8) uint2 {
    uint32_t x, y;
};
struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};

static inline uint2 make_uint2(uint32_t x, uint32_t y) { return {x, y}; }
static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return {x, y, z, w}; }

template <class T>
static inline T min(T a, T b) {
    return b < a ? b : a;
}
template <class T>
static inline T max(T a, T b) {
    return a < b ? b : a;
}

static inline uint32_t __umulhi(uint32_t a, uint32_t b) { return static_cast<uint32_t>(uint64_t{a} * b >> 32); }
static inline int32_t __mulhi(int32_t a, int32_t b) { return static_cast<int32_t>(int64_t{a} * b >> 32); }
static inline uint64_t __umul64hi(uint64_t a, uint64_t b) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b >> 64);
}
static inline int __popc(uint32_t x) { return __builtin_popcount(x); }
static inline int __popcll(uint64_t x) { return __builtin_popcountll(x); }
static inline int __clz(uint32_t x) { return x == 0 ? 32 : __builtin_clz(x); }
static inline int __clzll(uint64_t x) { return x == 0 ? 64 : __builtin_clzll(x); }
static inline int __ffs(uint32_t x) { return __builtin_ffs(static_cast<int>(x)); }
static inline uint32_t __brev(uint32_t x) {
    x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
    x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
    x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(x);
}
/// Selects four of the eight bytes of a, then b: byte i of the result is byte (selector >> 4 i & 7). Bit 3 of each number, which
/// spreads a sign in PTX's `prmt`, is ignored: CUDA masks the selector with 0x7777.
static inline uint32_t __byte_perm(uint32_t a, uint32_t b, uint32_t selector) {
    const uint64_t bytes = uint64_t{b} << 32 | a;
    uint32_t result = 0;
    for (int i = 0; i < 4; i++)
        result |= (static_cast<uint32_t>(bytes >> 8 * (selector >> 4 * i & 7)) & 255) << 8 * i;
    return result;
}
static inline uint32_t __funnelshift_l(uint32_t low, uint32_t high, uint32_t shift) {
    return static_cast<uint32_t>((uint64_t{high} << 32 | low) << (shift & 31) >> 32);
}
static inline uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t shift) {
    return static_cast<uint32_t>((uint64_t{high} << 32 | low) >> (shift & 31));
}
static inline uint32_t __funnelshift_lc(uint32_t low, uint32_t high, uint32_t shift) {
    return static_cast<uint32_t>((uint64_t{high} << 32 | low) << std::min(shift, 32u) >> 32);
}
static inline uint32_t __funnelshift_rc(uint32_t low, uint32_t high, uint32_t shift) {
    return static_cast<uint32_t>((uint64_t{high} << 32 | low) >> std::min(shift, 32u));
}

template <class T>
static inline T __ldg(const T* address) {
    return *address;
}

static inline void __syncwarp(uint32_t mask = ~0u) { ::hush_emulate::sync_warp(mask); }

namespace hush_emulate {

template <class T>
T shuffle_value(uint32_t mask, T value, uint32_t source) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
    uint64_t word = 0;
    std::memcpy(&word, &value, sizeof(T));
    word = shuffle(mask, word, source);
    std::memcpy(&value, &word, sizeof(T));
    return value;
}

/// Returns `source` if it is in the lane's segment of `width` lanes, else the lane itself.
inline uint32_t within_segment(uint32_t source, uint32_t width) {
    return source / width == lane() / width ? source : lane();
}

}  // namespace hush_emulate

template <class T>
static inline T __shfl_sync(uint32_t mask, T value, uint32_t source, uint32_t width = 32) {
    const uint32_t first = ::hush_emulate::lane() / width * width;
    return ::hush_emulate::shuffle_value(mask, value, first + source % width);
}
template <class T>
static inline T __shfl_xor_sync(uint32_t mask, T value, uint32_t lanes, uint32_t width = 32) {
    // A source in a lower segment is allowed, one in a higher segment is not.
    const uint32_t lane = ::hush_emulate::lane(), source = lane ^ lanes;
    return ::hush_emulate::shuffle_value(mask, value, source / width > lane / width ? lane : source);
}
template <class T>
static inline T __shfl_down_sync(uint32_t mask, T value, uint32_t delta, uint32_t width = 32) {
    return ::hush_emulate::shuffle_value(mask, value,
                                         ::hush_emulate::within_segment(::hush_emulate::lane() + delta, width));
}
template <class T>
static inline T __shfl_up_sync(uint32_t mask, T value, uint32_t delta, uint32_t width = 32) {
    return ::hush_emulate::shuffle_value(mask, value,
                                         ::hush_emulate::within_segment(::hush_emulate::lane() - delta, width));
}
static inline uint32_t __ballot_sync(uint32_t mask, int value) { return ::hush_emulate::ballot(mask, value != 0); }
static inline int __any_sync(uint32_t mask, int value) { return ::hush_emulate::ballot(mask, value != 0) != 0; }
static inline int __all_sync(uint32_t mask, int value) { return ::hush_emulate::ballot(mask, value == 0) == 0; }

template <class T>
static inline T atomicAdd(T* address, T value) {
    static_assert(std::is_unsigned_v<T> && sizeof(T) >= 4);
    return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}

