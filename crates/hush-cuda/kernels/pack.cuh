// The map from database rows to the coefficients of plaintexts.
#pragma once

#include "prelude.cuh"

// A hush_ops::PackShape and a range of its plaintexts (columns). Mirrored by `PackColumns` in src/pack/columns.rs.
struct PackColumns {
    uint32_t degree, rows, entry_rows;
    uint32_t planes; // plaintexts of an entry
    uint32_t first;  // the first column
    uint32_t first_row;
};
static_assert(sizeof(PackColumns) == 24, "the layout of PackColumns");

struct PlaintextRows {
    uint32_t start, count;
};

// Returns the rows of column `column`, counted from the first column: coefficient j is row start + j.
HUSH_DEVICE PlaintextRows plaintext_rows(const PackColumns& shape, uint32_t column) {
    uint32_t entry = (shape.first + column) / shape.planes, plane = (shape.first + column) % shape.planes;
    uint64_t entry_start = uint64_t(entry) * shape.entry_rows;
    uint64_t end = min(uint64_t(shape.rows), entry_start + shape.entry_rows);
    uint64_t start = min(entry_start + uint64_t(plane) * shape.degree, end);
    return {uint32_t(start), min(uint32_t(end - start), shape.degree)};
}
