// The prelude of every kernel file: CUDA C++ under nvcc, the emulator under g++, and the PTX primitives for both.
#pragma once
#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define HUSH_DEVICE __device__ __forceinline__
// Declares `name`: the block's dynamic shared memory as an array of `type`, aligned to 1024 bytes.
#define HUSH_DYNAMIC_SHARED(type, name)                              \
    extern __shared__ __align__(1024) uint8_t hush_dynamic_shared[]; \
    type* name = reinterpret_cast<type*>(hush_dynamic_shared)
// Registers a kernel by its name with the emulator. It comes after the kernel's definition.
#define HUSH_KERNEL(name)
// Registers a kernel with __cluster_dims__(blocks, 1, 1).
#define HUSH_CLUSTER_KERNEL(name, blocks)
#else
#include "../emulate/cuda.hpp"
#endif

#include "ptx/barrier.cuh"
#include "ptx/cluster.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/memory.cuh"
#include "ptx/mma.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/multiply.cuh"
#include "ptx/registers.cuh"
#include "ptx/wgmma.cuh"
