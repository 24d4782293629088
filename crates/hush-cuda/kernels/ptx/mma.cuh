// Matrix products of a warp on bytes (sm_80): d += a b with a of 16 x 32, b of 32 x 8, d of 16 x 8, wrapping.
//
// Lane l holds: a[i] = row l / 4 + 8 (i % 2), bytes 4 (l % 4) + 16 (i / 2) and three more; b[i] = column l / 4, bytes
// 4 (l % 4) + 16 i and three more; d[i] = row l / 4 + 8 (i / 2), column 2 (l % 4) + i % 2.
#pragma once
#include <cstdint>

#include "address.cuh"
#ifndef __CUDACC__
#include "../../emulate/matrix.hpp"
#endif

namespace ptx {

#ifdef __CUDACC__
#define HUSH_MMA(name, type_a, type_b)                                                                          \
    HUSH_DEVICE void name(int32_t(&d)[4], const uint32_t(&a)[4], const uint32_t(&b)[2]) {                       \
        asm volatile("mma.sync.aligned.m16n8k32.row.col.s32." #type_a "." #type_b ".s32 "                       \
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                          \
                     : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                                           \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                       \
    }
#else
#define HUSH_MMA(name, type_a, type_b)                                                                          \
    HUSH_DEVICE void name(int32_t(&d)[4], const uint32_t(&a)[4], const uint32_t(&b)[2]) {                       \
        hush_emulate::mma_m16n8k32(d, a, b, {#type_a[0] == 's', #type_b[0] == 's'});                            \
    }
#endif
HUSH_MMA(mma_m16n8k32_s8u8, s8, u8)
HUSH_MMA(mma_m16n8k32_u8u8, u8, u8)
HUSH_MMA(mma_m16n8k32_u8s8, u8, s8)
HUSH_MMA(mma_m16n8k32_s8s8, s8, s8)
#undef HUSH_MMA

// Loads four matrices of 8 rows of 16 bytes from shared memory. Lane 8 i + r gives the address of row r of matrix i, a multiple of
// 16. Lane l receives in r[i] bytes 4 (l % 4) to 4 (l % 4) + 3 of row l / 4 of matrix i.
HUSH_DEVICE void ldmatrix_x4(uint32_t (&r)[4], const void* row) {
#ifdef __CUDACC__
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
#else
    hush_emulate::ldmatrix(r, 4, row);
#endif
}

// Loads like ldmatrix_x4 for two matrices: the addresses of lanes 0 to 15 count.
HUSH_DEVICE void ldmatrix_x2(uint32_t (&r)[2], const void* row) {
#ifdef __CUDACC__
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(shared_address(row))
                 : "memory");
#else
    hush_emulate::ldmatrix(r, 2, row);
#endif
}

}  // namespace ptx
