//! Step (2): makes LWE words a new byte database, written straight into its tiled layout.

use std::sync::Arc;

use hush_ops::{
    OpsError,
    tiling::{PANEL_ROWS, TILE_BYTES, TILE_COLS, TiledDb, Tiling},
};
use rayon::prelude::*;

use crate::{Cpu, buffer::AlignedBuffer};

/// Writes byte `k` of the rounded word `c * items + i` of query b to row `(b * items + i) * digits + k`, column `c`.
pub(crate) fn reinterpret_lwe(
    cpu: &Cpu,
    words: &[u32],
    queries: usize,
    items: usize,
    digits: usize,
    cols: usize,
) -> Result<TiledDb, OpsError> {
    let tiling = Tiling::new(queries * items * digits, cols);
    let shape = Shape { queries, items, digits, cols };
    let mut bytes = AlignedBuffer::<u8>::zeroed(tiling.bytes());
    let blocks = split_blocks(tiling, &mut bytes);
    cpu.install(|| {
        blocks.into_par_iter().for_each(|block| {
            for (tile, out) in block.bytes.chunks_exact_mut(TILE_BYTES).enumerate() {
                write_tile(words, shape, block.first_row, block.first_col + tile * TILE_COLS, out);
            }
        });
    });
    TiledDb::new(tiling, Arc::new(bytes))
}

/// The tiles of one panel and chunk, which are contiguous.
struct PanelBlock<'a> {
    first_row: usize,
    first_col: usize,
    bytes: &'a mut [u8],
}

/// Cuts a database into its panel blocks, in memory order.
fn split_blocks(tiling: Tiling, mut bytes: &mut [u8]) -> Vec<PanelBlock<'_>> {
    let mut blocks = Vec::with_capacity(tiling.chunks() * tiling.padded_rows() / PANEL_ROWS);
    let (mut first_row, mut first_col);
    let mut group_row = 0;
    for group in 0..tiling.groups() {
        first_col = 0;
        for chunk in 0..tiling.chunks() {
            let tiles = tiling.chunk_tiles(chunk);
            first_row = group_row;
            for _ in 0..tiling.group_panels(group) {
                let (block, rest) = bytes.split_at_mut(tiles * TILE_BYTES);
                bytes = rest;
                blocks.push(PanelBlock { first_row, first_col, bytes: block });
                first_row += PANEL_ROWS;
            }
            first_col += tiles * TILE_COLS;
        }
        group_row += tiling.group_panels(group) * PANEL_ROWS;
    }
    blocks
}

/// The shape of the words.
#[derive(Clone, Copy)]
struct Shape {
    queries: usize,
    items: usize,
    digits: usize,
    cols: usize,
}

/// Fills the tile at (`first_row`, `first_col`); its padding stays zero.
fn write_tile(words: &[u32], shape: Shape, first_row: usize, first_col: usize, out: &mut [u8]) {
    let Shape { queries, items, digits, cols } = shape;
    let dropped = 32 - 8 * digits as u32;
    let half = if dropped == 0 { 0 } else { 1 << (dropped - 1) };
    let last_row = (first_row + PANEL_ROWS).min(queries * items * digits);
    for row in first_row..last_row {
        let query = row / digits / items;
        let item = row / digits % items;
        let words = &words[query * cols * items..][..cols * items];
        let line = &mut out[(row - first_row) * TILE_COLS..][..TILE_COLS];
        for (byte, column) in line.iter_mut().zip(words.chunks_exact(items).skip(first_col)) {
            // Modulo 2^32 the carry of the rounding is dropped at the top, as intended.
            let rounded = column[item].wrapping_add(half) >> dropped;
            *byte = (rounded >> (8 * (row % digits))) as u8;
        }
    }
}

hush_ops::footprint!(Cpu: ReinterpretLwe, |step, batch| batch * step.db.bytes());
