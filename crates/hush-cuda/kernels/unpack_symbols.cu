// The kernel `unpack_symbols`: it expands plaintexts of a database of symbols (crates/hush-ops/src/symbol_tiling.rs), so that each
// symbol has a word.
//
// A plaintext is W words, and word w holds the symbols w, w + W, w + 2 W, .., the lowest bits first.
#include "prelude.cuh"

// Expands some rows of some columns to `symbols`, [row][column][N]. Plaintext (row, column) is at `packed` + (column rows + row) W.
// A block expands one plaintext: row first + blockIdx.x / columns of column blockIdx.x mod columns.
extern "C" __global__ void __launch_bounds__(256)
    unpack_symbols(uint32_t* symbols, const uint32_t* packed, uint32_t words, uint32_t bits, uint32_t rows,
                   uint32_t first, uint32_t columns) {
    const uint32_t row = first + blockIdx.x / columns, column = blockIdx.x % columns, parts = 32 / bits;
    const uint32_t* from = packed + (size_t(column) * rows + row) * words;
    uint32_t* to = symbols + size_t(blockIdx.x) * words * parts;
    for (uint32_t at = threadIdx.x; at < words; at += blockDim.x) {
        const uint32_t word = from[at];
        for (uint32_t part = 0; part < parts; part++) {
            to[part * words + at] = word >> (part * bits) & (0xffffffffu >> (32 - bits));
        }
    }
}
HUSH_KERNEL(unpack_symbols)
