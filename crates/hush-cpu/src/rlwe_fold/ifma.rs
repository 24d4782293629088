//! The product of a chunk with AVX-512 IFMA: 8 columns in 64-bit lanes, the low 52 bits and the high bits of the
//! products summed apart.

use std::arch::x86_64::*;

use hush_math::modulus::Modulus;
use hush_ops::{
    ntt_tiling::{GROUP_SLOTS, TILE_COLUMNS},
    reference::rlwe_fold::RLWE_POLYS,
};

use super::{
    kernel::{BLOCK_WORDS, Chunk, RlweFoldKernel, begin_nothing, end_nothing},
    layout::GroupSelectors,
    vectors::{self, LANES, Reducer},
};

pub(super) const KERNEL: RlweFoldKernel =
    RlweFoldKernel { prepared_words, prepare, begin: begin_nothing, chunk: multiply, end: end_nothing };

/// Rows whose selectors are prepared together: two polynomials of each fill a vector.
const PREPARED_ROWS: usize = LANES / RLWE_POLYS;
/// Bytes of a cache line, which is a row of a slot.
const LINE: usize = 64;
/// How far ahead the database is prefetched into the L1 and into the L2 cache. (Measured.)
const AHEAD_L1: usize = 4096;
const AHEAD_L2: usize = 24 << 10;

fn query_words(rows: usize) -> usize {
    rows.next_multiple_of(PREPARED_ROWS) * RLWE_POLYS
}

fn prepared_words(rows: usize, batch: usize) -> usize {
    GROUP_SLOTS * batch * query_words(rows)
}

/// `[slot of the group][query][row][poly]`; rows are padded to 8.
///
/// # Safety
/// The CPU must have AVX-512 F.
#[target_feature(enable = "avx512f")]
unsafe fn prepare(selectors: &GroupSelectors<'_>, _modulus: &Modulus, out: &mut [u32]) {
    let batch = selectors.batch;
    assert_eq!(out.len(), prepared_words(selectors.rows, batch));
    let slot_words = batch * query_words(selectors.rows);
    for query in 0..batch {
        for row in (0..selectors.rows).step_by(PREPARED_ROWS) {
            let groups = std::array::from_fn(|i| {
                let slots = selectors.slots(query, row + i / RLWE_POLYS, i % RLWE_POLYS);
                // SAFETY: a group is one vector.
                unsafe { _mm512_loadu_si512(slots.as_ptr().cast()) }
            });
            let at = query * query_words(selectors.rows) + row * RLWE_POLYS;
            for (slot, words) in vectors::transpose(groups).into_iter().enumerate() {
                let to = out[slot * slot_words + at..][..LANES].as_mut_ptr();
                // SAFETY: one vector from `to` on.
                unsafe { _mm512_storeu_si512(to.cast(), words) };
            }
        }
    }
}

/// # Safety
/// The CPU must have AVX-512 F and IFMA.
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn multiply(chunk: Chunk<'_>) {
    let (rows, batch) = (chunk.rows, chunk.batch);
    assert!(
        chunk.db.len() == GROUP_SLOTS * rows * TILE_COLUMNS
            && chunk.prepared.len() == prepared_words(rows, batch)
            && chunk.out.len() == batch * RLWE_POLYS * BLOCK_WORDS
    );
    let reducer = SumReducer::new(chunk.modulus);
    let passes = batch.div_ceil(3);
    let pieces = chunk.db.chunks_exact(rows * TILE_COLUMNS);
    let selectors = chunk.prepared.chunks_exact(batch * query_words(rows));
    for (slot, (db, selectors)) in pieces.zip(selectors).enumerate() {
        let mut query = 0;
        for pass in 0..passes {
            let queries = (batch - query).div_ceil(passes - pass);
            let piece = Piece {
                db,
                selectors: &selectors[query * query_words(rows)..][..queries * query_words(rows)],
                prefetch: Prefetch::share(db, pass, passes),
            };
            let out = &mut chunk.out[query * RLWE_POLYS * BLOCK_WORDS..];
            // SAFETY: the CPU has AVX-512 F and IFMA; the lengths are those of as many queries.
            unsafe {
                match queries {
                    1 => multiply_slot::<1>(&piece, &reducer, slot, out),
                    2 => multiply_slot::<2>(&piece, &reducer, slot, out),
                    _ => multiply_slot::<3>(&piece, &reducer, slot, out),
                }
            }
            query += queries;
        }
    }
    let (blocks, _) = chunk.out.as_chunks_mut();
    for block in blocks {
        vectors::transpose_block(block);
    }
}

