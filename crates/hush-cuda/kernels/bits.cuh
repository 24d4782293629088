// Values packed to the bytes of an answer, as hush_he::codec packs them. Each has `bits` bits: value i takes the bits
// i * bits .. (i + 1) * bits, least significant first. Zeros fill the last byte.
#pragma once

#include "prelude.cuh"

// Returns the 32 bits of packed values from bit `first` on, with zeros before the first value and after the last. `value(i)` is
// below 2^bits, for bits of 1 to 48.
template <class Value>
HUSH_DEVICE uint32_t packed_word(int64_t first, uint32_t bits, uint64_t count, const Value& value) {
    uint32_t word = 0;
    for (uint64_t i = uint64_t(first < 0 ? 0 : first) / bits; i < count; i++) {
        const int64_t shift = int64_t(i * bits) - first;
        if (shift >= 32) break;
        const uint64_t x = value(i);
        word |= shift < 0 ? uint32_t(x >> -shift) : uint32_t(x) << shift;
    }
    return word;
}

// Writes `count` packed values to `out`. This is thread `thread` of `threads`. Aligned words are written whole, the words at both
// ends byte by byte: another thread may write their other bytes.
template <class Value>
HUSH_DEVICE void store_packed(uint8_t* out, uint32_t bits, uint64_t count, uint64_t thread, uint64_t threads,
                              const Value& value) {
    const int64_t bytes = int64_t((count * bits + 7) / 8), lead = int64_t(uintptr_t(out) % 4);
    for (int64_t at = int64_t(4 * thread) - lead; at < bytes; at += int64_t(4 * threads)) {
        const uint32_t word = packed_word(8 * at, bits, count, value);
        if (at >= 0 && at + 4 <= bytes) {
            *reinterpret_cast<uint32_t*>(out + at) = word;
        } else {
            for (int64_t byte = 0; byte < 4; byte++) {
                if (at + byte >= 0 && at + byte < bytes) out[at + byte] = uint8_t(word >> (8 * byte));
            }
        }
    }
}

// Returns value i of packed values that begin at an aligned word, for bits of 1 to 48.
HUSH_DEVICE uint64_t packed_value(const uint32_t* packed, uint64_t i, uint32_t bits) {
    const uint64_t first = i * bits;
    const uint32_t* words = packed + first / 32;
    const uint32_t shift = uint32_t(first % 32);
    uint64_t value = words[0] >> shift;
    if (shift + bits > 32) value |= uint64_t(words[1]) << (32 - shift);
    if (shift + bits > 64) value |= uint64_t(words[2]) << (64 - shift);
    return value & ((uint64_t(1) << bits) - 1);
}
