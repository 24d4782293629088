// Addresses in the window of shared memory.
#pragma once
#include <cstdint>

namespace hush_emulate {

/// The start of dynamic shared memory in the window, as on Hopper. The system reserves the addresses below.
constexpr uint32_t shared_base = 1024;

/// Returns the 32-bit address of a place in the block's dynamic shared memory. Another place fails the launch.
uint32_t shared_address(const void* pointer);

/// Returns the place of an address. `bytes` bytes from it must be in the block's dynamic shared memory, or the launch fails.
const uint8_t* shared_pointer(uint32_t address, uint32_t bytes);

}  // namespace hush_emulate
