//! The block product with AVX2.
//!
//! ```text
//! for every 2 rows x 2 queries:  low += widen(db) . query_low;  high += widen(db) . query_high     (vpmaddwd)
//! sum = low + 2^16 high                                                                            mod 2^32
//! ```
//!
//! `vpmaddubsw` saturates, so bytes are widened to 16 bits and a query word is split into two signed halves. `vpmaddwd` is then
//! exact: `2 * 2^7 * 2^15` at most before the sum modulo 2^32.
#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::*;

use hush_ops::tiling::{PANEL_ROWS, TILE_BYTES, TILE_COLS};

use super::{
    kernel::{Block, FoldKernel},
    layout,
};

pub(super) const KERNEL: FoldKernel = FoldKernel::of_words(layout::prepare_halves, block);

/// Rows of a register block: 2 rows x 2 queries x 2 halves are 8 accumulators of the 16 registers.
const ROWS: usize = 2;
/// Columns of one step: 16 bytes of the database become 16 words of 16 bits.
const STEP_COLS: usize = 16;

/// # Safety
/// The CPU must have AVX2.
#[target_feature(enable = "avx2")]
unsafe fn block(block: Block<'_>) {
    let query_tile = layout::flat_query_bytes(block.batch);
    assert!(
        block.db.len() == block.tiles * TILE_BYTES
            && block.query.len() == block.tiles * query_tile
            && block.sums.len() == layout::word_sum_words(block.batch)
    );
    for row in (0..PANEL_ROWS).step_by(ROWS) {
        // The next block is prefetched along with the first queries, evenly: a burst for every pair of rows would
        // fill the line buffers.
        let mut ahead =
            Ahead { next: block.ahead.db.wrapping_add(row * block.tiles * TILE_COLS), lines: ROWS };
        for b in (0..block.batch - block.batch % 2).step_by(2) {
            // SAFETY: the rows from `row` and queries `b`, `b + 1` exist; the lengths are checked above.
            unsafe { dot::<2>(&block, row, b, ahead) }.add_to(block.sums, block.batch, row, b);
            ahead.lines = 0;
        }
        if block.batch % 2 == 1 {
            let b = block.batch - 1;
            // SAFETY: the rows from `row` and query `b` exist; the lengths are checked above.
            unsafe { dot::<1>(&block, row, b, ahead) }.add_to(block.sums, block.batch, row, b);
        }
    }
}

/// A prefetch of some lines with every tile. The address may point anywhere.
#[derive(Clone, Copy)]
struct Ahead {
    next: *const u8,
    lines: usize,
}

/// Products of some rows with some queries.
struct Products<const QUERIES: usize>([[u32; QUERIES]; ROWS]);

impl<const QUERIES: usize> Products<QUERIES> {
    fn add_to(&self, sums: &mut [i32], batch: usize, row: usize, b: usize) {
        for (i, products) in self.0.iter().enumerate() {
            for (j, &product) in products.iter().enumerate() {
                let slot = &mut sums[(row + i) * batch + b + j];
                *slot = slot.wrapping_add(product as i32);
            }
        }
    }
}

/// # Safety
/// The CPU must have AVX2; the block has its tiles and queries in full, `ROWS` rows from `row` and `QUERIES`
/// queries from `b`.
#[target_feature(enable = "avx2")]
unsafe fn dot<const QUERIES: usize>(
    block: &Block<'_>,
    row: usize,
    b: usize,
    mut ahead: Ahead,
) -> Products<QUERIES> {
    let zero = _mm256_setzero_si256();
    let mut low = [[zero; QUERIES]; ROWS];
    let mut high = [[zero; QUERIES]; ROWS];
    for tile in 0..block.tiles {
        for _ in 0..ahead.lines {
            _mm_prefetch::<_MM_HINT_T0>(ahead.next.cast());
            ahead.next = ahead.next.wrapping_add(64);
        }
        let db = block.db[tile * TILE_BYTES + row * TILE_COLS..].as_ptr();
        let query = block.query
            [tile * layout::flat_query_bytes(block.batch) + b * layout::flat_query_bytes(1)..]
            .as_ptr();
        for step in 0..TILE_COLS / STEP_COLS {
            let mut bytes = [zero; ROWS];
            for (i, bytes) in bytes.iter_mut().enumerate() {
                // SAFETY: 16 bytes of row `row + i` of this tile.
                let narrow = unsafe { _mm_loadu_si128(db.add(i * TILE_COLS + step * STEP_COLS).cast()) };
                *bytes = _mm256_cvtepi8_epi16(narrow);
            }
            for j in 0..QUERIES {
                // SAFETY: the low halves of 16 columns of query `b + j` in this tile.
                let low_halves = unsafe { query.add(j * layout::flat_query_bytes(1) + step * 2 * STEP_COLS) };
                // SAFETY: 32 bytes of them.
                let query_low = unsafe { _mm256_loadu_si256(low_halves.cast()) };
                // SAFETY: the high halves of the same columns, which follow those of all 64.
                let query_high = unsafe { _mm256_loadu_si256(low_halves.add(2 * TILE_COLS).cast()) };
                for i in 0..ROWS {
                    low[i][j] = _mm256_add_epi32(low[i][j], _mm256_madd_epi16(bytes[i], query_low));
                    high[i][j] = _mm256_add_epi32(high[i][j], _mm256_madd_epi16(bytes[i], query_high));
                }
            }
        }
    }
    let mut products = [[0; QUERIES]; ROWS];
    for i in 0..ROWS {
        for j in 0..QUERIES {
            let joined = _mm256_add_epi32(low[i][j], _mm256_slli_epi32::<16>(high[i][j]));
            products[i][j] = sum_lanes(joined);
        }
    }
    Products(products)
}

#[target_feature(enable = "avx2")]
fn sum_lanes(vector: __m256i) -> u32 {
    let half = _mm_add_epi32(_mm256_castsi256_si128(vector), _mm256_extracti128_si256::<1>(vector));
    let quarter = _mm_add_epi32(half, _mm_shuffle_epi32::<0b01_00_11_10>(half));
    _mm_cvtsi128_si32(_mm_add_epi32(quarter, _mm_shuffle_epi32::<0b10_11_00_01>(quarter))) as u32
}
