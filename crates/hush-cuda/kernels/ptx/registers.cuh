// Register reallocation between warpgroups (Hopper).
#pragma once
#include <cstdint>

namespace ptx {

// Raises the registers of each thread of this warpgroup to `registers`, and waits until as many are free. The kernel needs a
// register cap at entry: __launch_bounds__(threads, 1).
template <int registers>
HUSH_DEVICE void set_max_registers_inc() {
    static_assert(registers >= 24 && registers <= 256 && registers % 8 == 0);
#ifdef __CUDACC__
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
#else
    hush_emulate::require_capability(9, "setmaxnreg");
#endif
}

// Lowers the registers of each thread of this warpgroup to `registers`.
template <int registers>
HUSH_DEVICE void set_max_registers_dec() {
    static_assert(registers >= 24 && registers <= 256 && registers % 8 == 0);
#ifdef __CUDACC__
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
#else
    hush_emulate::require_capability(9, "setmaxnreg");
#endif
}

}  // namespace ptx

// Returns x, but hides from the compiler that it is the same at every call. The compiler then recomputes values derived from x
// where they are used, and keeps no registers for them in between.
HUSH_DEVICE uint32_t made_anew(uint32_t x) {
#ifdef __CUDACC__
    asm volatile("" : "+r"(x));
#endif
    return x;
}
