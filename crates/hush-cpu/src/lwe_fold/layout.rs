//! The layouts of prepared queries and of partial sums. The code is portable: a query is a few hundred KiB and
//! is laid out once, while the block products run over the whole database.

use hush_ops::tiling::{PANEL_ROWS, TILE_COLS};

/// The number of byte limbs of a query word.
pub(super) const LIMBS: usize = 4;

/// The query words of up to 512 database columns.
pub(crate) struct QueryChunk<'a> {
    /// Word `b * stride + c` is column `c` of the chunk, query `b`.
    pub(crate) words: &'a [u32],
    /// The distance in words between queries.
    pub(crate) stride: usize,
    /// The number of columns of the chunk, without padding.
    pub(crate) cols: usize,
}

impl QueryChunk<'_> {
    /// Returns the 64 words of query `b` for tile `tile`, padded with zeros.
    pub(super) fn tile(&self, b: usize, tile: usize) -> [u32; TILE_COLS] {
        let start = tile * TILE_COLS;
        let run = TILE_COLS.min(self.cols - start);
        let mut words = [0; TILE_COLS];
        words[..run].copy_from_slice(&self.words[b * self.stride + start..][..run]);
        words
    }
}

/// Returns the bytes a tile of flat layouts: 256 for every query.
pub(super) fn flat_query_bytes(batch: usize) -> usize {
    batch * TILE_COLS * LIMBS
}

/// Lays queries out as `[tile][query][half][64 columns]`, where a word is `low + 2^16 high` modulo 2^32 and both halves are signed.
pub(super) fn prepare_halves(chunk: &QueryChunk<'_>, batch: usize, tiles: usize, out: &mut [u8]) {
    prepare_flat(chunk, batch, tiles, out, |words, out| {
        let (low, high) = out.split_at_mut(2 * TILE_COLS);
        for (i, &word) in words.iter().enumerate() {
            let low_half = word as i16;
            let high_half = (word.wrapping_sub(low_half as u32) >> 16) as u16;
            low[2 * i..2 * i + 2].copy_from_slice(&low_half.to_le_bytes());
            high[2 * i..2 * i + 2].copy_from_slice(&high_half.to_le_bytes());
        }
    });
}

/// Returns the low and the high halves of a query in a tile, as [`prepare_halves`] lays them out.
pub(super) fn read_halves(query: &[u8]) -> [[i16; TILE_COLS]; 2] {
    let (halves, _) = query.as_chunks::<2>();
    [0, TILE_COLS].map(|first| std::array::from_fn(|column| i16::from_le_bytes(halves[first + column])))
}

pub(super) fn prepare_flat(
    chunk: &QueryChunk<'_>,
    batch: usize,
    tiles: usize,
    out: &mut [u8],
    lay_out: impl Fn(&[u32; TILE_COLS], &mut [u8]),
) {
    debug_assert_eq!(out.len(), tiles * flat_query_bytes(batch));
    for (index, out) in out.chunks_exact_mut(flat_query_bytes(1)).enumerate() {
        lay_out(&chunk.tile(index % batch, index / batch), out);
    }
}

/// Returns the partial sums of a panel that are words: one for every row and query.
pub(super) fn word_sum_words(batch: usize) -> usize {
    PANEL_ROWS * batch
}

/// Copies partial sums that are words.
pub(super) fn finish_words(sums: &[i32], batch: usize, out: &mut [u32]) {
    for (out, &sum) in out.iter_mut().zip(&sums[..PANEL_ROWS * batch]) {
        *out = sum as u32;
    }
}

/// Joins the sums of the limbs, or signed digits, of a word: the lowest first.
pub(super) fn join_limbs(limbs: &[i32]) -> u32 {
    limbs.iter().rev().fold(0, |word: u32, &limb| (word << 8).wrapping_add(limb as u32))
}
