//! The block product with NEON's products of matrices: `smmla` multiplies 2 x 8 by 8 x 2 signed bytes, and adds the four sums.
//!
//! ```text
//! word = d0 + 2^8 d1 + 2^16 d2 + 2^24 d3  mod 2^32,  -128 <= d < 128
//! for every 2 rows, 2 digits of a query:  acc[2][2] += db[2 rows][8 columns] . digits[8 columns][2 digits]      (smmla)
//! sum = acc[0] + 2^8 acc[1] + 2^16 acc[2] + 2^24 acc[3]                                                         mod 2^32
//! ```
//!
//! Instructions for a step of 16 columns of 4 rows and two queries: 8 loads of digits, 4 of rows, 4 `zip` that pair the rows, 16
//! `smmla`: 32 for 64 bytes of the database and two queries, 0.25 a byte and query; 24, or 0.31, for one query.
#![cfg(target_arch = "aarch64")]

use std::{
    arch::{aarch64::*, asm},
    array::from_fn,
};

use hush_ops::tiling::TILE_COLS;

use super::{
    kernel::{Block, FoldKernel},
    layout::{self, LIMBS},
    rows::{self, Ahead, QUERY_TILE_BYTES, ROWS, RowProducts, fold_rows, products},
};

pub(super) const KERNEL: FoldKernel = FoldKernel::of_words(rows::prepare_digit_pairs, fold_rows::<Matrices>);

/// The number of bytes of a vector.
const VECTOR: usize = 16;
/// The number of pairs of rows, and of digits.
const ROW_PAIRS: usize = ROWS / 2;
const DIGIT_PAIRS: usize = LIMBS / 2;

/// Computes the products of rows with one query or two.
struct Matrices;

impl RowProducts for Matrices {
    const QUERIES: usize = 2;

    #[inline(always)]
    unsafe fn products<const QUERIES: usize>(
        block: &Block<'_>,
        row: usize,
        b: usize,
        mut ahead: Ahead,
    ) -> [[u32; QUERIES]; ROWS] {
        // SAFETY: the caller has the rows, the queries, and products of matrices.
        unsafe {
            // A sum has [row 0, digit 0], [row 0, digit 1], [row 1, digit 0], [row 1, digit 1] of its pairs.
            let mut sums = [[[vdupq_n_s32(0); DIGIT_PAIRS]; QUERIES]; ROW_PAIRS];
            for tile in 0..block.tiles {
                ahead.fetch();
                let db = block.row(tile, row);
                let query = block.flat_query(tile, b);
                for step in (0..TILE_COLS).step_by(VECTOR) {
                    let pairs: [[int8x16_t; 2]; ROW_PAIRS] = from_fn(|pair| {
                        let [a, b] = from_fn(|i| {
                            vreinterpretq_s64_s8(vld1q_s8(db.add((2 * pair + i) * TILE_COLS + step).cast()))
                        });
                        [vzip1q_s64(a, b), vzip2q_s64(a, b)].map(|pair| vreinterpretq_s8_s64(pair))
                    });
                    for j in 0..QUERIES {
                        for digits in 0..DIGIT_PAIRS {
                            let at = j * QUERY_TILE_BYTES + digits * 2 * TILE_COLS + 2 * step;
                            for half in 0..2 {
                                let digits_of_half = vld1q_s8(query.add(at + half * VECTOR).cast());
                                for (sums, pair) in sums.iter_mut().zip(pairs) {
                                    let sums = &mut sums[j][digits];
                                    *sums = multiply(*sums, pair[half], digits_of_half);
                                }
                            }
                        }
                    }
                }
            }
            from_fn(|i| {
                from_fn(|j| {
                    let words: [[i32; 4]; DIGIT_PAIRS] = sums[i / 2][j].map(|sums| std::mem::transmute(sums));
                    let [first, second] = words.map(|words| [words[i % 2 * 2], words[i % 2 * 2 + 1]]);
                    layout::join_limbs(&[first[0], first[1], second[0], second[1]])
                })
            })
        }
    }
}

products! {
    /// Adds the products of two rows of `a` with two rows of `b`, 8 bytes each, to four sums.
    ///
    /// # Safety
    /// The CPU must have products of matrices.
    multiply, "i8mm", "smmla"
}
