// Warpgroup matrix products (Hopper): m64nNk32 of bytes, both operands in shared memory.
//
// A product runs when its threads wait for it, a warp's part at a time: 16 rows of a, all columns of b. From issue to the wait, the
// accumulators hold old values, or poison in adversarial launches.
#pragma once
#include <cstdint>

#include "matrix.hpp"
#include "queue.hpp"

namespace hush_emulate {

struct Thread;
struct Block;

/// The products of one thread, in the order of issue.
struct ThreadWgmmas {
    struct Product {
        int32_t* d;
        uint64_t a, b;
        uint32_t columns;
        Signs signs;
        /// The number of groups committed before this product was issued.
        uint32_t group;
    };
    /// The values that the thread's array `d` holds after its last product.
    struct Accumulator {
        int32_t* d;
        uint32_t words, products;
        int32_t values[128];
    };
    Queue<Product> pending;
    Queue<Accumulator> accumulators;
    uint32_t groups_committed = 0;
    bool fenced = false;
};

void wgmma_fence();
void wgmma_m64k32(int32_t* d, uint32_t columns, uint64_t a, uint64_t b, Signs signs);
void wgmma_commit();
/// Waits until at most the last `pending` groups are in flight.
void wgmma_wait(uint32_t pending);

/// Fails the launch if a thread that ends has not waited for its products.
void wgmma_finish(Thread& thread);
/// Fails the launch if the warps of a warpgroup of a block that ends have issued different products.
void wgmma_check_warpgroups(Block& block);

}  // namespace hush_emulate
