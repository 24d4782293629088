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
    kernel::{Block, FoldKernel, begin_nothing, end_nothing},
    layout::{self, LIMBS},
    rows::{self, Ahead, ROWS, RowProducts, fold_rows},
};

pub(super) const KERNEL: FoldKernel = FoldKernel {
    query_bytes: layout::flat_query_bytes,
    sum_words: layout::word_sum_words,
    prepare: rows::prepare_digits,
    begin: begin_nothing,
    block,
    end: end_nothing,
    finish: layout::finish_words,
};

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

/// Adds the products of four bytes to each sum.
///
/// # Safety
/// The CPU must have dot products.
#[inline(always)]
unsafe fn dot(mut sums: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    // SAFETY: the caller has the instruction, which reads and writes these registers only.
    unsafe {
        asm!(
            ".arch_extension dotprod",
            "sdot {sums:v}.4s, {a:v}.16b, {b:v}.16b",
            sums = inout(vreg) sums,
            a = in(vreg) a,
            b = in(vreg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sums
}

/// # Safety
/// The CPU must have dot products; the block's operands are as long as its batch and tiles say.
unsafe fn block(block: Block<'_>) {
    // SAFETY: the caller promises so.
    unsafe { fold_rows::<Dots>(block) };
}
