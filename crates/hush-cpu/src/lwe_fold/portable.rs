//! The portable block product, written so that compilers vectorise it.
//!
//! ```text
//! for every row, query:  low += db . query_low;  high += db . query_high      (products of 16 bits, sums of 32)
//! sum = low + 2^16 high                                                       mod 2^32
//! ```
//!
//! Every machine multiplies 16 bits by 16 bits into 32 (`pmaddwd`, `smlal`), but many do not multiply 32 by 32 in vectors.

use std::array::from_fn;

use hush_ops::tiling::{PANEL_ROWS, TILE_BYTES, TILE_COLS};

use super::{
    kernel::{Block, FoldKernel},
    layout,
};
use crate::kernels::prefetch;

pub(super) const KERNEL: FoldKernel = FoldKernel::of_words(layout::prepare_halves, block);

/// The number of columns whose halves lie side by side ([`layout::prepare_halves`]).
const STEP: usize = 16;

fn block(block: Block<'_>) {
    let query_tile = layout::flat_query_bytes(block.batch);
    let tiles = block.db.chunks_exact(TILE_BYTES).zip(block.query.chunks_exact(query_tile));
    for (index, (db, query)) in tiles.enumerate() {
        let (rows, _) = db.as_chunks::<TILE_COLS>();
        for (b, query) in query.chunks_exact(layout::flat_query_bytes(1)).enumerate() {
            let (bytes, _) = query.as_chunks::<2>();
            let halves: [i16; 2 * TILE_COLS] = from_fn(|i| i16::from_le_bytes(bytes[i]));
            for (row, db) in rows.iter().enumerate() {
                if b == 0 {
                    prefetch(block.ahead.db.wrapping_add((index * PANEL_ROWS + row) * TILE_COLS));
                }
                let slot = &mut block.sums[row * block.batch + b];
                *slot = slot.wrapping_add(product(db, &halves));
            }
        }
    }
}

/// Multiplies a row of a tile by a query.
#[inline(always)]
fn product(db: &[u8; TILE_COLS], halves: &[i16; 2 * TILE_COLS]) -> i32 {
    let mut low = [0i32; STEP];
    let mut high = [0i32; STEP];
    for step in 0..TILE_COLS / STEP {
        for i in 0..STEP {
            let byte = i32::from(db[step * STEP + i] as i8);
            low[i] = low[i].wrapping_add(byte * i32::from(halves[2 * STEP * step + i]));
            high[i] = high[i].wrapping_add(byte * i32::from(halves[2 * STEP * step + STEP + i]));
        }
    }
    low.iter().zip(high).fold(0, |sum: i32, (low, high)| sum.wrapping_add(low.wrapping_add(high << 16)))
}
