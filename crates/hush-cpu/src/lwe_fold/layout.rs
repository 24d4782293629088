//! The layouts of prepared queries and of partial sums. The code is portable: a query is a few hundred KiB and
//! is laid out once, while the block products run over the whole database.

use hush_ops::tiling::{PANEL_ROWS, TILE_COLS};

/// The number of byte limbs of a query word.
pub(super) const LIMBS: usize = 4;
/// The number of 32-bit lanes of an AVX-512 register, and of columns of an AMX tile.
pub(super) const LANES: usize = 16;
/// The number of queries whose limbs fill the lanes of one column vector.
pub(super) const VECTOR_QUERIES: usize = LANES / LIMBS;
/// The number of bytes of one column vector over the 64 columns of a tile.
pub(super) const VECTOR_TILE_BYTES: usize = TILE_COLS * LANES;

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
    fn tile(&self, b: usize, tile: usize) -> [u32; TILE_COLS] {
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

/// Lays queries out as `[tile][query][64 words]`.
pub(super) fn prepare_words(chunk: &QueryChunk<'_>, batch: usize, tiles: usize, out: &mut [u8]) {
    prepare_flat(chunk, batch, tiles, out, |words, out| {
        for (out, word) in out.chunks_exact_mut(4).zip(words) {
            out.copy_from_slice(&word.to_le_bytes());
        }
    });
}

/// Lays queries out as `[tile][query][16 columns at a time: 16 low halves, 16 high halves]`, where a word is
/// `low + 2^16 high` modulo 2^32 and both halves are signed.
pub(super) fn prepare_halves(chunk: &QueryChunk<'_>, batch: usize, tiles: usize, out: &mut [u8]) {
    prepare_flat(chunk, batch, tiles, out, |words, out| {
        for (out, words) in out.chunks_exact_mut(64).zip(words.chunks_exact(16)) {
            let (low, high) = out.split_at_mut(32);
            for (i, &word) in words.iter().enumerate() {
                let low_half = word as i16;
                let high_half = (word.wrapping_sub(low_half as u32) >> 16) as u16;
                low[2 * i..2 * i + 2].copy_from_slice(&low_half.to_le_bytes());
                high[2 * i..2 * i + 2].copy_from_slice(&high_half.to_le_bytes());
            }
        }
    });
}

/// Lays queries out as `[tile][query][limb][64 bytes]`.
pub(super) fn prepare_planes(chunk: &QueryChunk<'_>, batch: usize, tiles: usize, out: &mut [u8]) {
    prepare_flat(chunk, batch, tiles, out, |words, out| {
        for (limb, plane) in out.chunks_exact_mut(TILE_COLS).enumerate() {
            for (out, word) in plane.iter_mut().zip(words) {
                *out = (word >> (8 * limb)) as u8;
            }
        }
    });
}

fn prepare_flat(
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

/// Returns the number of column vectors of `batch` queries: 16 columns each, column `4 b + l` being limb `l` of query `b`.
pub(super) fn vectors(batch: usize) -> usize {
    batch.div_ceil(VECTOR_QUERIES)
}

/// Returns the number of columns of a vector that holds all of up to 4 queries, 4 columns a query. An AMX tile with fewer columns
/// costs less to load.
pub(super) fn narrow_lanes(batch: usize) -> usize {
    LIMBS * batch
}

/// Returns the bytes a tile of the whole column vectors of `batch` queries.
pub(super) fn vector_query_bytes(batch: usize) -> usize {
    vectors(batch) * VECTOR_TILE_BYTES
}

/// Returns the partial sums of a panel in whole column vectors: `[vector][32 rows][16 columns]`.
pub(super) fn vector_sum_words(batch: usize) -> usize {
    vectors(batch) * PANEL_ROWS * LANES
}

/// Lays queries out as `[pair of vectors][tile][vector of the pair][4 columns of the database][16 columns][4 bytes]`. A vector
/// without a partner stands alone at the end.
///
/// A pair of vectors over 8 tiles is 16 KiB, which the L1 cache holds beside a block of the database. The bytes of a vector and
/// tile are a B operand of AMX, and 16 operands of VNNI.
pub(super) fn prepare_vectors(chunk: &QueryChunk<'_>, batch: usize, tiles: usize, out: &mut [u8]) {
    debug_assert_eq!(out.len(), tiles * vector_query_bytes(batch));
    for vector in 0..vectors(batch) {
        let paired = vector / 2 * 2 + 1 < vectors(batch);
        for tile in 0..tiles {
            let start = vector / 2 * 2 * tiles + if paired { 2 * tile + vector % 2 } else { tile };
            let out = &mut out[start * VECTOR_TILE_BYTES..][..VECTOR_TILE_BYTES];
            interleave(chunk, vector * VECTOR_QUERIES, batch, tile, LANES, out);
        }
    }
}

/// Returns the bytes a tile of one narrow vector.
pub(super) fn narrow_query_bytes(batch: usize) -> usize {
    TILE_COLS * narrow_lanes(batch)
}

/// Returns the partial sums of a panel in one narrow vector: `[32 rows][4 columns a query]`.
pub(super) fn narrow_sum_words(batch: usize) -> usize {
    PANEL_ROWS * narrow_lanes(batch)
}

/// Lays queries out as `[tile][4 columns of the database][4 columns a query][4 bytes]`.
pub(super) fn prepare_narrow(chunk: &QueryChunk<'_>, batch: usize, tiles: usize, out: &mut [u8]) {
    debug_assert_eq!(out.len(), tiles * narrow_query_bytes(batch));
    for (tile, out) in out.chunks_exact_mut(narrow_query_bytes(batch)).enumerate() {
        interleave(chunk, 0, batch, tile, narrow_lanes(batch), out);
    }
}

/// Interleaves the queries from `first` on of one tile, up to `lanes` columns. Byte `k` of `(quad, column)` is the column's
/// limb of database column `4 quad + k`. Columns without a query are zero.
fn interleave(chunk: &QueryChunk<'_>, first: usize, batch: usize, tile: usize, lanes: usize, out: &mut [u8]) {
    for column in 0..lanes / LIMBS {
        let query = first + column;
        let words = if query < batch { chunk.tile(query, tile) } else { [0; TILE_COLS] };
        for (quad, words) in words.chunks_exact(4).enumerate() {
            let out = &mut out[(quad * lanes + column * LIMBS) * 4..][..4 * LIMBS];
            for limb in 0..LIMBS {
                for (k, word) in words.iter().enumerate() {
                    out[4 * limb + k] = (word >> (8 * limb)) as u8;
                }
            }
        }
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

/// Returns the partial sums of a panel in lanes, 16 for every row and query: `[query][32 rows][16 lanes]`.
pub(super) fn lane_sum_words(batch: usize) -> usize {
    batch * PANEL_ROWS * LANES
}

/// Adds up the 16 lanes of each sum.
pub(super) fn finish_lanes(sums: &[i32], batch: usize, out: &mut [u32]) {
    for (index, lanes) in sums.chunks_exact(LANES).enumerate() {
        let b = index / PANEL_ROWS;
        let row = index % PANEL_ROWS;
        out[row * batch + b] = lanes.iter().fold(0, |sum: u32, &lane| sum.wrapping_add(lane as u32));
    }
}

/// Joins the limbs of `[vector][32 rows][16 columns]`.
pub(super) fn finish_vectors(sums: &[i32], batch: usize, out: &mut [u32]) {
    for b in 0..batch {
        for row in 0..PANEL_ROWS {
            let at = (b / VECTOR_QUERIES * PANEL_ROWS + row) * LANES + b % VECTOR_QUERIES * LIMBS;
            out[row * batch + b] = join_limbs(&sums[at..at + LIMBS]);
        }
    }
}

/// Joins the limbs of `[32 rows][4 columns a query]`.
pub(super) fn finish_narrow(sums: &[i32], batch: usize, out: &mut [u32]) {
    for (out, limbs) in out.iter_mut().zip(sums[..PANEL_ROWS * narrow_lanes(batch)].chunks_exact(LIMBS)) {
        *out = join_limbs(limbs);
    }
}

fn join_limbs(limbs: &[i32]) -> u32 {
    limbs.iter().rev().fold(0, |word: u32, &limb| (word << 8).wrapping_add(limb as u32))
}
