//! The block products with AMX: `tdpbsud` multiplies 16 signed database rows by 16 unsigned query-limb columns,
//! 64 database columns at a time.
//!
//! The AMX intrinsics are not stable Rust, so the loops over a block are assembly. Every assembly block loads its
//! accumulators and stores them again: no tile is live between two of them, only the tile configuration is.

use std::arch::asm;

use hush_ops::tiling::{PANEL_ROWS, TILE_BYTES, TILE_COLS};

use super::{
    kernel::{Block, FoldKernel},
    layout::{self, LANES, VECTOR_TILE_BYTES},
};
use crate::tile_config::{
    TILE_REGISTER_ROW_BYTES as ROW_BYTES, TILE_REGISTER_ROWS, TileConfig, release_tiles,
};

/// For up to 4 queries: one column vector, as narrow as the batch, against both halves of the rows.
pub(super) const NARROW_KERNEL: FoldKernel = FoldKernel {
    query_bytes: layout::narrow_query_bytes,
    sum_words: layout::narrow_sum_words,
    prepare: layout::prepare_narrow,
    begin: begin_narrow,
    block: narrow_block,
    end,
    finish: layout::finish_narrow,
};

/// For more: pairs of column vectors against both halves of the rows.
pub(super) const WIDE_KERNEL: FoldKernel = FoldKernel {
    query_bytes: layout::vector_query_bytes,
    sum_words: layout::vector_sum_words,
    prepare: layout::prepare_vectors,
    begin: begin_wide,
    block: wide_block,
    end,
    finish: layout::finish_vectors,
};

/// Bytes of a cache line.
const LINE: usize = 64;

/// # Safety
/// The CPU must have AMX, and this process the permission to use it.
unsafe fn begin_narrow(batch: usize) {
    // SAFETY: as the caller says.
    unsafe { configure(4 * layout::narrow_lanes(batch)) };
}

/// # Safety
/// The CPU must have AMX, and this process the permission to use it.
unsafe fn begin_wide(_batch: usize) {
    // SAFETY: as the caller says.
    unsafe { configure(ROW_BYTES) };
}

/// Sets tiles 4 and 5 (database) up as 16 x 64 bytes, the others (sums, queries) as 16 x `row_bytes`.
///
/// # Safety
/// The CPU must have AMX, and this process the permission to use it.
unsafe fn configure(row_bytes: usize) {
    let config =
        TileConfig::new().with(0..8, TILE_REGISTER_ROWS, row_bytes).with(4..6, TILE_REGISTER_ROWS, ROW_BYTES);
    // SAFETY: as the caller says.
    unsafe { config.load() };
}

/// # Safety
/// The CPU must have AMX, and this process the permission to use it.
unsafe fn end() {
    // SAFETY: as the caller says; no tile is live.
    unsafe { release_tiles() };
}

/// # Safety
/// The CPU must have AMX; [`begin_narrow`] has been called on this thread for this batch.
unsafe fn narrow_block(block: Block<'_>) {
    assert!(
        block.tiles > 0
            && block.db.len() == block.tiles * TILE_BYTES
            && block.query.len() == block.tiles * layout::narrow_query_bytes(block.batch)
            && block.sums.len() == layout::narrow_sum_words(block.batch)
    );
    // SAFETY: the operands have the lengths that `one_vector` needs, and the tiles are configured for the batch.
    unsafe {
        one_vector(block.db, block.tiles, block.query, 4 * layout::narrow_lanes(block.batch), block.sums)
    };
}

/// # Safety
/// The CPU must have AMX; [`begin_wide`] has been called on this thread.
unsafe fn wide_block(block: Block<'_>) {
    let vectors = layout::vectors(block.batch);
    assert!(
        block.tiles > 0
            && block.db.len() == block.tiles * TILE_BYTES
            && block.query.len() == block.tiles * vectors * VECTOR_TILE_BYTES
            && block.sums.len() == vectors * PANEL_ROWS * LANES
    );
    let pairs = vectors.div_ceil(2);
    // Two blocks ahead, and the panel's share of the next chunk's queries: each spread over all steps.
    let mut ahead = Prefetch {
        db: block.ahead.db.wrapping_add(block.db.len()),
        db_lines: block.db.len().div_ceil(LINE * pairs * block.tiles),
        query_lines: block.query.len().div_ceil(LINE * pairs * block.tiles * block.ahead.panels),
        query: block.ahead.query,
    };
    let panel_lines = ahead.query_lines * pairs * block.tiles;
    ahead.query = ahead.query.wrapping_add(block.ahead.panel * panel_lines * LINE);
    for first in (0..vectors).step_by(2) {
        let query = &block.query[first * block.tiles * VECTOR_TILE_BYTES..];
        let sums = &mut block.sums[first * PANEL_ROWS * LANES..];
        if first + 1 < vectors {
            // SAFETY: two vectors of queries and of sums follow, and the tiles are configured.
            unsafe { two_vectors(block.db, block.tiles, query, sums, &mut ahead) };
        } else {
            // SAFETY: one vector of queries and of sums follows, and the tiles are configured.
            unsafe { one_vector(block.db, block.tiles, query, ROW_BYTES, sums) };
        }
    }
}

