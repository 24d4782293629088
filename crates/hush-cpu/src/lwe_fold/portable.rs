//! The portable block product, written so that compilers vectorise it.
//!
//! ```text
//! for every row, query:  low += db . query_low  mod 2^32;  high += db . query_high  mod 2^16
//! sum = low + 2^16 high                                                            mod 2^32
//! ```
//!
//! Every machine multiplies 16 bits by 16 bits in vectors (`pmaddwd` and `pmullw`, `smlal` and `mla`), but many do not multiply 32
//! by 32.

use hush_ops::tiling::{TILE_BYTES, TILE_COLS};

use super::{
    kernel::{Block, FoldKernel},
    layout,
};
use crate::kernels::prefetch;

pub(super) const KERNEL: FoldKernel = FoldKernel::of_words(layout::prepare_halves, block);

fn block(block: Block<'_>) {
    let query_tile = layout::flat_query_bytes(block.batch);
    let tiles = block.db.chunks_exact(TILE_BYTES).zip(block.query.chunks_exact(query_tile));
    for (db, query) in tiles {
        let (rows, _) = db.as_chunks::<TILE_COLS>();
        for (b, query) in query.chunks_exact(layout::flat_query_bytes(1)).enumerate() {
            let [low, high] = layout::read_halves(query);
            for (row, db) in rows.iter().enumerate() {
                if b == 0 {
                    // The same row of the next tile, which follows, but at the end of a run of panels.
                    prefetch(db.as_ptr().wrapping_add(TILE_BYTES));
                }
                let slot = &mut block.sums[row * block.batch + b];
                *slot = slot.wrapping_add(product(db, &low, &high));
            }
        }
    }
}

/// Multiplies a row of a tile by a query. If it were inlined, the compiler would widen the query for all rows at once, and multiply
/// 32 bits by 32.
#[inline(never)]
fn product(db: &[u8; TILE_COLS], low: &[i16; TILE_COLS], high: &[i16; TILE_COLS]) -> i32 {
    let bytes = db.map(|byte| i16::from(byte as i8));
    let mut low_sum = 0i32;
    for i in 0..TILE_COLS {
        low_sum = low_sum.wrapping_add(i32::from(bytes[i]) * i32::from(low[i]));
    }
    let mut high_sum = 0i16;
    for i in 0..TILE_COLS {
        high_sum = high_sum.wrapping_add(bytes[i].wrapping_mul(high[i]));
    }
    low_sum.wrapping_add(i32::from(high_sum) << 16)
}
