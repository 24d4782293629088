#include "memory.hpp"

#include "block.hpp"
#include "cluster.hpp"

namespace hush_emulate {

HUSH_UNSANITIZED uint32_t shared_address(const void* pointer) {
    const Block& block = *current->block;
    const uintptr_t offset = reinterpret_cast<uintptr_t>(pointer) - reinterpret_cast<uintptr_t>(block.shared);
    if (offset > block.grid->shared_bytes)
        fail(HUSH_EMULATE_MISUSE, "the address of what is not in dynamic shared memory");
    return cluster_address(shared_base + static_cast<uint32_t>(offset), block.rank);
}

HUSH_UNSANITIZED const uint8_t* shared_pointer(uint32_t address, uint32_t bytes) {
    const Block& block = *current->block;
    if (address < shared_base || address - shared_base + bytes > block.grid->shared_bytes)
        fail(HUSH_EMULATE_MISUSE, "%u bytes at shared address %u lie outside of dynamic shared memory", bytes, address);
    return block.shared + (address - shared_base);
}

}  // namespace hush_emulate
