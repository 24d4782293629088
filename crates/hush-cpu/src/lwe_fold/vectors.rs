//! The layouts of queries and partial sums for the registers of AVX-512 and the tiles of AMX.
#![cfg(target_arch = "x86_64")]

use hush_ops::tiling::{PANEL_ROWS, TILE_COLS};

use super::layout::{LIMBS, QueryChunk, join_limbs, prepare_flat};

/// The number of 32-bit lanes of an AVX-512 register, and of columns of an AMX tile.
pub(super) const LANES: usize = 16;
/// The number of queries whose limbs fill the lanes of one column vector.
pub(super) const VECTOR_QUERIES: usize = LANES / LIMBS;
/// The number of bytes of one column vector over the 64 columns of a tile.
pub(super) const VECTOR_TILE_BYTES: usize = TILE_COLS * LANES;

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
