//! The product of a chunk with AMX. At each slot, `tdpbuud` multiplies the bytes of the selectors by the bytes of 16 columns of
//! the database, 16 rows of the database at a time. Two polynomials a query are up to 16 rows of selectors.
//!
//! ```text
//! for every slot:  expand its selectors to byte matrices of four classes
//!                  for every tile of 16 rows, class j:  sums[j] += matrix[j] . db
//!                  residue = sums[0] + 2^8 sums[1] + 2^16 sums[2] + 2^24 sums[3] mod p
//! ```
//!
//! The AMX intrinsics are not stable Rust, so the loop over a slot is assembly. After it no tile is live, only the
//! tile configuration.
#![cfg(target_arch = "x86_64")]

use std::arch::{asm, x86_64::*};

use hush_ops::{
    contract::RLWE_POLYS,
    ntt_tiling::{GROUP_SLOTS, MAX_TILE_WIDTH},
};

use super::{
    amx_selectors::{self, CLASSES, Scaler, TILE_ROWS},
    avx512_selectors,
    kernel::{BLOCK_WORDS, Group, MAX_BATCH, RlweFoldKernel},
    vectors::{self, LANES, Reducer},
};
use crate::tile_config::{TileConfig, release_tiles};

pub(super) const KERNEL: RlweFoldKernel =
    RlweFoldKernel { transpose: avx512_selectors::transpose, scratch_words, fold };

/// The number of words of a tile of the database.
const DB_TILE_WORDS: usize = TILE_ROWS * MAX_TILE_WIDTH;
/// The number of bytes of a row of a tile.
const ROW_BYTES: usize = 4 * MAX_TILE_WIDTH;
/// The number of bytes that the database is prefetched ahead, into the L2 cache. Four pages are fetched at once, those after the
/// multiplied four: with every tile a few lines of each, in turn, as in `lwe_fold` (see its `amx.rs` for the reason).
const AHEAD: usize = 4 * PAGE;
/// The number of bytes of a page of memory.
const PAGE: usize = 4096;

/// The sums of one class of bytes: `[query][poly][16 columns]`, 16 rows at most.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct ClassSums([u32; MAX_BATCH * RLWE_POLYS * MAX_TILE_WIDTH]);

impl ClassSums {
    const ZERO: Self = Self([0; _]);
}

/// A tile of the database, padded with zero rows.
#[repr(align(64))]
struct PaddedTile([u32; DB_TILE_WORDS]);

/// # Safety
/// The CPU must have AMX, and this process the permission to use it.
unsafe fn begin(batch: usize) {
    let rows = batch * RLWE_POLYS;
    let config = TileConfig::new().with(0..4, rows, ROW_BYTES).with(4..5, TILE_ROWS, ROW_BYTES).with(
        5..8,
        rows,
        ROW_BYTES,
    );
    // SAFETY: the caller promises AMX and the permission.
    unsafe { config.load() };
}

/// # Safety
/// The CPU must have AMX, and this process the permission to use it.
unsafe fn end() {
    // SAFETY: the caller promises AMX and the permission; no tile is live.
    unsafe { release_tiles() };
}

/// The number of words of the byte matrix of one slot that are made at once for few tiles of columns: they stay in
/// the L1 cache. (Measured.)
const FEW_MATRIX_WORDS: usize = (32 << 10) / size_of::<u32>();
/// The number of words of the byte matrices of whole slots that are made at once for many tiles: they stay in the L2 cache while
/// the database streams past.
const MANY_MATRIX_WORDS: usize = (1 << 20) / size_of::<u32>();
/// The largest number of tiles that counts as few.
const FEW_TILES: usize = 4;

/// Returns the words of the byte matrix of one slot.
fn matrix_words(rows: usize, batch: usize) -> usize {
    rows.div_ceil(TILE_ROWS) * amx_selectors::tile_words(batch)
}

