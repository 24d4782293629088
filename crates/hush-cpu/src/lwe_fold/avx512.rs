//! The block products with AVX-512 VNNI: `vpdpbusd` multiplies unsigned query limbs by signed database bytes.
#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::*;

use hush_ops::tiling::{PANEL_ROWS, TILE_BYTES, TILE_COLS};

use super::{
    kernel::{Ahead, Block, FoldKernel, begin_nothing, end_nothing},
    layout::{self, LIMBS},
    pages::{LINE, PAGE_TILES, PageAhead},
    vectors::{self, LANES, VECTOR_TILE_BYTES},
};

/// The kernel for few queries: a dot product for every row, the columns in the lanes.
///
/// ```text
/// for every query, row:  acc[limb] = sum over tiles of limbs[limb] . db[row]         (vpdpbusd)
///                        sums[query][row] += acc[0] + 2^8 acc[1] + 2^16 acc[2] + 2^24 acc[3]
/// ```
pub(super) const DOT_KERNEL: FoldKernel = FoldKernel {
    query_bytes: layout::flat_query_bytes,
    sum_words: vectors::lane_sum_words,
    prepare: vectors::prepare_planes,
    begin: begin_nothing,
    block: dot_block,
    end: end_nothing,
    finish: vectors::finish_lanes,
};

/// The kernel for many queries: outer products, the limbs of 4 queries in the lanes.
///
/// ```text
/// for every tile, 4 columns, row, vector:  acc[row][vector] += limbs[vector] . splat(db[row])      (vpdpbusd)
/// ```
pub(super) const OUTER_KERNEL: FoldKernel = FoldKernel {
    query_bytes: vectors::vector_query_bytes,
    sum_words: vectors::vector_sum_words,
    prepare: vectors::prepare_vectors,
    begin: begin_nothing,
    block: outer_block,
    end: end_nothing,
    finish: vectors::finish_vectors,
};

/// # Safety
/// The CPU must have AVX-512 F, BW and VNNI.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn dot_block(block: Block<'_>) {
    let query_tile = layout::flat_query_bytes(block.batch);
    assert!(
        block.db.len() == block.tiles * TILE_BYTES
            && block.query.len() == block.tiles * query_tile
            && block.sums.len() == vectors::lane_sum_words(block.batch)
    );
    for first in (0..block.tiles).step_by(PAGE_TILES) {
        let db = &block.db[first * TILE_BYTES..];
        let query = &block.query[first * query_tile..];
        let ahead = block.page_ahead(first);
        // SAFETY: one or two tiles of the database and of the queries follow, and all sums of the panel.
        unsafe {
            if first + 1 < block.tiles {
                dot_tiles::<PAGE_TILES>(db, query, block.batch, block.sums, ahead);
            } else {
                dot_tiles::<1>(db, query, block.batch, block.sums, ahead);
            }
        }
    }
}

/// Adds the dot products of `TILES` tiles with all queries to `sums`, row after row, and prefetches a part of `ahead` with every
/// query. Fetched all at once, `ahead` would not overlap with the arithmetic of the other queries.
///
/// # Safety
/// The CPU must have AVX-512 F, BW and VNNI; `db` and `query` hold `TILES` tiles, and `sums` those of a panel.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn dot_tiles<const TILES: usize>(
    db: &[u8],
    query: &[u8],
    batch: usize,
    sums: &mut [i32],
    ahead: PageAhead,
) {
    for b in 0..batch {
        let mut ahead = ahead.part(b, batch);
        let ahead_lines = ahead.lines_in(PANEL_ROWS);
        let mut limbs = [[_mm512_setzero_si512(); LIMBS]; TILES];
        for (tile, limbs) in limbs.iter_mut().enumerate() {
            for (limb, vector) in limbs.iter_mut().enumerate() {
                // SAFETY: the caller promises that `query` holds the 64 bytes of (tile, query, limb).
                *vector = unsafe { load(query, ((tile * batch + b) * LIMBS + limb) * TILE_COLS) };
            }
        }
        for row in 0..PANEL_ROWS {
            ahead.fetch(ahead_lines);
            let mut acc = [_mm512_setzero_si512(); LIMBS];
            for (tile, limbs) in limbs.iter().enumerate() {
                // SAFETY: the caller promises that `db` holds the 64 bytes of the row of the tile.
                let db = unsafe { load(db, tile * TILE_BYTES + row * TILE_COLS) };
                for limb in 0..LIMBS {
                    acc[limb] = _mm512_dpbusd_epi32(acc[limb], limbs[limb], db);
                }
            }
            let low = _mm512_add_epi32(acc[0], _mm512_slli_epi32::<8>(acc[1]));
            let high = _mm512_add_epi32(acc[2], _mm512_slli_epi32::<8>(acc[3]));
            let sum = _mm512_add_epi32(low, _mm512_slli_epi32::<16>(high));
            let at = (b * PANEL_ROWS + row) * LANES;
            // SAFETY: the caller promises that `sums` holds the 16 sums of (query, row).
            unsafe { store_sums(sums, at, _mm512_add_epi32(load_sums(sums, at), sum)) };
        }
    }
}

