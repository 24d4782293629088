// Dot products of four bytes.
#pragma once
#include <cstdint>

namespace ptx {

// c + sum of a_i b_i over the four bytes, a signed and b unsigned, wrapping.
HUSH_DEVICE int32_t dp4a_s8u8(uint32_t a, uint32_t b, int32_t c) {
#ifdef __CUDACC__
    int32_t d;
    asm("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
#else
    int32_t sum = 0;
    for (int i = 0; i < 32; i += 8) sum += static_cast<int8_t>(a >> i) * static_cast<uint8_t>(b >> i);
    return static_cast<int32_t>(static_cast<uint32_t>(c) + static_cast<uint32_t>(sum));
#endif
}

}  // namespace ptx