/// Returns the number of slots whose whole byte matrices are made at once.
fn block_slots(rows: usize, batch: usize) -> usize {
    let most = (MANY_MATRIX_WORDS / matrix_words(rows, batch)).clamp(1, GROUP_SLOTS);
    // A power of two divides a group.
    1 << most.ilog2()
}

fn scratch_words(rows: usize, batch: usize) -> usize {
    block_slots(rows, batch) * matrix_words(rows, batch)
}

/// # Safety
/// The CPU must have AVX-512 F, BW and IFMA, and AMX, and this process the permission to use it.
#[target_feature(enable = "avx512f,avx512bw,avx512ifma")]
unsafe fn fold(group: Group<'_>) {
    group.check();
    assert_eq!(group.tile_width, MAX_TILE_WIDTH);
    let tiles = group.db.len() / (GROUP_SLOTS * group.piece_words());
    // SAFETY: the caller promises that the CPU has all this.
    unsafe {
        begin(group.batch);
        if tiles <= FEW_TILES {
            fold_few_tiles(group)
        } else {
            fold_many_tiles(group)
        }
        end();
    }
}

/// Folds a group of few tiles: reads the selectors of every slot once, a few rows at a time, for all tiles.
///
/// # Safety
/// The conditions of [`fold`] must hold; the tiles are configured by [`begin`] for the batch.
#[target_feature(enable = "avx512f,avx512bw,avx512ifma")]
unsafe fn fold_few_tiles(group: Group<'_>) {
    let batch = group.batch;
    let piece_words = group.piece_words();
    let slot_words = group.slot_words();
    let tile_out_words = group.tile_out_words();
    let scaler = Scaler::new(group.modulus);
    let reducer = Reducer::new(group.modulus);
    let row_tiles = group.rows.div_ceil(TILE_ROWS);
    let step = (FEW_MATRIX_WORDS / amx_selectors::tile_words(batch)).max(1);
    for (slot, selectors) in group.selectors.chunks_exact(slot_words).enumerate() {
        let mut sums = [[ClassSums::ZERO; CLASSES]; FEW_TILES];
        for first in (0..row_tiles).step_by(step) {
            let rows = first..row_tiles.min(first + step);
            let matrix = &mut group.scratch[..rows.len() * amx_selectors::tile_words(batch)];
            // SAFETY: the CPU has AVX-512 F, BW and IFMA.
            unsafe { amx_selectors::expand(selectors, rows.clone(), batch, &scaler, matrix) };
            let words = first * DB_TILE_WORDS..piece_words.min(rows.end * DB_TILE_WORDS);
            for (tile, sums) in group.db.chunks_exact(GROUP_SLOTS * piece_words).zip(&mut sums) {
                let db = &tile[slot * piece_words..][..piece_words][words.clone()];
                // SAFETY: the CPU has AMX, whose tiles are configured; the matrix is for as many rows.
                unsafe { add_products(db, matrix, batch, sums) };
            }
        }
        for (out, sums) in group.out.chunks_exact_mut(tile_out_words).zip(&sums) {
            // SAFETY: the CPU has AVX-512 F and IFMA.
            unsafe { write_residues(sums, &reducer, slot, out) };
        }
    }
    transpose_blocks(group.out);
}

