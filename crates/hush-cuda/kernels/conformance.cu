// Conformance kernels: every primitive of the prelude once, bytes in and bytes out. The emulator and a GPU must give equal results.
//
// All kernels take (uint32_t* out, const uint32_t* in), pointers to any words. Shapes are [..] of words. A launch is
// (blocks, threads, bytes of dynamic shared memory). Pointers are multiples of 16.
#include "prelude.cuh"

// mma: (1, 32, 0). in [32 lanes][a 4, b 2, d 4], out [32 lanes][d 4] after two products, so that large d wrap.
#define CONFORM_MMA(types)                                                                                     \
    extern "C" __global__ void __launch_bounds__(32) conform_mma_##types(uint32_t* out, const uint32_t* in) {  \
        const uint32_t* lane = in + threadIdx.x * 10;                                                          \
        const uint32_t a[4] = {lane[0], lane[1], lane[2], lane[3]}, b[2] = {lane[4], lane[5]};                 \
        int32_t d[4] = {(int32_t)lane[6], (int32_t)lane[7], (int32_t)lane[8], (int32_t)lane[9]};               \
        for (int i = 0; i < 2; i++) ptx::mma_m16n8k32_##types(d, a, b);                                        \
        for (int i = 0; i < 4; i++) out[threadIdx.x * 4 + i] = (uint32_t)d[i];                                 \
    }                                                                                                          \
    HUSH_KERNEL(conform_mma_##types)

CONFORM_MMA(s8u8)
CONFORM_MMA(u8u8)
CONFORM_MMA(u8s8)
CONFORM_MMA(s8s8)
#undef CONFORM_MMA

// ldmatrix: (1, 32, 512). in [32 rows][4], out [32 lanes][4]; the lanes give the rows in a scrambled order.
extern "C" __global__ void __launch_bounds__(32) conform_ldmatrix_x4(uint32_t* out, const uint32_t* in) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    for (uint32_t i = threadIdx.x; i < 128; i += 32) shared[i] = in[i];
    __syncwarp();
    uint32_t words[4];
    ptx::ldmatrix_x4(words, shared + (threadIdx.x * 5 + 3) % 32 * 4);
    for (int i = 0; i < 4; i++) out[threadIdx.x * 4 + i] = words[i];
}
HUSH_KERNEL(conform_ldmatrix_x4)

// ldmatrix: (1, 32, 256). in [16 rows][4], out [32 lanes][2]; the first 16 lanes give the rows.
extern "C" __global__ void __launch_bounds__(32) conform_ldmatrix_x2(uint32_t* out, const uint32_t* in) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    for (uint32_t i = threadIdx.x; i < 64; i += 32) shared[i] = in[i];
    __syncwarp();
    uint32_t words[2];
    ptx::ldmatrix_x2(words, shared + (threadIdx.x * 5 + 3) % 16 * 4);
    for (int i = 0; i < 2; i++) out[threadIdx.x * 2 + i] = words[i];
}
HUSH_KERNEL(conform_ldmatrix_x2)

// cp.async: (1, 64, 3072). in [6 groups][64][4], out [6 groups][64][4] with the neighbour's words; three groups are in flight.
extern "C" __global__ void __launch_bounds__(64) conform_cp_async(uint32_t* out, const uint32_t* in) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    constexpr uint32_t groups = 6, stages = 3, words = 256;
    auto fetch = [&](uint32_t group) {
        if (group < groups)
            ptx::cp_async_16(shared + group % stages * words + threadIdx.x * 4, in + group * words + threadIdx.x * 4);
        ptx::cp_async_commit();
    };
    for (uint32_t group = 0; group < stages; group++) fetch(group);
    for (uint32_t group = 0; group < groups; group++) {
        ptx::cp_async_wait<stages - 1>();
        __syncthreads();
        const uint32_t* from = shared + group % stages * words + (threadIdx.x + 1) % 64 * 4;
        for (int i = 0; i < 4; i++) out[group * words + threadIdx.x * 4 + i] = from[i];
        __syncthreads();
        fetch(group + stages);
    }
}
HUSH_KERNEL(conform_cp_async)

// red.add: (4, 64, 0). in [4 blocks][64], out [8], which must be zero before: out[i] is the sum of the words that are i mod 8.
extern "C" __global__ void __launch_bounds__(64) conform_red_add(uint32_t* out, const uint32_t* in) {
    const uint32_t word = in[blockIdx.x * 64 + threadIdx.x];
    ptx::red_add(&out[word % 8], word);
}
HUSH_KERNEL(conform_red_add)

