//! The block product with NEON's dot products: `sdot` adds the products of four signed bytes to a sum of 32 bits.
//!
//! ```text
//! word = d0 + 2^8 d1 + 2^16 d2 + 2^24 d3  mod 2^32,  -128 <= d < 128
//! for every 4 rows, query:  acc[digit] += db . digits[digit]                                            (sdot)
//! sum = acc[0] + 2^8 acc[1] + 2^16 acc[2] + 2^24 acc[3]                                                  mod 2^32
//! ```
//!
//! Instructions for a step of 16 columns of 4 rows and one query: 4 loads of digits, 4 of rows, 16 `sdot`: 24 for 64 bytes of the
//! database, 0.38 a byte.
#![cfg(target_arch = "aarch64")]

use std::arch::{aarch64::*, asm};

use hush_ops::tiling::TILE_COLS;

use super::{
    kernel::{Block, FoldKernel},
    layout::{self, LIMBS},
    rows::{self, Ahead, ROWS, RowProducts, fold_rows, products},
};

pub(super) const KERNEL: FoldKernel = FoldKernel::of_words(rows::prepare_digits, fold_rows::<Dots>);

/// The number of bytes of a vector.
const VECTOR: usize = 16;

/// Computes the products of rows with one query, whose 16 sums fill half of the registers.
struct Dots;

impl RowProducts for Dots {
    const QUERIES: usize = 1;

    #[inline(always)]
    unsafe fn products<const QUERIES: usize>(
        block: &Block<'_>,
        row: usize,
        b: usize,
        mut ahead: Ahead,
    ) -> [[u32; QUERIES]; ROWS] {
        // SAFETY: the caller has the rows, the queries, and dot products.
        unsafe {
            let mut sums = [[vdupq_n_s32(0); LIMBS]; ROWS];
            for tile in 0..block.tiles {
                ahead.fetch();
                let db = block.row(tile, row);
                let query = block.flat_query(tile, b);
                for step in (0..TILE_COLS).step_by(VECTOR) {
                    let digits: [int8x16_t; LIMBS] =
                        std::array::from_fn(|limb| vld1q_s8(query.add(limb * TILE_COLS + step).cast()));
                    for (i, sums) in sums.iter_mut().enumerate() {
                        let bytes = vld1q_s8(db.add(i * TILE_COLS + step).cast());
                        for (sums, digits) in sums.iter_mut().zip(digits) {
                            *sums = dot(*sums, bytes, digits);
                        }
                    }
                }
            }
            sums.map(|sums| [layout::join_limbs(&sums.map(|sums| vaddvq_s32(sums))); QUERIES])
        }
    }
}

products! {
    /// Adds the products of four bytes to each sum.
    ///
    /// # Safety
    /// The CPU must have dot products.
    dot, "dotprod", "sdot"
}