/// Folds a group of many tiles: reads the tiles one after another, some slots at a time.
///
/// # Safety
/// The conditions of [`fold_few_tiles`] must hold.
#[target_feature(enable = "avx512f,avx512bw,avx512ifma")]
unsafe fn fold_many_tiles(group: Group<'_>) {
    let rows = group.rows;
    let batch = group.batch;
    let piece_words = group.piece_words();
    let slot_words = group.slot_words();
    let tile_out_words = group.tile_out_words();
    let scaler = Scaler::new(group.modulus);
    let reducer = Reducer::new(group.modulus);
    let matrix_words = matrix_words(rows, batch);
    let block_slots = block_slots(rows, batch);
    for (block, selectors) in group.selectors.chunks_exact(block_slots * slot_words).enumerate() {
        let matrices = selectors.chunks_exact(slot_words).zip(group.scratch.chunks_exact_mut(matrix_words));
        for (selectors, matrix) in matrices {
            // SAFETY: the CPU has AVX-512 F, BW and IFMA.
            unsafe { amx_selectors::expand(selectors, 0..rows.div_ceil(TILE_ROWS), batch, &scaler, matrix) };
        }
        let tiles = group.db.chunks_exact(GROUP_SLOTS * piece_words);
        for (tile, out) in tiles.zip(group.out.chunks_exact_mut(tile_out_words)) {
            let first = block * block_slots;
            let pieces = tile[first * piece_words..].chunks_exact(piece_words);
            for (i, (db, matrix)) in pieces.zip(group.scratch.chunks_exact(matrix_words)).enumerate() {
                let mut sums = [ClassSums::ZERO; CLASSES];
                // SAFETY: the CPU has AVX-512 F and IFMA, and AMX, whose tiles are configured; the matrix is for as
                // many rows.
                unsafe {
                    add_products(db, matrix, batch, &mut sums);
                    write_residues(&sums, &reducer, first + i, out);
                }
            }
        }
    }
    transpose_blocks(group.out);
}

#[target_feature(enable = "avx512f")]
fn transpose_blocks(out: &mut [u32]) {
    let (blocks, _) = out.as_chunks_mut();
    for block in blocks {
        vectors::transpose_block(block);
    }
}

/// Adds the products of some rows of a slot of a tile, `[row][16 columns]`, with their byte matrix.
///
/// # Safety
/// The CPU must have AMX, with the tiles configured by [`begin`] for `batch`; `matrix` is for as many rows, padded to
/// 16, and at least one.
unsafe fn add_products(db: &[u32], matrix: &[u32], batch: usize, sums: &mut [ClassSums; CLASSES]) {
    let (tiles, rest) = db.as_chunks::<DB_TILE_WORDS>();
    let mut padded = PaddedTile([0; _]);
    let last = match (tiles, rest) {
        ([.., last], []) => last,
        _ => {
            padded.0[..rest.len()].copy_from_slice(rest);
            &padded.0
        }
    };
    // SAFETY: the tiles are configured for the batch; the matrix has as many tiles as the database.
    unsafe { add_tiles(db, last, matrix, batch, sums) };
}

/// Writes the residues of polynomial number `index` of the batch to row `slot` of block `index` of `out`.
///
/// # Safety
/// The CPU must have AVX-512 F and IFMA.
#[target_feature(enable = "avx512f,avx512ifma")]
unsafe fn write_residues(sums: &[ClassSums; CLASSES], reducer: &Reducer, slot: usize, out: &mut [u32]) {
    for (index, block) in out.chunks_exact_mut(BLOCK_WORDS).enumerate() {
        let residues = join_classes(sums, index, reducer);
        let to = block[slot * MAX_TILE_WIDTH..][..MAX_TILE_WIDTH].as_mut_ptr();
        // SAFETY: 16 words from `to` on.
        unsafe { _mm512_storeu_si512(to.cast(), residues) };
    }
}