/// # Safety
/// The CPU must have AVX-512 F, BW and VNNI.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn outer_block(block: Block<'_>) {
    let vectors = vectors::vectors(block.batch);
    assert!(
        block.db.len() == block.tiles * TILE_BYTES
            && block.query.len() == block.tiles * vectors * VECTOR_TILE_BYTES
            && block.sums.len() == vectors * PANEL_ROWS * LANES
    );
    let pages = block.tiles.div_ceil(PAGE_TILES);
    let query_lines = block.query.len().div_ceil(LINE * pages * block.ahead.panels);
    for first in (0..block.tiles).step_by(PAGE_TILES) {
        prefetch_queries(&block.ahead, block.ahead.panel * pages + first / PAGE_TILES, query_lines);
        let db = &block.db[first * TILE_BYTES..];
        let page_ahead = block.page_ahead(first);
        for vector in (0..vectors).step_by(2) {
            let query = &block.query[vector * block.tiles * VECTOR_TILE_BYTES..];
            let sums = &mut block.sums[vector * PANEL_ROWS * LANES..];
            let ahead = page_ahead.part(vector / 2, vectors.div_ceil(2));
            // 8 rows x 2 vectors, or 16 rows x 1: 16 accumulators hide the latency of the product.
            // SAFETY: one or two tiles of two vectors, or of the last one, and their sums follow.
            unsafe {
                match (vector + 1 < vectors, first + 1 < block.tiles) {
                    (true, true) => outer_tiles::<8, 2, PAGE_TILES>(db, first, query, sums, ahead),
                    (true, false) => outer_tiles::<8, 2, 1>(db, first, query, sums, ahead),
                    (false, true) => outer_tiles::<16, 1, PAGE_TILES>(db, first, query, sums, ahead),
                    (false, false) => outer_tiles::<16, 1, 1>(db, first, query, sums, ahead),
                }
            }
        }
    }
}

/// Prefetches share number `share`, of `lines` lines, of the next chunk's queries into the L2 cache.
#[target_feature(enable = "avx512f")]
fn prefetch_queries(ahead: &Ahead, share: usize, lines: usize) {
    for line in share * lines..(share + 1) * lines {
        _mm_prefetch::<_MM_HINT_T1>(ahead.query.wrapping_add(line * LINE).cast());
    }
}

/// Adds the products of 32 rows of `TILES` tiles, `ROWS` rows at a time, with `VECTORS` column vectors to `sums`, and
/// prefetches `ahead`. `db` begins with these tiles; `query` begins with tile 0 of the block, and its tiles from `first` are used.
///
/// # Safety
/// The CPU must have AVX-512 F, BW and VNNI; `db`, `query` and `sums` hold at least `TILES` tiles, `first + TILES`
/// tiles of `VECTORS` vectors, and the sums of `VECTORS` vectors.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn outer_tiles<const ROWS: usize, const VECTORS: usize, const TILES: usize>(
    db: &[u8],
    first: usize,
    query: &[u8],
    sums: &mut [i32],
    mut ahead: PageAhead,
) {
    let ahead_lines = ahead.lines_in(PANEL_ROWS / ROWS * TILES);
    for row in (0..PANEL_ROWS).step_by(ROWS) {
        let sums_at = |vector: usize, i: usize| (vector * PANEL_ROWS + row + i) * LANES;
        let mut acc = [[_mm512_setzero_si512(); VECTORS]; ROWS];
        for i in 0..ROWS {
            for vector in 0..VECTORS {
                // SAFETY: the caller promises that `sums` holds the 16 sums of (vector, row).
                acc[i][vector] = unsafe { load_sums(sums, sums_at(vector, i)) };
            }
        }
        for tile in 0..TILES {
            ahead.fetch(ahead_lines);
            for quad in 0..TILE_COLS / 4 {
                let mut limbs = [_mm512_setzero_si512(); VECTORS];
                for (vector, limbs) in limbs.iter_mut().enumerate() {
                    let at = ((first + tile) * VECTORS + vector) * VECTOR_TILE_BYTES + quad * LINE;
                    // SAFETY: the caller promises that `query` holds the 64 bytes of (tile, vector, quad).
                    *limbs = unsafe { load(query, at) };
                }
                for i in 0..ROWS {
                    let at = tile * TILE_BYTES + (row + i) * TILE_COLS + 4 * quad;
                    // SAFETY: the caller promises that `db` holds the 4 bytes of row `row + i` < 32 of the tile.
                    let bytes = unsafe { db.as_ptr().add(at).cast::<i32>().read_unaligned() };
                    let db = _mm512_set1_epi32(bytes);
                    for vector in 0..VECTORS {
                        acc[i][vector] = _mm512_dpbusd_epi32(acc[i][vector], limbs[vector], db);
                    }
                }
            }
        }
        for i in 0..ROWS {
            for vector in 0..VECTORS {
                // SAFETY: the caller promises that `sums` holds the 16 sums of (vector, row).
                unsafe { store_sums(sums, sums_at(vector, i), acc[i][vector]) };
            }
        }
    }
}

/// # Safety
/// `bytes` has 64 bytes at `at`.
#[target_feature(enable = "avx512f")]
unsafe fn load(bytes: &[u8], at: usize) -> __m512i {
    debug_assert!(at + LINE <= bytes.len());
    // SAFETY: the caller promises that it is within the slice.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().add(at).cast()) }
}

/// # Safety
/// `sums` has 16 words at `at`.
#[target_feature(enable = "avx512f")]
unsafe fn load_sums(sums: &[i32], at: usize) -> __m512i {
    debug_assert!(at + LANES <= sums.len());
    // SAFETY: the caller promises that it is within the slice.
    unsafe { _mm512_loadu_si512(sums.as_ptr().add(at).cast()) }
}

/// # Safety
/// `sums` has 16 words at `at`.
#[target_feature(enable = "avx512f")]
unsafe fn store_sums(sums: &mut [i32], at: usize, words: __m512i) {
    debug_assert!(at + LANES <= sums.len());
    // SAFETY: the caller promises that it is within the slice.
    unsafe { _mm512_storeu_si512(sums.as_mut_ptr().add(at).cast(), words) };
}
