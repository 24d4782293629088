//! The portable block product: `sums[row][query] += db[row] . query mod 2^32`, byte by byte.

use hush_ops::tiling::{PANEL_ROWS, TILE_BYTES, TILE_COLS};

use super::{
    kernel::{Block, FoldKernel, begin_nothing, end_nothing},
    layout,
};

pub(super) const KERNEL: FoldKernel = FoldKernel {
    query_bytes: layout::flat_query_bytes,
    sum_words: layout::word_sum_words,
    prepare: layout::prepare_words,
    begin: begin_nothing,
    block,
    end: end_nothing,
    finish: layout::finish_words,
};

fn block(block: Block<'_>) {
    let query_tile = layout::flat_query_bytes(block.batch);
    for (db, query) in block.db.chunks_exact(TILE_BYTES).zip(block.query.chunks_exact(query_tile)) {
        for (b, query) in query.chunks_exact(layout::flat_query_bytes(1)).enumerate() {
            let mut words = [0u32; TILE_COLS];
            for (word, bytes) in words.iter_mut().zip(query.chunks_exact(4)) {
                *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            }
            for row in 0..PANEL_ROWS {
                let db = &db[row * TILE_COLS..][..TILE_COLS];
                let sum = db.iter().zip(&words).fold(0u32, |sum, (&byte, &word)| {
                    sum.wrapping_add((byte as i8 as u32).wrapping_mul(word))
                });
                let slot = &mut block.sums[row * block.batch + b];
                *slot = slot.wrapping_add(sum as i32);
            }
        }
    }
}