/// Adds the products of the bytes of the database, `[row][16 columns]`, with those of the matrix, class by class.
/// `last` is the last tile of the database, padded.
///
/// # Safety
/// The CPU must have AMX, with the tiles configured by [`begin`] for `batch`; `matrix` holds as many tiles of 16
/// rows as the database, of which there is at least one.
unsafe fn add_tiles(
    db: &[u32],
    last: &[u32; DB_TILE_WORDS],
    matrix: &[u32],
    batch: usize,
    sums: &mut [ClassSums; CLASSES],
) {
    let tiles = db.len().div_ceil(last.len());
    debug_assert_eq!(matrix.len(), tiles * amx_selectors::tile_words(batch));
    let [first, second, third, fourth] = sums;
    // SAFETY: reads all tiles of `db` but the last, which it reads from `last`, and the tiles of `matrix`; updates
    // the sums of all four classes; a prefetch never faults.
    unsafe {
        asm!(
            "tileloadd tmm0, [{first} + {row}*1]",
            "tileloadd tmm1, [{second} + {row}*1]",
            "tileloadd tmm2, [{third} + {row}*1]",
            "tileloadd tmm3, [{fourth} + {row}*1]",
            "2:",
            // Tile k of four pages, 0 to 15, stands for the lines from 4 k on of the next four.
            "mov {back}, {db}",
            "and {back:e}, {tiles_mask}",
            "shr {back:e}, 2",
            "lea {back}, [{back} + {back}*2]",
            "mov {next}, {db}",
            "sub {next}, {back}",
            ".irp line,0,64,128,192",
            "prefetcht1 [{next} + \\line + {ahead}]",
            "prefetcht1 [{next} + \\line + {ahead} + {page}]",
            "prefetcht1 [{next} + \\line + {ahead} + 2*{page}]",
            "prefetcht1 [{next} + \\line + {ahead} + 3*{page}]",
            ".endr",
            "cmp {tiles}, 1",
            "cmove {db}, {last}",
            "tileloadd tmm4, [{db} + {row}*1]",
            "tileloadd tmm5, [{matrix} + {row}*1]",
            "tdpbuud tmm0, tmm5, tmm4",
            "add {matrix}, {class}",
            "tileloadd tmm6, [{matrix} + {row}*1]",
            "tdpbuud tmm1, tmm6, tmm4",
            "add {matrix}, {class}",
            "tileloadd tmm7, [{matrix} + {row}*1]",
            "tdpbuud tmm2, tmm7, tmm4",
            "add {matrix}, {class}",
            "tileloadd tmm5, [{matrix} + {row}*1]",
            "tdpbuud tmm3, tmm5, tmm4",
            "add {matrix}, {class}",
            "add {db}, 1024",
            "dec {tiles}",
            "jnz 2b",
            "tilestored [{first} + {row}*1], tmm0",
            "tilestored [{second} + {row}*1], tmm1",
            "tilestored [{third} + {row}*1], tmm2",
            "tilestored [{fourth} + {row}*1], tmm3",
            db = inout(reg) db.as_ptr() => _,
            last = in(reg) last.as_ptr(),
            matrix = inout(reg) matrix.as_ptr() => _,
            class = in(reg) size_of::<u32>() * amx_selectors::tile_words(batch) / CLASSES,
            row = in(reg) ROW_BYTES,
            tiles = inout(reg) tiles => _,
            ahead = const AHEAD,
            page = const PAGE,
            tiles_mask = const AHEAD - size_of::<PaddedTile>(),
            back = out(reg) _,
            next = out(reg) _,
            first = in(reg) first,
            second = in(reg) second,
            third = in(reg) third,
            fourth = in(reg) fourth,
            options(nostack),
        );
    }
}

/// Computes the residues of polynomial number `index` from its sums of all classes.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn join_classes(sums: &[ClassSums; CLASSES], index: usize, reducer: &Reducer) -> __m512i {
    let classes = std::array::from_fn::<_, CLASSES, _>(|class| {
        let words = sums[class].0[index * LANES..][..LANES].as_ptr();
        // SAFETY: 16 words follow from there on.
        unsafe { _mm512_loadu_si512(words.cast()) }
    });
    // A sum is below 2^32 for up to 2^14 rows, hence the total below 2^57.
    let join = |words: [__m512i; CLASSES]| {
        let [first, rest @ ..] = words;
        rest.into_iter().enumerate().fold(first, |sum, (class, words)| match class {
            0 => _mm512_add_epi64(sum, _mm512_slli_epi64::<8>(words)),
            1 => _mm512_add_epi64(sum, _mm512_slli_epi64::<16>(words)),
            _ => _mm512_add_epi64(sum, _mm512_slli_epi64::<24>(words)),
        })
    };
    let even = join(classes.map(|words| vectors::even_words(words)));
    let odd = join(classes.map(|words| vectors::odd_words(words)));
    vectors::interleave(reducer.reduce(even), reducer.reduce(odd))
}
