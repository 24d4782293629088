// Accesses to global memory.
#pragma once
#include <cstdint>

namespace ptx {

// Adds: *global += value, atomic and relaxed, without a result.
HUSH_DEVICE void red_add(uint32_t* global, uint32_t value) {
#ifdef __CUDACC__
    asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(global), "r"(value) : "memory");
#else
    __atomic_fetch_add(global, value, __ATOMIC_RELAXED);
#endif
}

// Loads 16 bytes that are read once, without a line in L1. The address is a multiple of 16, and the kernel never writes there.
HUSH_DEVICE uint4 load_stream_16(const void* global) {
#ifdef __CUDACC__
    uint4 value;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(global));
    return value;
#else
    return *static_cast<const uint4*>(global);
#endif
}

}  // namespace ptx
