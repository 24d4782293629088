//! The product of a chunk with AMX: at each slot, `tdpbuud` multiplies the bytes of the selectors (two polynomials a
//! query are up to 16 rows) by the bytes of 16 columns of the database, 16 rows of it at a time.
//!
//! The AMX intrinsics are not stable Rust, so the loop over a slot is assembly. No tile is live after it, only the
//! tile configuration is.

use std::arch::{asm, x86_64::*};

use hush_ops::{
    ntt_tiling::{GROUP_SLOTS, MAX_TILE_WIDTH},
    reference::rlwe_fold::RLWE_POLYS,
};

use super::{
    amx_selectors::{self, CLASSES, Scaler, TILE_ROWS},
    kernel::{BLOCK_WORDS, Group, MAX_BATCH, RlweFoldKernel},
    selectors,
    vectors::{self, LANES, Reducer},
};
use crate::tile_config::{TileConfig, release_tiles};

pub(super) const KERNEL: RlweFoldKernel =
    RlweFoldKernel { transpose: selectors::transpose_avx512, scratch_words, fold };

/// Bytes of a row of a tile.
const ROW_BYTES: usize = 4 * MAX_TILE_WIDTH;
/// How far ahead the database is prefetched into the L2 cache. (Measured.)
const AHEAD: usize = 24 << 10;

/// Sums of one class of bytes: `[query][poly][16 columns]`, 16 rows at most.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct ClassSums([u32; MAX_BATCH * RLWE_POLYS * MAX_TILE_WIDTH]);

/// A tile of the database, padded with zero rows.
#[repr(align(64))]
struct PaddedTile([u32; TILE_ROWS * MAX_TILE_WIDTH]);

/// # Safety
/// The CPU must have AMX, and this process the permission to use it.
unsafe fn begin(batch: usize) {
    let rows = batch * RLWE_POLYS;
    let config = TileConfig::new().with(0..4, rows, ROW_BYTES).with(4..5, TILE_ROWS, ROW_BYTES).with(
        5..8,
        rows,
        ROW_BYTES,
    );
    // SAFETY: as the caller says.
    unsafe { config.load() };
}

/// # Safety
/// The CPU must have AMX, and this process the permission to use it.
unsafe fn end() {
    // SAFETY: as the caller says; no tile is live.
    unsafe { release_tiles() };
}

/// Words of byte matrices that are made at once: they are to stay in the L2 cache while the database streams past.
const BLOCK_MATRIX_WORDS: usize = (1 << 20) / size_of::<u32>();

/// Slots whose byte matrices are made at once.
fn block_slots(rows: usize, batch: usize) -> usize {
    let most = (BLOCK_MATRIX_WORDS / amx_selectors::slot_words(rows, batch)).clamp(1, GROUP_SLOTS);
    // A power of two divides a group.
    1 << most.ilog2()
}

fn scratch_words(rows: usize, batch: usize) -> usize {
    block_slots(rows, batch) * amx_selectors::slot_words(rows, batch)
}

/// # Safety
/// The CPU must have AVX-512 F, BW and IFMA, and AMX, and this process the permission to use it.
#[target_feature(enable = "avx512f,avx512bw,avx512ifma")]
unsafe fn fold(group: Group<'_>) {
    group.check();
    let (rows, batch) = (group.rows, group.batch);
    assert!(group.tile_width == MAX_TILE_WIDTH && group.scratch.len() == scratch_words(rows, batch));
    // SAFETY: the CPU has AMX, says the caller.
    unsafe { begin(batch) };
    let scaler = Scaler::new(group.modulus);
    let reducer = Reducer::new(group.modulus);
    let (piece_words, tile_out_words) = (group.piece_words(), group.tile_out_words());
    let matrix_words = amx_selectors::slot_words(rows, batch);
    let block_slots = block_slots(rows, batch);
    let blocks = group.selectors.chunks_exact(block_slots * group.slot_words());
    for (block, selectors) in blocks.enumerate() {
        let matrices =
            selectors.chunks_exact(group.slot_words()).zip(group.scratch.chunks_exact_mut(matrix_words));
        for (selectors, matrix) in matrices {
            // SAFETY: the CPU has AVX-512 F, BW and IFMA.
            unsafe { amx_selectors::expand(selectors, rows, batch, &scaler, matrix) };
        }
        let tiles = group.db.chunks_exact(GROUP_SLOTS * piece_words);
        for (tile, out) in tiles.zip(group.out.chunks_exact_mut(tile_out_words)) {
            let first = block * block_slots;
            let pieces = tile[first * piece_words..].chunks_exact(piece_words);
            for (i, (db, matrix)) in pieces.zip(group.scratch.chunks_exact(matrix_words)).enumerate() {
                // SAFETY: the CPU has AVX-512 F, IFMA and AMX; the tiles are configured for the batch.
                unsafe { multiply_slot(db, matrix, batch, &reducer, first + i, out) };
            }
        }
    }
    // SAFETY: the CPU has AMX; no tile is live.
    unsafe { end() };
    let (blocks, _) = group.out.as_chunks_mut();
    for block in blocks {
        vectors::transpose_block(block);
    }
}

