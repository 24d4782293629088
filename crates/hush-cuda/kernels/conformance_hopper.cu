// Conformance kernels: every primitive of Hopper once, bytes in and bytes out. The emulator and a GPU must give equal results.
//
// Shapes are [..] of words (uint32_t) unless stated otherwise. A launch is (blocks, threads, bytes of dynamic shared memory).
// Pointers are multiples of 16.
#include "prelude.cuh"

namespace {

constexpr uint32_t ROW_BYTES = 128, A_ROWS = 64;

// Copies `rows` rows of 128 bytes to shared memory with the 128-byte swizzle.
HUSH_DEVICE void fill_tile(uint8_t* tile, const uint8_t* from, uint32_t rows) {
    for (uint32_t chunk = threadIdx.x; chunk < rows * 8; chunk += blockDim.x) {
        const uint32_t row = chunk / 8, column = chunk % 8;
        *reinterpret_cast<uint4*>(tile + row * ROW_BYTES + (column ^ (row & 7)) * 16) =
            *reinterpret_cast<const uint4*>(from + chunk * 16);
    }
}

// Adds the product of 64 x 128 by 128 x N bytes to d, in two groups of two slices of 32.
template <int N, class Product>
HUSH_DEVICE void multiply(uint32_t* out, const uint8_t* a, const uint8_t* b, const uint32_t* d_in, Product product) {
    HUSH_DYNAMIC_SHARED(uint8_t, shared);
    uint8_t* a_tile = shared;
    uint8_t* b_tile = shared + A_ROWS * ROW_BYTES;
    fill_tile(a_tile, a, A_ROWS);
    fill_tile(b_tile, b, N);
    ptx::fence_proxy_async();
    __syncthreads();
    int32_t d[N / 2];
#pragma unroll
    for (int i = 0; i < N / 2; i++) d[i] = (int32_t)d_in[threadIdx.x * (N / 2) + i];
    const uint64_t a_desc = ptx::descriptor_128b(a_tile), b_desc = ptx::descriptor_128b(b_tile);
    ptx::wgmma_fence();
#pragma unroll
    for (int slice = 0; slice < 4; slice++) {
        product(d, a_desc + 2 * slice, b_desc + 2 * slice);
        if (slice % 2 == 1) ptx::wgmma_commit();
    }
    ptx::wgmma_wait<0>(d);
#pragma unroll
    for (int i = 0; i < N / 2; i++) out[threadIdx.x * (N / 2) + i] = (uint32_t)d[i];
}

}  // namespace

