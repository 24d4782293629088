//! The walk through a block that the kernels for ARM share: a few rows and queries at a time, over all tiles; and the layouts of
//! queries in signed digits.
#![cfg(target_arch = "aarch64")]

use hush_ops::tiling::{PANEL_ROWS, TILE_BYTES, TILE_COLS};

use super::{
    kernel::Block,
    layout::{self, LIMBS, QueryChunk},
};
use crate::kernels::prefetch;

/// The rows that are multiplied at a time.
pub(super) const ROWS: usize = 4;
/// The bytes of one query in a tile of a flat layout.
pub(super) const QUERY_TILE_BYTES: usize = TILE_COLS * LIMBS;

/// The product of [`ROWS`] rows with a few queries, in the registers of a level.
pub(super) trait RowProducts {
    /// The most queries at a time: 1 or 2.
    const QUERIES: usize;

    /// Computes the products of the rows from `row` with `QUERIES` queries from `b`, over all tiles of the block.
    ///
    /// # Safety
    /// The CPU must have the level; the block has these rows and queries.
    unsafe fn products<const QUERIES: usize>(
        block: &Block<'_>,
        row: usize,
        b: usize,
        ahead: Ahead,
    ) -> [[u32; QUERIES]; ROWS];
}

/// A prefetch of some lines with every tile. The address may point anywhere.
#[derive(Clone, Copy)]
pub(super) struct Ahead {
    next: *const u8,
    lines: usize,
}

impl Ahead {
    /// Prefetches the lines of one tile.
    #[inline(always)]
    pub(super) fn fetch(&mut self) {
        for _ in 0..self.lines {
            prefetch(self.next);
            self.next = self.next.wrapping_add(TILE_COLS);
        }
    }
}

impl Block<'_> {
    /// Returns the address of row `row` of a tile.
    #[inline(always)]
    pub(super) fn row(&self, tile: usize, row: usize) -> *const u8 {
        self.db[tile * TILE_BYTES + row * TILE_COLS..].as_ptr()
    }

    /// Returns the address of query `b` of a tile in a flat layout.
    #[inline(always)]
    pub(super) fn flat_query(&self, tile: usize, b: usize) -> *const u8 {
        self.query[(tile * self.batch + b) * QUERY_TILE_BYTES..].as_ptr()
    }
}

/// Adds the product of a block to its partial sums.
///
/// # Safety
/// The CPU must have the level of `P`.
#[inline(always)]
pub(super) unsafe fn fold_rows<P: RowProducts>(block: Block<'_>) {
    assert!(
        block.db.len() == block.tiles * TILE_BYTES
            && block.query.len() == block.tiles * layout::flat_query_bytes(block.batch)
            && block.sums.len() == layout::word_sum_words(block.batch)
    );
    for row in (0..PANEL_ROWS).step_by(ROWS) {
        // The next block is prefetched along with the first queries, evenly.
        let mut ahead =
            Ahead { next: block.ahead.db.wrapping_add(row * block.tiles * TILE_COLS), lines: ROWS };
        let mut b = 0;
        while b < block.batch {
            // SAFETY: the rows from `row` and the queries from `b` exist; the lengths are checked above.
            unsafe {
                if P::QUERIES == 2 && b + 2 <= block.batch {
                    let products = P::products::<2>(&block, row, b, ahead);
                    add(&products, block.sums, block.batch, row, b);
                    b += 2;
                } else {
                    let products = P::products::<1>(&block, row, b, ahead);
                    add(&products, block.sums, block.batch, row, b);
                    b += 1;
                }
            }
            ahead.lines = 0;
        }
    }
}

/// Adds products of rows and queries to the sums of a panel.
fn add<const QUERIES: usize>(
    products: &[[u32; QUERIES]; ROWS],
    sums: &mut [i32],
    batch: usize,
    row: usize,
    b: usize,
) {
    for (i, products) in products.iter().enumerate() {
        for (j, &product) in products.iter().enumerate() {
            let slot = &mut sums[(row + i) * batch + b + j];
            *slot = slot.wrapping_add(product as i32);
        }
    }
}

/// Returns the four signed digits of a word, lowest first: `d[0] + 2^8 d[1] + 2^16 d[2] + 2^24 d[3]` is the word modulo 2^32.
fn digits(mut word: u32) -> [i8; LIMBS] {
    std::array::from_fn(|_| {
        let digit = word as i8;
        // The difference is a multiple of 2^8; the shift drops what exceeds 2^32.
        word = word.wrapping_sub(digit as u32) >> 8;
        digit
    })
}

/// Lays queries out as `[tile][query][digit][64 bytes]`, of [`digits`].
pub(super) fn prepare_digits(chunk: &QueryChunk<'_>, batch: usize, tiles: usize, out: &mut [u8]) {
    layout::prepare_flat(chunk, batch, tiles, out, |words, out| {
        for (column, &word) in words.iter().enumerate() {
            for (limb, digit) in digits(word).into_iter().enumerate() {
                out[limb * TILE_COLS + column] = digit as u8;
            }
        }
    });
}

/// Lays queries out as `[tile][query][pair of digits][8 columns at a time][digit of the pair][8 bytes]`, of [`digits`].
pub(super) fn prepare_digit_pairs(chunk: &QueryChunk<'_>, batch: usize, tiles: usize, out: &mut [u8]) {
    layout::prepare_flat(chunk, batch, tiles, out, |words, out| {
        for (column, &word) in words.iter().enumerate() {
            for (limb, digit) in digits(word).into_iter().enumerate() {
                let at = limb / 2 * 2 * TILE_COLS + column / 8 * 16 + limb % 2 * 8 + column % 8;
                out[at] = digit as u8;
            }
        }
    });
}

/// Defines a function that adds products of two vectors of bytes to four sums, by one instruction for which stable Rust has no
/// intrinsic.
macro_rules! products {
    ($(#[$doc:meta])* $name:ident, $extension:literal, $instruction:literal) => {
        $(#[$doc])*
        #[inline(always)]
        unsafe fn $name(mut sums: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
            // SAFETY: the caller has the instruction, which reads and writes these registers only.
            unsafe {
                asm!(
                    concat!(".arch_extension ", $extension),
                    concat!($instruction, " {sums:v}.4s, {a:v}.16b, {b:v}.16b"),
                    sums = inout(vreg) sums,
                    a = in(vreg) a,
                    b = in(vreg) b,
                    options(pure, nomem, nostack, preserves_flags)
                );
            }
            sums
        }
    };
}
pub(super) use products;
