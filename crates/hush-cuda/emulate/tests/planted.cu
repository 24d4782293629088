// Kernels with a bug that `planted` switches on. Without the bug, each gives out[t] = in[(t + 1) % 128] for the 128 threads of its
// only block. Arguments are (out, in, planted); out and in are 128 words each, at multiples of 16.
#include "prelude.cuh"

namespace {

HUSH_DEVICE uint32_t neighbour() { return (threadIdx.x + 1) % 128; }

}  // namespace

// Shared: 512 bytes. The bug: no barrier between the threads' writes and reads.
extern "C" __global__ void missing_barrier(uint32_t* out, const uint32_t* in, uint32_t planted) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    shared[threadIdx.x] = in[threadIdx.x];
    if (!planted) __syncthreads();
    out[threadIdx.x] = shared[neighbour()];
}
HUSH_KERNEL(missing_barrier)

// Static shared memory. The bug: the second barrier is missing, so a fast thread overwrites the words that a slow thread reads.
extern "C" __global__ void missing_second_barrier(uint32_t* out, const uint32_t* in, uint32_t planted) {
    __shared__ uint32_t shared[128];
    uint32_t word = 0;
    for (uint32_t turn = 0; turn < 3; turn++) {
        shared[threadIdx.x] = in[threadIdx.x] ^ turn;
        __syncthreads();
        word = shared[neighbour()] ^ turn;
        if (!planted) __syncthreads();
    }
    out[threadIdx.x] = word;
}
HUSH_KERNEL(missing_second_barrier)

// Shared: 512 bytes. The bug: a shuffle instead of a barrier of the warp. A shuffle does not order memory accesses.
extern "C" __global__ void missing_warp_barrier(uint32_t* out, const uint32_t* in, uint32_t planted) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    shared[threadIdx.x] = in[threadIdx.x];
    if (planted) __shfl_sync(0xffffffff, 0u, 0);
    else __syncwarp();
    const uint32_t word = shared[threadIdx.x / 32 * 32 + (threadIdx.x + 1) % 32];
    out[threadIdx.x] = threadIdx.x % 32 == 31 ? in[neighbour()] : word;
}
HUSH_KERNEL(missing_warp_barrier)

// Two or more blocks. The bug: all blocks write the same words, although the same values.
extern "C" __global__ void race_between_blocks(uint32_t* out, const uint32_t* in, uint32_t planted) {
    if (planted || blockIdx.x == 0) out[threadIdx.x] = in[neighbour()];
}
HUSH_KERNEL(race_between_blocks)

// The bug: thread 127 reads beyond the end of `in`.
extern "C" __global__ void global_overflow(uint32_t* out, const uint32_t* in, uint32_t planted) {
    const uint32_t word = in[planted ? threadIdx.x + 1 : neighbour()];
    out[threadIdx.x] = threadIdx.x == 127 ? in[0] : word;
}
HUSH_KERNEL(global_overflow)

// Shared: 512 bytes. The bug: thread 127 writes beyond the end of shared memory.
extern "C" __global__ void shared_overflow(uint32_t* out, const uint32_t* in, uint32_t planted) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    shared[planted ? threadIdx.x + 1 : neighbour()] = in[neighbour()];
    __syncthreads();
    out[threadIdx.x] = threadIdx.x == 127 ? in[0] : shared[threadIdx.x + 1];
}
HUSH_KERNEL(shared_overflow)

// Shared: 512 bytes. The bug: thread 0 writes before the start of shared memory.
extern "C" __global__ void shared_underflow(uint32_t* out, const uint32_t* in, uint32_t planted) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    const uint32_t at = (threadIdx.x + 127) % 128;
    shared[planted ? static_cast<int32_t>(threadIdx.x) - 1 : static_cast<int32_t>(at)] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = threadIdx.x == 127 ? in[0] : shared[threadIdx.x];
}
HUSH_KERNEL(shared_underflow)

// The bug: a vector at an address that is not a multiple of 16.
extern "C" __global__ void misaligned_vector(uint32_t* out, const uint32_t* in, uint32_t planted) {
    const uint32_t at = planted && threadIdx.x < 100 ? neighbour() : neighbour() / 4 * 4;
    const uint4 words = *reinterpret_cast<const uint4*>(in + at);
    const uint32_t all[4] = {words.x, words.y, words.z, words.w};
    out[threadIdx.x] = all[neighbour() - at];
}
HUSH_KERNEL(misaligned_vector)

// Shared: 512 bytes. The bug: the threads do not wait for the copies.
extern "C" __global__ void missing_copy_wait(uint32_t* out, const uint32_t* in, uint32_t planted) {
    HUSH_DYNAMIC_SHARED(uint32_t, shared);
    if (threadIdx.x < 32) ptx::cp_async_16(shared + threadIdx.x * 4, in + threadIdx.x * 4);
    ptx::cp_async_commit();
    if (planted) ptx::cp_async_wait<1>();
    else ptx::cp_async_wait<0>();
    __syncthreads();
    out[threadIdx.x] = shared[neighbour()];
}
HUSH_KERNEL(missing_copy_wait)

// Two or more blocks. The bug: one thread in 128 does not arrive at the barrier, and waits for its warp.
extern "C" __global__ void hang(uint32_t* out, const uint32_t* in, uint32_t planted) {
    if (planted && threadIdx.x == 77) __syncwarp();
    else __syncthreads();
    if (blockIdx.x == 0) out[threadIdx.x] = in[neighbour()];
}
HUSH_KERNEL(hang)

// The bug: half of a warp shuffles while the other half votes.
extern "C" __global__ void mixed_collectives(uint32_t* out, const uint32_t* in, uint32_t planted) {
    const uint32_t word = __shfl_sync(0xffffffff, in[threadIdx.x], (threadIdx.x + 1) % 32);
    if (planted && threadIdx.x % 32 < 16) __ballot_sync(0xffffffff, 1);
    else __shfl_sync(0xffffffff, 0u, 0);
    out[threadIdx.x] = threadIdx.x % 32 == 31 ? in[neighbour()] : word;
}
HUSH_KERNEL(mixed_collectives)