// atomicAdd: (4, 64, 0), with the results of conform_red_add.
extern "C" __global__ void __launch_bounds__(64) conform_atomic_add(uint32_t* out, const uint32_t* in) {
    const uint32_t word = in[blockIdx.x * 64 + threadIdx.x];
    atomicAdd(&out[word % 8], word);
}
HUSH_KERNEL(conform_atomic_add)

// Streaming loads: (1, 64, 0). in [64][4], out [64][4].
extern "C" __global__ void __launch_bounds__(64) conform_load_stream_16(uint32_t* out, const uint32_t* in) {
    const uint4 words = ptx::load_stream_16(in + threadIdx.x * 4);
    *reinterpret_cast<uint4*>(out + threadIdx.x * 4) = words;
}
HUSH_KERNEL(conform_load_stream_16)

// Shuffles and votes of two warps: (1, 64, 0). in [64], out [64][12].
extern "C" __global__ void __launch_bounds__(64) conform_shuffles(uint32_t* out, const uint32_t* in) {
    constexpr uint32_t all = 0xffffffff;
    const uint32_t word = in[threadIdx.x], lane = threadIdx.x % 32;
    uint32_t* to = out + threadIdx.x * 12;
    to[0] = __shfl_sync(all, word, word % 32);
    to[1] = __shfl_xor_sync(all, word, 5);
    to[2] = __shfl_down_sync(all, word, 3);
    to[3] = __shfl_up_sync(all, word, 9);
    to[4] = __shfl_sync(all, word, word, 8);
    to[5] = __shfl_xor_sync(all, word, 12, 8);
    to[6] = __shfl_down_sync(all, word, 3, 16);
    to[7] = __shfl_up_sync(all, word, 3, 4);
    const uint64_t wide = __shfl_xor_sync(all, (uint64_t)word << 32 | lane, 1);
    to[8] = (uint32_t)(wide >> 32) ^ (uint32_t)wide;
    to[9] = __ballot_sync(all, word & 1);
    to[10] = (uint32_t)(__any_sync(all, word % 64 == 0) != 0) * 2 + (uint32_t)(__all_sync(all, word % 64 != 0) != 0);
    // Two halves of a warp on their own.
    const uint32_t half = lane < 16 ? 0x0000ffff : 0xffff0000;
    to[11] = lane < 16 ? __shfl_xor_sync(half, word, 3) : __shfl_xor_sync(half, word, 6);
}
HUSH_KERNEL(conform_shuffles)

// Integer functions: (1, 64, 0). in [64][3], out [64][13].
extern "C" __global__ void __launch_bounds__(64) conform_integers(uint32_t* out, const uint32_t* in) {
    const uint32_t a = in[threadIdx.x * 3], b = in[threadIdx.x * 3 + 1], c = in[threadIdx.x * 3 + 2];
    uint32_t* to = out + threadIdx.x * 13;
    const uint64_t wide = __umul64hi((uint64_t)a << 32 | b, (uint64_t)b << 32 | c);
    to[0] = __umulhi(a, b);
    to[1] = (uint32_t)__mulhi((int32_t)a, (int32_t)b);
    to[2] = (uint32_t)wide ^ (uint32_t)(wide >> 32);
    to[3] = __byte_perm(a, b, c);
    to[4] = __funnelshift_l(a, b, c);
    to[5] = __funnelshift_r(a, b, c);
    to[6] = __funnelshift_lc(a, b, c % 64);
    to[7] = __funnelshift_rc(a, b, c % 64);
    to[8] = (uint32_t)(__popc(a) + 256 * __clz(b) + 65536 * __ffs((int32_t)c));
    to[9] = __brev(a);
    to[10] = min(a, b) ^ max(b, c);
    to[11] = (uint32_t)(__popcll((uint64_t)a << 32 | b) + 256 * __clzll((uint64_t)a << 32 | b));
    const uint64_t sum = ptx::multiply_add_wide(a, b, (uint64_t)b << 32 | c);
    to[12] = (uint32_t)sum ^ (uint32_t)(sum >> 32);
}
HUSH_KERNEL(conform_integers)

// Barriers: (1, 128, 512). in [128], out [128]: each half of the block waits at its own named barrier, then the whole block.
extern "C" __global__ void __launch_bounds__(128) conform_barriers(uint32_t* out, const uint32_t* in) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    const uint32_t half = threadIdx.x / 64;
    shared[threadIdx.x] = in[threadIdx.x];
    ptx::named_barrier_sync(1 + half, 64);
    const uint32_t word = shared[half * 64 + (threadIdx.x + 33) % 64];
    __syncthreads();
    shared[threadIdx.x] = word;
    __syncthreads();
    out[threadIdx.x] = shared[(threadIdx.x + 71) % 128] + word;
}
HUSH_KERNEL(conform_barriers)
