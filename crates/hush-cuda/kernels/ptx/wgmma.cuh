// Matrix products of a warpgroup on bytes (Hopper): d += a b with a of 64 x 32, b of 32 x N, d of 64 x N, wrapping.
//
// Thread t of the warpgroup (lane l of warp w) holds in d[i]: row 16 w + l / 4 + 8 (i / 2 % 2), column
// 8 (i / 4) + 2 (l % 4) + i % 2. Both operands lie in shared memory, K-major: a row of `a` or a column of `b` is 128
// bytes of k, swizzled: its 16 bytes number c are at c ^ (row % 8). Tiles start at multiples of 1024 bytes. 32 bytes of
// k further is a descriptor + 2.
//
// Order of calls: wgmma_fence, any number of products, wgmma_commit, wgmma_wait. Between the first product and the wait, no thread
// may access d or write the operands.
#pragma once
#include <cstdint>

#include "address.cuh"
#ifndef __CUDACC__
#include "../../emulate/wgmma.hpp"
#endif

namespace ptx {

// Returns the descriptor of an operand that starts at `shared`: groups of 8 rows are 1024 bytes apart, with the 128-byte swizzle.
HUSH_DEVICE uint64_t descriptor_128b(const void* shared) {
    constexpr uint64_t leading = 1, stride = 1024 >> 4, swizzle_128b = 1;  // the leading offset has no meaning here
    return uint64_t{(shared_address(shared) & 0x3ffff) >> 4} | leading << 16 | stride << 32 | swizzle_128b << 62;
}

// Orders this thread's accesses to its accumulators before the products that follow.
HUSH_DEVICE void wgmma_fence() {
#ifdef __CUDACC__
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#else
    hush_emulate::wgmma_fence();
#endif
}

// Closes the group of the products since the last commit.
HUSH_DEVICE void wgmma_commit() {
#ifdef __CUDACC__
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#else
    hush_emulate::wgmma_commit();
#endif
}

// Waits until at most the last `pending` groups are in flight.
template <int pending>
HUSH_DEVICE void wgmma_wait() {
    static_assert(pending >= 0 && pending < 8);
#ifdef __CUDACC__
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
#else
    hush_emulate::wgmma_wait(pending);
#endif
}

// Waits like wgmma_wait<pending>(), and keeps the compiler from moving uses of d before the wait.
template <int pending, int words>
HUSH_DEVICE void wgmma_wait([[maybe_unused]] int32_t (&d)[words]) {
    wgmma_wait<pending>();
#ifdef __CUDACC__
#pragma unroll
    for (int i = 0; i < words; i++) asm volatile("" : "+r"(d[i])::"memory");
#endif
}

#ifdef __CUDACC__
// Lists of operands 0 to n - 1 of an instruction, in its text and in C++.
#define HUSH_WORDS_4 "%0, %1, %2, %3"
#define HUSH_WORDS_8 HUSH_WORDS_4 ", %4, %5, %6, %7"
#define HUSH_WORDS_16 HUSH_WORDS_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define HUSH_WORDS_32 HUSH_WORDS_16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define HUSH_WORDS_64                                                                  \
    HUSH_WORDS_32                                                                      \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
    ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define HUSH_WORDS_128                                                                             \
    HUSH_WORDS_64                                                                                  \
    ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"             \
    ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"             \
    ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
    ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define HUSH_OUT_4(d, i) "+r"(d[i]), "+r"(d[i + 1]), "+r"(d[i + 2]), "+r"(d[i + 3])
#define HUSH_OUT_8(d, i) HUSH_OUT_4(d, i), HUSH_OUT_4(d, i + 4)
#define HUSH_OUT_16(d, i) HUSH_OUT_8(d, i), HUSH_OUT_8(d, i + 8)
#define HUSH_OUT_32(d, i) HUSH_OUT_16(d, i), HUSH_OUT_16(d, i + 16)
#define HUSH_OUT_64(d, i) HUSH_OUT_32(d, i), HUSH_OUT_32(d, i + 32)
#define HUSH_OUT_128(d, i) HUSH_OUT_64(d, i), HUSH_OUT_64(d, i + 64)

// Issues the product if N == n. The descriptors are the operands after the `words` accumulators. The operand 1 means: add to d.
#define HUSH_WGMMA(types, n, words, a_operand, b_operand)                                         \
    if constexpr (N == n)                                                                         \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" #n "k32.s32." types " {" HUSH_WORDS_##words  \
                 "}, %" #a_operand ", %" #b_operand ", 1;"                                        \
                 : HUSH_OUT_##words(d, 0)                                                         \
                 : "l"(a_desc), "l"(b_desc))

#define HUSH_WGMMA_SHAPES(types)          \
    HUSH_WGMMA(types, 8, 4, 4, 5);        \
    HUSH_WGMMA(types, 16, 8, 8, 9);       \
    HUSH_WGMMA(types, 32, 16, 16, 17);    \
    HUSH_WGMMA(types, 64, 32, 32, 33);    \
    HUSH_WGMMA(types, 128, 64, 64, 65);   \
    HUSH_WGMMA(types, 256, 128, 128, 129)
#endif

// Adds a product to d: d += a b, with signed bytes in a and unsigned bytes in b.
template <int N>
HUSH_DEVICE void wgmma_m64k32_s8u8(int32_t (&d)[N / 2], uint64_t a_desc, uint64_t b_desc) {
    static_assert(N == 8 || N == 16 || N == 32 || N == 64 || N == 128 || N == 256);
#ifdef __CUDACC__
    HUSH_WGMMA_SHAPES("s8.u8");
#else
    hush_emulate::wgmma_m64k32(d, N, a_desc, b_desc, {true, false});
#endif
}

// Adds a product to d: d += a b, with unsigned bytes in both operands.
template <int N>
HUSH_DEVICE void wgmma_m64k32_u8u8(int32_t (&d)[N / 2], uint64_t a_desc, uint64_t b_desc) {
    static_assert(N == 8 || N == 16 || N == 32 || N == 64 || N == 128 || N == 256);
#ifdef __CUDACC__
    HUSH_WGMMA_SHAPES("u8.u8");
#else
    hush_emulate::wgmma_m64k32(d, N, a_desc, b_desc, {false, false});
#endif
}

}  // namespace ptx
