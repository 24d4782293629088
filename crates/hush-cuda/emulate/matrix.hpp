// Products of small matrices of bytes, and the loads of a warp for them.
#pragma once
#include <cstdint>

namespace hush_emulate {

/// The signedness of the bytes of a product's operands.
struct Signs {
    bool a_signed, b_signed;
};

/// Multiplies the fragments of a warp's lanes (mma.m16n8k32): d += a b, wrapping.
void mma_m16n8k32(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], Signs signs);

/// Loads `matrices` matrices (ldmatrix): lane 8 i + r gives the address of the 16 bytes of row r of matrix i.
void ldmatrix(uint32_t* words, uint32_t matrices, const void* row);

/// Adds a product: d[r * columns + c] += sum over k of a[32 r + k] b[32 c + k], for 16 rows r, wrapping.
void multiply_16xk32(int32_t* d, const int16_t* a, const int16_t* b, uint32_t columns);

}  // namespace hush_emulate
