// The device layout of a database of polynomials in evaluation form, for folds over its rows. A point is a slot modulo a limb:
// point = limb N + slot. At each point, the database is a matrix of rows x columns, stored in tiles of 32 rows and W columns
// (1, 2, 4, .. 64):
//
//     [point][tile of W columns][tile of 32 rows][column of the tile][32 rows], canonical residues of 32 bits
//
// Rows and columns are padded with zeros. 32 rows of a column are a line of 128 bytes. Its words, least significant byte first, are
// 128 neighbours of an operand of a byte matrix product that is contiguous along k. The eight 16-byte chunks of a line are swizzled
// by the column, as ldmatrix and wgmma (128-byte swizzle) read them without bank conflicts. Tiles are contiguous, and are copied to
// shared memory unchanged.
#pragma once

#include "prelude.cuh"

constexpr uint32_t TILE_ROWS = 32;
constexpr uint32_t LINE_CHUNKS = 8; // of 16 bytes: four rows

// Passed by value as a kernel argument. Mirrored by `NttTiles` in src/ring/databases/ntt_tiles.rs.
struct NttTiles {
    uint4* chunks;
    uint32_t rows, row_tiles;
    uint32_t columns, tiles;
    uint32_t log_width; // log2 W
    uint32_t reserved;
};
static_assert(sizeof(NttTiles) == 32, "the layout of NttTiles");

// Returns the place of 16-byte chunk `chunk` in a line of column `column`. The map is an involution.
HUSH_DEVICE uint32_t swizzled(uint32_t chunk, uint32_t column) {
    return chunk ^ (column % LINE_CHUNKS);
}

// Returns the index of the first chunk of the line of (point, row tile, column).
HUSH_DEVICE uint64_t line_at(const NttTiles& db, uint64_t point, uint32_t row_tile, uint32_t column) {
    uint32_t tile = column >> db.log_width;
    uint64_t tiles_before = (point * db.tiles + tile) * db.row_tiles + row_tile;
    return ((tiles_before << db.log_width) + (column - (tile << db.log_width))) * LINE_CHUNKS;
}

// Returns the address of the word of row `lane` in a line of column `column`. A warp accesses the 128 bytes of a line.
HUSH_DEVICE uint32_t* line_word(const NttTiles& db, uint64_t line, uint32_t column, uint32_t lane) {
    return reinterpret_cast<uint32_t*>(db.chunks + line + swizzled(lane / 4, column)) + lane % 4;
}
