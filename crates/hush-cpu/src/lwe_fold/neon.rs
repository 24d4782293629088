//! The block product with NEON.
//!
//! ```text
//! for every 4 rows x 1 or 2 queries:  low += widen(db) . query_low    mod 2^32      (smlal, smlal2)
//!                                     high += widen(db) . query_high  mod 2^16      (mla)
//! sum = low + 2^16 high                                               mod 2^32
//! ```
//!
//! A product of two bytes in 16 bits leaves no room to add two of them, so bytes are widened to 16 bits, and a query word is split
//! into two signed halves. Of the high half only 16 bits count.
//!
//! Instructions for a step of 16 columns of 4 rows and one query: 4 loads of the query, and for each row 1 load, 2 `sxtl`, 4
//! `smlal` and 2 `mla`: 40 for 64 bytes of the database, 0.63 a byte; 68, or 0.53 a byte and query, for two queries.
#![cfg(target_arch = "aarch64")]

use std::arch::aarch64::*;

use hush_ops::tiling::TILE_COLS;

use super::{
    kernel::{Block, FoldKernel},
    layout,
    rows::{Ahead, QUERY_TILE_BYTES, ROWS, RowProducts, fold_rows},
};

pub(super) const KERNEL: FoldKernel = FoldKernel::of_words(layout::prepare_halves, fold_rows::<Halves>);

/// Columns of one step: 16 bytes of the database become two vectors of 16-bit words.
const STEP_COLS: usize = 16;

/// Computes the products of rows with one query or two.
struct Halves;

impl RowProducts for Halves {
    const QUERIES: usize = 2;

    #[inline(always)]
    unsafe fn products<const QUERIES: usize>(
        block: &Block<'_>,
        row: usize,
        b: usize,
        mut ahead: Ahead,
    ) -> [[u32; QUERIES]; ROWS] {
        // SAFETY: the caller has the rows and queries; every ARMv8 has NEON.
        unsafe {
            let mut low = [[vdupq_n_s32(0); QUERIES]; ROWS];
            let mut high = [[vdupq_n_s16(0); QUERIES]; ROWS];
            for tile in 0..block.tiles {
                ahead.fetch();
                let db = block.row(tile, row);
                let query = block.flat_query(tile, b);
                for step in 0..TILE_COLS / STEP_COLS {
                    let mut bytes = [[vdupq_n_s16(0); 2]; ROWS];
                    for (i, bytes) in bytes.iter_mut().enumerate() {
                        let narrow = vld1q_s8(db.add(i * TILE_COLS + step * STEP_COLS).cast());
                        *bytes = [vmovl_s8(vget_low_s8(narrow)), vmovl_high_s8(narrow)];
                    }
                    for j in 0..QUERIES {
                        let low_halves: *const i16 =
                            query.add(j * QUERY_TILE_BYTES + step * 2 * STEP_COLS).cast();
                        let query_low = [vld1q_s16(low_halves), vld1q_s16(low_halves.add(8))];
                        let high_halves = low_halves.add(TILE_COLS);
                        let query_high = [vld1q_s16(high_halves), vld1q_s16(high_halves.add(8))];
                        for i in 0..ROWS {
                            for k in 0..2 {
                                low[i][j] = add_products(low[i][j], bytes[i][k], query_low[k]);
                                high[i][j] = vmlaq_s16(high[i][j], bytes[i][k], query_high[k]);
                            }
                        }
                    }
                }
            }
            let mut products = [[0; QUERIES]; ROWS];
            for i in 0..ROWS {
                for j in 0..QUERIES {
                    let high = i32::from(vaddvq_s16(high[i][j])) << 16;
                    products[i][j] = vaddvq_s32(low[i][j]).wrapping_add(high) as u32;
                }
            }
            products
        }
    }
}

/// Adds the products of eight words of 16 bits, two to each sum.
#[inline(always)]
fn add_products(sums: int32x4_t, a: int16x8_t, b: int16x8_t) -> int32x4_t {
    // SAFETY: every ARMv8 has NEON.
    unsafe { vmlal_high_s16(vmlal_s16(sums, vget_low_s16(a), vget_low_s16(b)), a, b) }
}
