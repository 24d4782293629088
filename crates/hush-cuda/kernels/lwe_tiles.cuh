// The device layout of the operands of a fold: databases and prepared queries, in tiles that suit wgmma, ldmatrix and plain loads.
//
// A database (s8) is [row tile of 256][k tile of 128 columns][256 rows][128 bytes], padded with zeros. A pass of
// queries (u8) is [k tile of 128 columns][N byte columns][128 bytes], padded with zeros; N = 4 x padded batch.
//
// The 128 bytes of a line are eight chunks of 16, and chunk c of line r lies at place c ^ (r & 7): the 128-byte swizzle
// of wgmma, without bank conflicts for ldmatrix. A tile is contiguous, and is copied unchanged.
#pragma once
#include "prelude.cuh"

namespace lwe {

constexpr uint32_t TILE_ROWS = 256;
constexpr uint32_t TILE_COLS = 128;
constexpr uint32_t TILE_BYTES = TILE_ROWS * TILE_COLS;
constexpr uint32_t CHUNK_BYTES = 16;
constexpr uint32_t TILE_CHUNKS = TILE_COLS / CHUNK_BYTES;
constexpr uint32_t WORD_BYTES = 4;

// Returns the offset of chunk `chunk` of line `line` in a tile. A line is a row of a database tile or a byte column of a query
// tile.
HUSH_DEVICE uint32_t chunk_offset(uint32_t line, uint32_t chunk) {
    return line * TILE_COLS + ((chunk ^ (line & 7)) * CHUNK_BYTES);
}

// Returns the byte column of byte `byte` of query `query`. Four queries share 16 columns so that the four bytes of a query land in
// one thread. An accumulator tile of 8 columns gives lane l the columns 2 (l % 4) and 2 (l % 4) + 1. Two such tiles side by side
// give it the four columns of query l % 4.
HUSH_DEVICE uint32_t query_column(uint32_t query, uint32_t byte) {
    return query / 4 * 16 + byte / 2 * 8 + query % 4 * 2 + byte % 2;
}

// Gathers byte `byte` of each of four words in one word, the first word's byte lowest.
HUSH_DEVICE uint32_t gather_bytes(const uint32_t* words, uint32_t byte) {
    uint32_t pick = byte | (byte + 4) << 4;
    uint32_t low = __byte_perm(words[0], words[1], pick), high = __byte_perm(words[2], words[3], pick);
    return __byte_perm(low, high, 0x5410);
}

// Writes the bytes of 16 words of a query, which are chunk `chunk` of a k tile, to the query tile.
HUSH_DEVICE void store_query_chunk(uint8_t* tile, uint32_t query, uint32_t chunk, const uint32_t (&words)[16]) {
#pragma unroll
    for (uint32_t byte = 0; byte < WORD_BYTES; byte++) {
        uint4 bytes = make_uint4(gather_bytes(words, byte), gather_bytes(words + 4, byte),
                                 gather_bytes(words + 8, byte), gather_bytes(words + 12, byte));
        *reinterpret_cast<uint4*>(tile + chunk_offset(query_column(query, byte), chunk)) = bytes;
    }
}

} // namespace lwe