// wgmma: (1, 128, (64 + N) * 128) with (out, a, b, d). a [64][128] bytes, b [N][128] bytes (columns), both without swizzle;
// d and out [128 threads][N / 2]: the accumulators before and after.
#define CONFORM_WGMMA(types, n)                                                                                     \
    extern "C" __global__ void __launch_bounds__(128, 1) conform_wgmma_##types##_n##n##_hopper(                     \
        uint32_t* out, const uint8_t* a, const uint8_t* b, const uint32_t* d) {                                     \
        multiply<n>(out, a, b, d, [](auto& sum, uint64_t a_desc, uint64_t b_desc) {                                 \
            ptx::wgmma_m64k32_##types<n>(sum, a_desc, b_desc);                                                      \
        });                                                                                                         \
    }                                                                                                               \
    HUSH_KERNEL(conform_wgmma_##types##_n##n##_hopper)

CONFORM_WGMMA(s8u8, 8)
CONFORM_WGMMA(s8u8, 16)
CONFORM_WGMMA(s8u8, 32)
CONFORM_WGMMA(s8u8, 64)
CONFORM_WGMMA(s8u8, 128)
CONFORM_WGMMA(s8u8, 256)
CONFORM_WGMMA(u8u8, 8)
CONFORM_WGMMA(u8u8, 16)
CONFORM_WGMMA(u8u8, 32)
CONFORM_WGMMA(u8u8, 64)
CONFORM_WGMMA(u8u8, 128)
CONFORM_WGMMA(u8u8, 256)
#undef CONFORM_WGMMA

// wgmma groups: (1, 128, (64 + 16) * 128) with (out, a, b, d) like conform_wgmma_s8u8_n16, but with two sets of accumulators in
// turns: d and out [128 threads][2 sets][8]. Set 0 takes slices 0 and 2 of 32 bytes, set 1 slices 1 and 3. Two groups are in
// flight.
extern "C" __global__ void __launch_bounds__(128, 1)
    conform_wgmma_groups_hopper(uint32_t* out, const uint8_t* a, const uint8_t* b, const uint32_t* d) {
    HUSH_DYNAMIC_SHARED(uint8_t, shared);
    fill_tile(shared, a, A_ROWS);
    fill_tile(shared + A_ROWS * ROW_BYTES, b, 16);
    ptx::fence_proxy_async();
    __syncthreads();
    int32_t sums[2][8];
#pragma unroll
    for (int i = 0; i < 16; i++) sums[i / 8][i % 8] = (int32_t)d[threadIdx.x * 16 + i];
    const uint64_t a_desc = ptx::descriptor_128b(shared);
    const uint64_t b_desc = ptx::descriptor_128b(shared + A_ROWS * ROW_BYTES);
#pragma unroll
    for (int slice = 0; slice < 4; slice++) {
        ptx::wgmma_fence();
        ptx::wgmma_m64k32_s8u8<16>(sums[slice % 2], a_desc + 2 * slice, b_desc + 2 * slice);
        ptx::wgmma_commit();
        ptx::wgmma_wait<1>();
    }
    ptx::wgmma_wait<0>(sums[0]);
    ptx::wgmma_wait<0>(sums[1]);
#pragma unroll
    for (int i = 0; i < 16; i++) out[threadIdx.x * 16 + i] = (uint32_t)sums[i / 8][i % 8];
}
HUSH_KERNEL(conform_wgmma_groups_hopper)

// Bulk copies: (1, 160, 3 * 1024 + 48) with (out, in, pieces). in [pieces][256], out [pieces][128]: sums of two words of each
// piece. The last warp fetches pieces to three stages by bulk copies, and four warps read them and free the stages.
extern "C" __global__ void __launch_bounds__(160, 1)
    conform_bulk_copy_hopper(uint32_t* out, const uint32_t* in, uint32_t pieces) {
    constexpr uint32_t stages = 3, words = 256, consumers = 128;
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    uint64_t* full = reinterpret_cast<uint64_t*>(shared + stages * words);
    uint64_t* empty = full + stages;
    if (threadIdx.x == 0) {
        for (uint32_t stage = 0; stage < stages; stage++) {
            ptx::mbarrier_init(&full[stage], 1);
            ptx::mbarrier_init(&empty[stage], consumers);
        }
        ptx::mbarrier_init_fence();
    }
    __syncthreads();
    if (threadIdx.x >= consumers) {
        if (threadIdx.x > consumers) return;
        for (uint32_t piece = 0; piece < pieces; piece++) {
            const uint32_t stage = piece % stages, turn = piece / stages;
            ptx::mbarrier_wait(&empty[stage], (turn & 1) ^ 1);
            ptx::mbarrier_expect(&full[stage], words * 4);
            const uint32_t* from = in + piece * words;
            ptx::bulk_copy(shared + stage * words, from, words * 2, &full[stage]);
            ptx::bulk_copy_evict_first(shared + stage * words + words / 2, from + words / 2, words * 2, &full[stage]);
        }
        return;
    }
    for (uint32_t piece = 0; piece < pieces; piece++) {
        const uint32_t stage = piece % stages, turn = piece / stages;
        ptx::mbarrier_wait(&full[stage], turn & 1);
        const uint32_t* at = shared + stage * words;
        out[piece * consumers + threadIdx.x] = at[threadIdx.x] + at[255 - threadIdx.x];
        ptx::mbarrier_arrive(&empty[stage]);
    }
}
HUSH_KERNEL(conform_bulk_copy_hopper)

// setmaxnreg: (1, 512, 0) with (out, in). in [512], out [512]: one warpgroup gives registers to the three others, which wait for
// them. A thread has 128 registers at entry.
extern "C" __global__ void __launch_bounds__(512, 1)
    conform_set_max_registers_hopper(uint32_t* out, const uint32_t* in) {
    const uint32_t word = in[threadIdx.x];
    if (threadIdx.x < 128) {
        ptx::set_max_registers_dec<32>();
        out[threadIdx.x] = word * 3;
    } else {
        ptx::set_max_registers_inc<160>();
        out[threadIdx.x] = word * 5;
    }
}
HUSH_KERNEL(conform_set_max_registers_hopper)

// Clusters: (4, 128, 128 * 16 + 1024 + 24) with (out, in), two clusters of two blocks. in [4 blocks][128], out [4 blocks][128].
// Each thread sends its word to the same thread of the other block, and each block fetches its words for both.
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128, 1)
    conform_cluster_hopper(uint32_t* out, const uint32_t* in) {
    constexpr uint32_t words = 128;
    HUSH_DYNAMIC_SHARED(uint4, shared);
    uint32_t* const fetched = reinterpret_cast<uint32_t*>(shared + words);
    uint64_t* const full = reinterpret_cast<uint64_t*>(fetched + 2 * words);
    uint64_t* const given = full + 1;
    uint64_t* const both = given + 1;
    const uint32_t rank = ptx::cluster_rank(), other = rank ^ 1;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(full, 1);
        ptx::mbarrier_init(given, 1);
        ptx::mbarrier_init(both, 2 * words);
        ptx::mbarrier_init_fence();
    }
    ptx::cluster_sync();
    const uint32_t* const own = in + blockIdx.x * words;
    if (threadIdx.x == 0) {
        ptx::mbarrier_expect(given, words * sizeof(uint4));
        ptx::mbarrier_expect(full, 2 * words * sizeof(uint32_t));
        ptx::bulk_copy_multicast(fetched + rank * words, own, words * sizeof(uint32_t), full, 3);
    }
    const uint32_t word = own[threadIdx.x];
    ptx::store_async_16(ptx::cluster_address(&shared[threadIdx.x], other), make_uint4(word, word * 3, word * 5, rank),
                        ptx::cluster_address(given, other));
    ptx::mbarrier_arrive_cluster(ptx::cluster_address(both, 0));
    ptx::mbarrier_arrive_cluster(ptx::cluster_address(both, 1));
    ptx::mbarrier_wait(both, 0);
    ptx::mbarrier_wait(given, 0);
    ptx::mbarrier_wait(full, 0);
    const uint4 taken = shared[words - 1 - threadIdx.x];
    const uint32_t sum = taken.x + taken.y + taken.z + taken.w;
    out[blockIdx.x * words + threadIdx.x] = sum ^ fetched[threadIdx.x] ^ fetched[2 * words - 1 - threadIdx.x] * 7;
    ptx::cluster_sync();
}
HUSH_CLUSTER_KERNEL(conform_cluster_hopper, 2)
