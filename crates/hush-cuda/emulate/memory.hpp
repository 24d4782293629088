// Addresses in the window of shared memory.
#pragma once
#include <cstdint>

namespace hush_emulate {

/// Where dynamic shared memory starts in the window, as on Hopper: below it is what the system keeps.
constexpr uint32_t shared_base = 1024;

/// The 32-bit address of a place in the block's dynamic shared memory.
uint32_t shared_address(const void* pointer);

/// Where that address is; `bytes` from it must be in the block's dynamic shared memory.
const uint8_t* shared_pointer(uint32_t address, uint32_t bytes);

}  // namespace hush_emulate