/// Multiplies a slot of a tile; the residues of polynomial number `index` of the batch go to row `slot` of block
/// `index` of `out`.
///
/// # Safety
/// The CPU must have AVX-512 F and IFMA, and AMX with the tiles configured by [`begin`] for `batch`; `matrix` is for
/// as many rows as the database has.
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn multiply_slot(
    db: &[u32],
    matrix: &[u32],
    batch: usize,
    reducer: &Reducer,
    slot: usize,
    out: &mut [u32],
) {
    let mut sums = [ClassSums([0; _]); CLASSES];
    let mut padded = PaddedTile([0; _]);
    let (tiles, rest) = db.as_chunks::<{ TILE_ROWS * MAX_TILE_WIDTH }>();
    padded.0[..rest.len()].copy_from_slice(rest);
    let last = match (tiles, rest) {
        ([.., last], []) => last,
        _ => &padded.0,
    };
    // SAFETY: the tiles are configured for the batch; the matrix has as many tiles as the database.
    unsafe { sum_slot(db, last, matrix, batch, &mut sums) };
    for (index, block) in out.chunks_exact_mut(BLOCK_WORDS).enumerate() {
        let residues = join_classes(&sums, index, reducer);
        let to = block[slot * MAX_TILE_WIDTH..][..MAX_TILE_WIDTH].as_mut_ptr();
        // SAFETY: 16 words from `to` on.
        unsafe { _mm512_storeu_si512(to.cast(), residues) };
    }
}

/// Multiplies the bytes of a slot of the database, `[row][16 columns]`, by those of the selectors, class by class.
/// `last` is the last tile of the slot, padded.
///
/// # Safety
/// The CPU must have AMX, with the tiles configured by [`begin`] for `batch`; `selectors` holds as many tiles of 16
/// rows as the database, of which there is at least one.
unsafe fn sum_slot(
    db: &[u32],
    last: &[u32; TILE_ROWS * MAX_TILE_WIDTH],
    selectors: &[u32],
    batch: usize,
    sums: &mut [ClassSums; CLASSES],
) {
    let tiles = db.len().div_ceil(last.len());
    debug_assert_eq!(selectors.len(), tiles * amx_selectors::tile_words(batch));
    let [first, second, third, fourth] = sums;
    // SAFETY: reads all tiles of `db` but the last, which it reads from `last`, and the tiles of `selectors`; writes
    // the sums of all four classes; a prefetch never faults.
    unsafe {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            "2:",
            ".irp line,0,64,128,192,256,320,384,448,512,576,640,704,768,832,896,960",
            "prefetcht1 [{db} + \\line + {ahead}]",
            ".endr",
            "cmp {tiles}, 1",
            "cmove {db}, {last}",
            "tileloadd tmm4, [{db} + {row}*1]",
            "tileloadd tmm5, [{selectors} + {row}*1]",
            "tdpbuud tmm0, tmm5, tmm4",
            "add {selectors}, {class}",
            "tileloadd tmm6, [{selectors} + {row}*1]",
            "tdpbuud tmm1, tmm6, tmm4",
            "add {selectors}, {class}",
            "tileloadd tmm7, [{selectors} + {row}*1]",
            "tdpbuud tmm2, tmm7, tmm4",
            "add {selectors}, {class}",
            "tileloadd tmm5, [{selectors} + {row}*1]",
            "tdpbuud tmm3, tmm5, tmm4",
            "add {selectors}, {class}",
            "add {db}, 1024",
            "dec {tiles}",
            "jnz 2b",
            "tilestored [{first} + {row}*1], tmm0",
            "tilestored [{second} + {row}*1], tmm1",
            "tilestored [{third} + {row}*1], tmm2",
            "tilestored [{fourth} + {row}*1], tmm3",
            db = inout(reg) db.as_ptr() => _,
            last = in(reg) last.as_ptr(),
            selectors = inout(reg) selectors.as_ptr() => _,
            class = in(reg) size_of::<u32>() * amx_selectors::tile_words(batch) / CLASSES,
            row = in(reg) ROW_BYTES,
            tiles = inout(reg) tiles => _,
            ahead = const AHEAD,
            first = in(reg) first,
            second = in(reg) second,
            third = in(reg) third,
            fourth = in(reg) fourth,
            options(nostack),
        );
    }
}

/// The residues of one polynomial, number `index`, from its sums of all classes.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn join_classes(sums: &[ClassSums; CLASSES], index: usize, reducer: &Reducer) -> __m512i {
    let classes = std::array::from_fn::<_, CLASSES, _>(|class| {
        let words = sums[class].0[index * LANES..][..LANES].as_ptr();
        // SAFETY: 16 words from there on.
        unsafe { _mm512_loadu_si512(words.cast()) }
    });
    // A sum is below 2^32 for up to 2^14 rows, hence the total below 2^57.
    let join = |words: [__m512i; CLASSES]| {
        let [first, rest @ ..] = words;
        let weigh = |sum, (class, words)| match class {
            0 => _mm512_add_epi64(sum, _mm512_slli_epi64::<8>(words)),
            1 => _mm512_add_epi64(sum, _mm512_slli_epi64::<16>(words)),
            _ => _mm512_add_epi64(sum, _mm512_slli_epi64::<24>(words)),
        };
        rest.into_iter().enumerate().fold(first, weigh)
    };
    let even = join(classes.map(|words| vectors::even_words(words)));
    let odd = join(classes.map(|words| vectors::odd_words(words)));
    vectors::interleave(reducer.reduce(even), reducer.reduce(odd))
}
