// Addresses in the window of shared memory.
#pragma once
#include <cstdint>

#ifndef __CUDACC__
#include "../../emulate/memory.hpp"
#endif

namespace ptx {

// Returns the 32-bit address of `pointer`, which points to shared memory.
HUSH_DEVICE uint32_t shared_address(const void* pointer) {
#ifdef __CUDACC__
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
#else
    return hush_emulate::shared_address(pointer);
#endif
}

}  // namespace ptx
