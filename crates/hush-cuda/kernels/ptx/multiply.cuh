// Products of 64 bits.
#pragma once
#include <cstdint>

namespace ptx {

// Returns a b + c, wrapping, as one instruction. In the C++ expression, the compiler extends loop-invariant operands to 64 bits
// outside of the loop. It then no longer knows that their high halves are zeros, and adds these halves' products too.
HUSH_DEVICE uint64_t multiply_add_wide(uint32_t a, uint32_t b, uint64_t c) {
#ifdef __CUDACC__
    uint64_t d;
    asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(d) : "r"(a), "r"(b), "l"(c));
    return d;
#else
    return uint64_t(a) * b + c;
#endif
}

}  // namespace ptx
