// Benchmarks of a Hopper GPU's peak rates: bulk copies, and the tensor cores' products of bytes from shared memory.
#include "prelude.cuh"

namespace {

// Computes `rounds` products of 64 x 32 by 32 x N bytes in a warpgroup, 4 in flight.
template <int N>
HUSH_DEVICE void multiply(uint32_t rounds, uint8_t* shared, uint32_t* out) {
    // Random-looking operands: zeros would draw less power, and run faster than data does.
    for (uint32_t at = threadIdx.x; at < (64 + N) * 128 / 4; at += blockDim.x)
        ((uint32_t*)shared)[at] = (at + 1) * 0x9e3779b9u;
    ptx::fence_proxy_async();
    __syncthreads();
    const uint64_t a = ptx::descriptor_128b(shared), b = ptx::descriptor_128b(shared + 64 * 128);
    int32_t sum[N / 2] = {};
    for (uint32_t round = 0; round < rounds; round += 4) {
        ptx::wgmma_fence();
#pragma unroll
        for (int k = 0; k < 4; k++) ptx::wgmma_m64k32_s8u8<N>(sum, a + 2 * k, b + 2 * k);
        ptx::wgmma_commit();
        ptx::wgmma_wait<0>();
    }
    ptx::wgmma_wait<0>(sum);
    int32_t all = 0;
#pragma unroll
    for (int i = 0; i < N / 2; i++) all ^= sum[i];
    if (all == 0x1e3779b9) *out = (uint32_t)all;
}

}  // namespace

// The kernel for N columns. A block is a warpgroup. Dynamic shared memory: (64 + N) x 128 bytes.
#define FLOOR_WGMMA(N)                                                                                            \
    extern "C" __global__ void __launch_bounds__(128) floor_wgmma_n##N##_hopper(uint32_t rounds, uint32_t* out) { \
        HUSH_DYNAMIC_SHARED(uint8_t, shared);                                                                     \
        multiply<N>(rounds, shared, out);                                                                         \
    }                                                                                                             \
    HUSH_KERNEL(floor_wgmma_n##N##_hopper)

FLOOR_WGMMA(8)
FLOOR_WGMMA(32)
FLOOR_WGMMA(128)
FLOOR_WGMMA(256)

// Reads `tiles` tiles of `tile_bytes` bytes once with bulk copies. A block takes every gridDim.x-th tile and has `stages` of them
// in flight. One thread issues the copies, and one warp reads a word in each lane of every tile. Dynamic shared memory: stages x
// tile_bytes, then 8 bytes for each stage.
extern "C" __global__ void __launch_bounds__(32)
    floor_bulk_hopper(const uint8_t* in, uint32_t tiles, uint32_t tile_bytes, uint32_t stages, uint32_t* out) {
    HUSH_DYNAMIC_SHARED(uint8_t, shared);
    uint64_t* full = (uint64_t*)(shared + (size_t)stages * tile_bytes);
    if (threadIdx.x == 0) {
        for (uint32_t stage = 0; stage < stages; stage++) ptx::mbarrier_init(&full[stage], 1);
        ptx::mbarrier_init_fence();
    }
    __syncwarp();
    const uint32_t mine = tiles > blockIdx.x ? (tiles - blockIdx.x - 1) / gridDim.x + 1 : 0;
    auto fetch = [&](uint32_t index, uint32_t stage) {
        ptx::mbarrier_expect(&full[stage], tile_bytes);
        const uint64_t tile = blockIdx.x + (uint64_t)index * gridDim.x;
        ptx::bulk_copy_evict_first(shared + (size_t)stage * tile_bytes, in + tile * tile_bytes, tile_bytes, &full[stage]);
    };
    if (threadIdx.x == 0)
        for (uint32_t index = 0; index < stages && index < mine; index++) fetch(index, index);
    uint32_t sum = 0, stage = 0, parity = 0;
    for (uint32_t index = 0; index < mine; index++) {
        ptx::mbarrier_wait(&full[stage], parity);
        sum ^= ((uint32_t*)(shared + (size_t)stage * tile_bytes))[threadIdx.x];
        __syncwarp();
        if (threadIdx.x == 0 && index + stages < mine) fetch(index + stages, stage);
        const bool wraps = ++stage == stages;
        stage = wraps ? 0 : stage;
        parity ^= wraps;
    }
    if (sum == 0x9e3779b9u) *out = sum;
}
HUSH_KERNEL(floor_bulk_hopper)
