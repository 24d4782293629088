#include "matrix.hpp"

#include <cstring>

#include "block.hpp"
#include "collective.hpp"

namespace hush_emulate {
namespace {

constexpr int depth = 32, tile_rows = 16;

// Returns a dot product of 16-bit numbers, for which compilers have vector instructions. All numbers are bytes: no sum wraps here.
__attribute__((always_inline)) inline int32_t dot(const int16_t* a, const int16_t* b) {
    int32_t sum = 0;
    for (int k = 0; k < depth; k++) sum += a[k] * b[k];
    return sum;
}

__attribute__((always_inline)) inline void multiply(int32_t* d, const int16_t* a, const int16_t* b, uint32_t columns) {
    for (const int16_t* a_end = a + tile_rows * depth; a != a_end; a += depth) {
        const int16_t* column = b;
        for (int32_t* d_end = d + columns; d != d_end; d++, column += depth)
            *d = static_cast<int32_t>(static_cast<uint32_t>(*d) + static_cast<uint32_t>(dot(a, column)));
    }
}

#if defined(__x86_64__)
HUSH_UNSANITIZED __attribute__((target("avx2"))) void multiply_avx2(int32_t* d, const int16_t* a, const int16_t* b,
                                                                    uint32_t columns) {
    multiply(d, a, b, columns);
}
#endif

HUSH_UNSANITIZED int16_t widen(uint32_t word, uint32_t byte, bool is_signed) {
    const uint8_t value = static_cast<uint8_t>(word >> 8 * byte);
    return is_signed ? static_cast<int8_t>(value) : value;
}

struct MmaOperand {
    int32_t* d;
    const uint32_t *a, *b;
    Signs signs;
};

// Multiplies the fragments of all lanes. Lane l holds rows l / 4 and l / 4 + 8 of a, and column l / 4 of b, both at k = 4 (l % 4)
// to 4 (l % 4) + 3, and 16 further.
HUSH_UNSANITIZED void multiply_lanes(void* const (&operands)[32], uint32_t) {
    int16_t a[tile_rows * depth], b[8 * depth];
    int32_t d[tile_rows * 8];
    for (uint32_t lane = 0; lane < 32; lane++) {
        const MmaOperand& operand = *static_cast<const MmaOperand*>(operands[lane]);
        const uint32_t row = lane / 4, k = lane % 4 * 4;
        for (uint32_t byte = 0; byte < 4; byte++) {
            for (uint32_t i = 0; i < 4; i++)
                a[(row + i % 2 * 8) * depth + k + i / 2 * 16 + byte] =
                    widen(operand.a[i], byte, operand.signs.a_signed);
            for (uint32_t i = 0; i < 2; i++)
                b[row * depth + k + i * 16 + byte] = widen(operand.b[i], byte, operand.signs.b_signed);
        }
        for (uint32_t i = 0; i < 4; i++) d[(row + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = operand.d[i];
    }
    multiply_16xk32(d, a, b, 8);
    for (uint32_t lane = 0; lane < 32; lane++) {
        const MmaOperand& operand = *static_cast<const MmaOperand*>(operands[lane]);
        for (uint32_t i = 0; i < 4; i++) operand.d[i] = d[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2];
    }
}

struct LdmatrixOperand {
    uint32_t row[4];
    uint32_t* words;
    uint32_t matrices;
};

HUSH_UNSANITIZED void exchange_rows(void* const (&operands)[32], uint32_t) {
    for (uint32_t lane = 0; lane < 32; lane++) {
        const LdmatrixOperand& to = *static_cast<const LdmatrixOperand*>(operands[lane]);
        for (uint32_t i = 0; i < to.matrices; i++)
            to.words[i] = static_cast<const LdmatrixOperand*>(operands[8 * i + lane / 4])->row[lane % 4];
    }
}

}  // namespace

HUSH_UNSANITIZED void multiply_16xk32(int32_t* d, const int16_t* a, const int16_t* b, uint32_t columns) {
#if defined(__x86_64__)
    static const bool has_avx2 = __builtin_cpu_supports("avx2");
    if (has_avx2) return multiply_avx2(d, a, b, columns);
#endif
    multiply(d, a, b, columns);
}

HUSH_UNSANITIZED void mma_m16n8k32(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], Signs signs) {
    require_capability(8, "mma");
    MmaOperand operand{d, a, b, signs};
    meet_warp(multiply_lanes, &operand, "mma");
}

// Each lane reads its own row, so that the sanitizers see which thread reads.
void ldmatrix(uint32_t* words, uint32_t matrices, const void* row) {
    require_capability(8, "ldmatrix");
    LdmatrixOperand operand{{}, words, matrices};
    if (lane() < 8 * matrices) {
        if (reinterpret_cast<uintptr_t>(row) % 16 != 0) fail(HUSH_EMULATE_MISUSE, "ldmatrix of a misaligned row");
        std::memcpy(operand.row, row, sizeof operand.row);
    }
    meet_warp(exchange_rows, &operand, "ldmatrix");
}

}  // namespace hush_emulate