/// One slot of a chunk and the selectors that one pass multiplies it with.
struct Piece<'a> {
    /// `[row][16 columns]`.
    db: &'a [u32],
    /// `[query][row][poly]`, rows padded to 8.
    selectors: &'a [u32],
    prefetch: Prefetch,
}

/// The part of the database ahead that one pass prefetches, spread over its rows.
struct Prefetch {
    from: *const u8,
    row_bytes: usize,
}

impl Prefetch {
    /// Share `pass` of `passes`, as long as `db` all together.
    fn share(db: &[u32], pass: usize, passes: usize) -> Self {
        let start = size_of_val(db) / passes * pass;
        Self { from: db.as_ptr().cast::<u8>().wrapping_add(start), row_bytes: LINE / passes }
    }

    #[inline(always)]
    fn row(&self, row: usize) {
        let at = self.from.wrapping_add(row * self.row_bytes);
        // SAFETY: a prefetch never faults.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(AHEAD_L1).cast());
            _mm_prefetch::<_MM_HINT_T1>(at.wrapping_add(AHEAD_L2).cast());
        }
    }
}

/// Sums of 8 lanes, `low + 2^52 high`.
#[derive(Clone, Copy)]
struct Sums {
    low: __m512i,
    high: __m512i,
}

/// Multiplies a slot with `QUERIES` queries; the residues of query `q`, polynomial `poly` go to row `slot` of block
/// `2 q + poly` of `out`.
///
/// # Safety
/// The CPU must have AVX-512 F and IFMA; the piece has as many selectors as `QUERIES` times its rows, padded to 8.
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn multiply_slot<const QUERIES: usize>(
    piece: &Piece<'_>,
    reducer: &SumReducer,
    slot: usize,
    out: &mut [u32],
) {
    let rows = piece.db.len() / TILE_COLUMNS;
    debug_assert_eq!(piece.selectors.len(), QUERIES * query_words(rows));
    let none = Sums { low: _mm512_setzero_si512(), high: _mm512_setzero_si512() };
    // Even and odd columns of two polynomials a query.
    let mut acc = [[[none; 2]; RLWE_POLYS]; QUERIES];
    // The residues of both polynomials at once, 64 bits.
    let query_pairs = query_words(rows) / RLWE_POLYS;
    let pairs = piece.selectors.as_ptr().cast::<i64>();
    for row in 0..rows {
        piece.prefetch.row(row);
        // SAFETY: a row is one vector.
        let columns = unsafe { _mm512_loadu_si512(piece.db.as_ptr().add(row * TILE_COLUMNS).cast()) };
        let columns = [vectors::even_words(columns), vectors::odd_words(columns)];
        for (query, acc) in acc.iter_mut().enumerate() {
            // SAFETY: the residues of a row of the query; the buffer is aligned to cache lines.
            let pair = _mm512_set1_epi64(unsafe { *pairs.add(query * query_pairs + row) });
            let residues = [vectors::even_words(pair), vectors::odd_words(pair)];
            for (acc, residue) in acc.iter_mut().zip(residues) {
                for (acc, columns) in acc.iter_mut().zip(columns) {
                    acc.low = _mm512_madd52lo_epu64(acc.low, columns, residue);
                    acc.high = _mm512_madd52hi_epu64(acc.high, columns, residue);
                }
            }
        }
    }
    for (acc, block) in acc.as_flattened().iter().zip(out.chunks_exact_mut(BLOCK_WORDS)) {
        let [even, odd] = acc.map(|sums| reducer.reduce(sums));
        let to = block[slot * TILE_COLUMNS..][..TILE_COLUMNS].as_mut_ptr();
        // SAFETY: 16 words from `to` on.
        unsafe { _mm512_storeu_si512(to.cast(), vectors::interleave(even, odd)) };
    }
}

/// Reduces [`Sums`] modulo one prime p.
struct SumReducer {
    reducer: Reducer,
    /// 2^52 mod p.
    high_weight: __m512i,
}

impl SumReducer {
    #[target_feature(enable = "avx512f")]
    fn new(modulus: &Modulus) -> Self {
        let high_weight = modulus.reduce(1 << 52);
        Self { reducer: Reducer::new(modulus), high_weight: _mm512_set1_epi64(i64::from(high_weight)) }
    }

    /// For up to 1024 products: `low < 2^62`, `high < 2^22`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn reduce(&self, sums: Sums) -> __m512i {
        let high = _mm512_mul_epu32(sums.high, self.high_weight);
        self.reducer.reduce(_mm512_add_epi64(sums.low, high))
    }
}