/// Adds the products of a block with one column vector, 32 x `row_bytes / 4` words, to `sums`.
///
/// The block is read in order; tile `k` prefetches tile `k + 4`, which is worth it at the speed of memory.
///
/// # Safety
/// The CPU must have AMX, with tiles 0, 1 and 6 configured as 16 x `row_bytes` and 4 and 5 as 16 x 64. `tiles` > 0,
/// and `db`, `query` and `sums` hold `tiles` tiles, `tiles * 16 * row_bytes` bytes and `8 * row_bytes` words.
unsafe fn one_vector(db: &[u8], tiles: usize, query: &[u8], row_bytes: usize, sums: &mut [i32]) {
    const AHEAD: usize = 4 * TILE_BYTES;
    let half = TILE_REGISTER_ROWS * row_bytes;
    // SAFETY: reads `tiles` tiles of `db` and of `query`, reads and writes two tiles of `sums`, which the caller
    // says are there; a prefetch never faults.
    unsafe {
        asm!(
            "tileloadd tmm0, [{sums} + {row}*1]",
            "tileloadd tmm1, [{high} + {row}*1]",
            "2:",
            "xor {line:e}, {line:e}",
            "3:",
            "prefetcht0 [{db} + {line} + {ahead}]",
            "add {line}, 64",
            "cmp {line}, 2048",
            "jne 3b",
            "tileloadd tmm6, [{query} + {row}*1]",
            "tileloadd tmm4, [{db} + {db_row}*1]",
            "tdpbsud tmm0, tmm4, tmm6",
            "tileloadd tmm5, [{db} + {db_row}*1 + 1024]",
            "tdpbsud tmm1, tmm5, tmm6",
            "add {db}, 2048",
            "add {query}, {half}",
            "dec {tiles}",
            "jnz 2b",
            "tilestored [{sums} + {row}*1], tmm0",
            "tilestored [{high} + {row}*1], tmm1",
            sums = in(reg) sums.as_mut_ptr(),
            high = in(reg) sums.as_mut_ptr().byte_add(half),
            row = in(reg) row_bytes,
            db = inout(reg) db.as_ptr() => _,
            db_row = in(reg) TILE_COLS,
            query = inout(reg) query.as_ptr() => _,
            half = in(reg) half,
            tiles = inout(reg) tiles => _,
            line = out(reg) _,
            ahead = const AHEAD,
            options(nostack),
        );
    }
}

/// What [`two_vectors`] prefetches into the L2 cache; it moves the pointers on.
struct Prefetch {
    db: *const u8,
    /// Lines of the database a tile.
    db_lines: usize,
    query: *const u8,
    /// Lines of the queries a tile.
    query_lines: usize,
}

/// Adds the products of a block with a pair of column vectors, 2 x 32 x 16 words, to `sums`.
///
/// # Safety
/// The CPU must have AMX, with all tiles configured as 16 x 64 bytes. `tiles` > 0, and `db`, `query` and `sums`
/// hold `tiles` tiles, `tiles` tiles of two vectors and 1024 words.
unsafe fn two_vectors(db: &[u8], tiles: usize, query: &[u8], sums: &mut [i32], ahead: &mut Prefetch) {
    // SAFETY: reads `tiles` tiles of `db` and of `query`, reads and writes four tiles of `sums`, which the caller
    // says are there; a prefetch never faults.
    unsafe {
        asm!(
            "tileloadd tmm0, [{sums} + {row}*1]",
            "tileloadd tmm1, [{sums} + {row}*1 + 1024]",
            "tileloadd tmm2, [{sums} + {row}*1 + 2048]",
            "tileloadd tmm3, [{sums} + {row}*1 + 3072]",
            "2:",
            "mov {count}, {db_lines}",
            "3:",
            "prefetcht1 [{next_db}]",
            "add {next_db}, 64",
            "dec {count}",
            "jnz 3b",
            "mov {count}, {query_lines}",
            "4:",
            "prefetcht1 [{next_query}]",
            "add {next_query}, 64",
            "dec {count}",
            "jnz 4b",
            "tileloadd tmm4, [{db} + {row}*1]",
            "tileloadd tmm6, [{query} + {row}*1]",
            "tdpbsud tmm0, tmm4, tmm6",
            "tileloadd tmm7, [{query} + {row}*1 + 1024]",
            "tdpbsud tmm2, tmm4, tmm7",
            "tileloadd tmm5, [{db} + {row}*1 + 1024]",
            "tdpbsud tmm1, tmm5, tmm6",
            "tdpbsud tmm3, tmm5, tmm7",
            "add {db}, 2048",
            "add {query}, 2048",
            "dec {tiles}",
            "jnz 2b",
            "tilestored [{sums} + {row}*1], tmm0",
            "tilestored [{sums} + {row}*1 + 1024], tmm1",
            "tilestored [{sums} + {row}*1 + 2048], tmm2",
            "tilestored [{sums} + {row}*1 + 3072], tmm3",
            sums = in(reg) sums.as_mut_ptr(),
            row = in(reg) ROW_BYTES,
            db = inout(reg) db.as_ptr() => _,
            query = inout(reg) query.as_ptr() => _,
            tiles = inout(reg) tiles => _,
            next_db = inout(reg) ahead.db,
            db_lines = in(reg) ahead.db_lines,
            next_query = inout(reg) ahead.query,
            query_lines = in(reg) ahead.query_lines,
            count = out(reg) _,
            options(nostack),
        );
    }
}

/// Four products of whole tiles an iteration, 16 x 16 x 64 multiply-adds each, to measure the peak.
///
/// # Safety
/// The CPU must have AMX, and this process the permission to use it.
pub(crate) unsafe fn repeat_tdpbsud(iterations: u64) {
    // SAFETY: the CPU has AMX, says the caller; the tiles are zero after their configuration.
    unsafe {
        configure(ROW_BYTES);
        asm!(
            "2:",
            "tdpbsud tmm0, tmm4, tmm6",
            "tdpbsud tmm1, tmm5, tmm6",
            "tdpbsud tmm2, tmm4, tmm7",
            "tdpbsud tmm3, tmm5, tmm7",
            "dec {n}",
            "jnz 2b",
            n = inout(reg) iterations => _,
            options(nomem, nostack),
        );
        end();
    }
}
