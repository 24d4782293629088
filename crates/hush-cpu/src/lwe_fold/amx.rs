//! The block products with AMX: `tdpbsud` multiplies 16 signed database rows by 16 unsigned query-limb columns,
//! 64 database columns at a time.
//!
//! ```text
//! load the sums of 2 row halves x 1 or 2 column vectors
//! for every tile of the block:
//!     prefetch a share of the next block and of the next queries
//!     sums[half][vector] += db[half] . query[vector]               (tdpbsud, tiles of 16 x 64 bytes)
//! store the sums
//! ```
//!
//! The AMX intrinsics are not stable Rust, so the loops over a block are assembly. Every assembly block loads its
//! accumulators and stores them again: between two of them no tile is live, only the tile configuration.
#![cfg(target_arch = "x86_64")]

use std::arch::asm;

use hush_ops::tiling::{PANEL_ROWS, TILE_BYTES, TILE_COLS};

use super::{
    kernel::{Block, FoldKernel},
    pages::LINE,
    vectors::{self, LANES, VECTOR_TILE_BYTES},
};
use crate::tile_config::{
    TILE_REGISTER_ROW_BYTES as ROW_BYTES, TILE_REGISTER_ROWS, TileConfig, release_tiles,
};

/// The kernel for 2 to 4 queries: one column vector, as narrow as the batch, against both halves of the rows.
pub(super) const NARROW_KERNEL: FoldKernel = FoldKernel {
    query_bytes: vectors::narrow_query_bytes,
    sum_words: vectors::narrow_sum_words,
    prepare: vectors::prepare_narrow,
    begin: begin_narrow,
    block: narrow_block,
    end,
    finish: vectors::finish_narrow,
};

/// The kernel for more queries: pairs of column vectors against both halves of the rows.
pub(super) const WIDE_KERNEL: FoldKernel = FoldKernel {
    query_bytes: vectors::vector_query_bytes,
    sum_words: vectors::vector_sum_words,
    prepare: vectors::prepare_vectors,
    begin: begin_wide,
    block: wide_block,
    end,
    finish: vectors::finish_vectors,
};

/// # Safety
/// The CPU must have AMX, and this process the permission to use it.
unsafe fn begin_narrow(batch: usize) {
    // SAFETY: the caller promises AMX and the permission.
    unsafe { configure(4 * vectors::narrow_lanes(batch)) };
}

/// # Safety
/// The CPU must have AMX, and this process the permission to use it.
unsafe fn begin_wide(_batch: usize) {
    // SAFETY: the caller promises AMX and the permission.
    unsafe { configure(ROW_BYTES) };
}

/// Configures tiles 4 and 5 (database) as 16 x 64 bytes, and the others (sums, queries) as 16 x `row_bytes`.
///
/// # Safety
/// The CPU must have AMX, and this process the permission to use it.
unsafe fn configure(row_bytes: usize) {
    let config =
        TileConfig::new().with(0..8, TILE_REGISTER_ROWS, row_bytes).with(4..6, TILE_REGISTER_ROWS, ROW_BYTES);
    // SAFETY: the caller promises AMX and the permission.
    unsafe { config.load() };
}

/// # Safety
/// The CPU must have AMX, and this process the permission to use it.
unsafe fn end() {
    // SAFETY: the caller promises AMX and the permission; no tile is live.
    unsafe { release_tiles() };
}

/// # Safety
/// The CPU must have AMX; [`begin_narrow`] has been called on this thread for this batch.
unsafe fn narrow_block(block: Block<'_>) {
    assert!(
        block.tiles > 0
            && block.db.len() == block.tiles * TILE_BYTES
            && block.query.len() == block.tiles * vectors::narrow_query_bytes(block.batch)
            && block.sums.len() == vectors::narrow_sum_words(block.batch)
    );
    let row_bytes = 4 * vectors::narrow_lanes(block.batch);
    let mut ahead = Prefetch::of(&block, 1);
    // SAFETY: the operands have the lengths that `one_vector` needs, and the tiles are configured for the batch.
    unsafe { one_vector(block.db, block.tiles, block.query, row_bytes, block.sums, &mut ahead) };
}

/// # Safety
/// The CPU must have AMX; [`begin_wide`] has been called on this thread.
unsafe fn wide_block(block: Block<'_>) {
    let vectors = vectors::vectors(block.batch);
    assert!(
        block.tiles > 0
            && block.db.len() == block.tiles * TILE_BYTES
            && block.query.len() == block.tiles * vectors * VECTOR_TILE_BYTES
            && block.sums.len() == vectors * PANEL_ROWS * LANES
    );
    let pairs = vectors.div_ceil(2);
    let mut ahead = Prefetch::of(&block, pairs);
    for first in (0..vectors).step_by(2) {
        let query = &block.query[first * block.tiles * VECTOR_TILE_BYTES..];
        let sums = &mut block.sums[first * PANEL_ROWS * LANES..];
        if first + 1 < vectors {
            // SAFETY: two vectors of queries and of sums follow, and the tiles are configured.
            unsafe { two_vectors(block.db, block.tiles, query, sums, &mut ahead) };
        } else {
            // SAFETY: one vector of queries and of sums follows, and the tiles are configured.
            unsafe { one_vector(block.db, block.tiles, query, ROW_BYTES, sums, &mut ahead) };
        }
    }
}

/// The prefetches into the L2 cache while a block is multiplied: a share with every tile, after which the pointers move on.
///
/// The next block is fetched by lines of each quarter in turn. A quarter of a whole block is a page (4 KiB). The hardware follows
/// a few pages at a time, but only one run of lines in each. A single run holds no more than the fill buffers of a core, 9 GB/s,
/// and does not overlap with the arithmetic. (Emerald Rapids, B = 16, share of stream: 0.64; 0.46 one line after another, 0.47
/// in halves. B = 2: 0.81 instead of 0.70. The distance, and prefetching into L1, change nothing.)
struct Prefetch {
    /// The address of the next step's first line in the first quarter.
    db: *const u8,
    /// The number of bytes of a quarter.
    quarter: usize,
    /// The number of lines of every quarter a step.
    db_lines: usize,
    /// The queries of the next chunk; every panel of a run fetches a share.
    query: *const u8,
    /// The number of lines of queries a step.
    query_lines: usize,
}

impl Prefetch {
    /// Creates the prefetches for a block that is multiplied in `passes` passes over its tiles.
    fn of(block: &Block<'_>, passes: usize) -> Self {
        const QUARTERS: usize = 4;
        let steps = passes * block.tiles;
        let query_lines = block.query.len().div_ceil(LINE * steps * block.ahead.panels);
        Self {
            db: block.ahead.db,
            quarter: block.db.len() / QUARTERS,
            db_lines: block.db.len().div_ceil(QUARTERS * LINE * steps),
            query: block.ahead.query.wrapping_add(block.ahead.panel * query_lines * steps * LINE),
            query_lines,
        }
    }
}

/// Returns the prefetches of one step as assembly. Names are those of [`Prefetch`]; `count` and `third` are overwritten.
macro_rules! prefetch_step {
    () => {
        concat!(
            "mov {count}, {db_lines}\n",
            "3:\n",
            "lea {third}, [{next_db} + {quarter}*2]\n",
            "prefetcht1 [{next_db}]\n",
            "prefetcht1 [{next_db} + {quarter}]\n",
            "prefetcht1 [{third}]\n",
            "prefetcht1 [{third} + {quarter}]\n",
            "add {next_db}, 64\n",
            "dec {count}\n",
            "jnz 3b\n",
            "mov {count}, {query_lines}\n",
            "4:\n",
            "prefetcht1 [{next_query}]\n",
            "add {next_query}, 64\n",
            "dec {count}\n",
            "jnz 4b\n",
        )
    };
}

/// Adds the products of a block with one column vector, 32 x `row_bytes / 4` words, to `sums`.
///
/// # Safety
/// The CPU must have AMX, with tiles 0, 1 and 6 configured as 16 x `row_bytes` and 4 and 5 as 16 x 64. `tiles` > 0,
/// and `db`, `query` and `sums` hold `tiles` tiles, `tiles * 16 * row_bytes` bytes and `8 * row_bytes` words.
unsafe fn one_vector(
    db: &[u8],
    tiles: usize,
    query: &[u8],
    row_bytes: usize,
    sums: &mut [i32],
    ahead: &mut Prefetch,
) {
    let half = TILE_REGISTER_ROWS * row_bytes;
    let sums = sums.as_mut_ptr();
    // SAFETY: reads `tiles` tiles of `db` and of `query`, reads and writes two tiles of `sums`, which the caller
    // promises to be there; a prefetch never faults.
    unsafe {
        asm!(
            "tileloadd tmm0, [{sums} + {row}*1]",
            "add {sums}, {half}",
            "tileloadd tmm1, [{sums} + {row}*1]",
            "2:",
            prefetch_step!(),
            "mov {count:e}, {db_row}",
            "tileloadd tmm6, [{query} + {row}*1]",
            "tileloadd tmm4, [{db} + {count}*1]",
            "tdpbsud tmm0, tmm4, tmm6",
            "tileloadd tmm5, [{db} + {count}*1 + 1024]",
            "tdpbsud tmm1, tmm5, tmm6",
            "add {db}, 2048",
            "add {query}, {half}",
            "dec {tiles}",
            "jnz 2b",
            "tilestored [{sums} + {row}*1], tmm1",
            "sub {sums}, {half}",
            "tilestored [{sums} + {row}*1], tmm0",
            sums = inout(reg) sums => _,
            row = in(reg) row_bytes,
            db = inout(reg) db.as_ptr() => _,
            query = inout(reg) query.as_ptr() => _,
            half = in(reg) half,
            db_row = const TILE_COLS,
            tiles = inout(reg) tiles => _,
            next_db = inout(reg) ahead.db,
            quarter = in(reg) ahead.quarter,
            db_lines = in(reg) ahead.db_lines,
            next_query = inout(reg) ahead.query,
            query_lines = in(reg) ahead.query_lines,
            count = out(reg) _,
            third = out(reg) _,
            options(nostack),
        );
    }
}

/// Adds the products of a block with a pair of column vectors, 2 x 32 x 16 words, to `sums`.
///
/// # Safety
/// The CPU must have AMX, with all tiles configured as 16 x 64 bytes. `tiles` > 0, and `db`, `query` and `sums`
/// hold `tiles` tiles, `tiles` tiles of two vectors and 1024 words.
unsafe fn two_vectors(db: &[u8], tiles: usize, query: &[u8], sums: &mut [i32], ahead: &mut Prefetch) {
    // SAFETY: reads `tiles` tiles of `db` and of `query`, reads and writes four tiles of `sums`, which the caller
    // promises to be there; a prefetch never faults.
    unsafe {
        asm!(
            "tileloadd tmm0, [{sums} + {row}*1]",
            "tileloadd tmm1, [{sums} + {row}*1 + 1024]",
            "tileloadd tmm2, [{sums} + {row}*1 + 2048]",
            "tileloadd tmm3, [{sums} + {row}*1 + 3072]",
            "2:",
            prefetch_step!(),
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
            quarter = in(reg) ahead.quarter,
            db_lines = in(reg) ahead.db_lines,
            next_query = inout(reg) ahead.query,
            query_lines = in(reg) ahead.query_lines,
            count = out(reg) _,
            third = out(reg) _,
            options(nostack),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{features::Cores, lwe_fold::kernel::Ahead};

    #[test]
    fn all_of_the_next_block_is_prefetched_and_all_queries_by_the_panels() {
        for (tiles, passes, panels) in [(1, 1, 1), (8, 1, 3), (5, 2, 32), (8, 3, 7), (8, 8, 32)] {
            let db = vec![0; tiles * TILE_BYTES];
            let query = vec![0; tiles * 2 * passes * VECTOR_TILE_BYTES];
            let panel = |panel| {
                let ahead =
                    Ahead { db: db.as_ptr(), cores: Cores::Intel, query: query.as_ptr(), panel, panels };
                Prefetch::of(&Block { db: &db, tiles, query: &query, batch: 1, sums: &mut [], ahead }, passes)
            };
            let steps = passes * tiles;
            let first = panel(0);
            assert_eq!(first.quarter * 4, db.len());
            assert!((first.quarter..first.quarter + steps * LINE).contains(&(first.db_lines * steps * LINE)));
            let share = first.query_lines * steps * LINE;
            assert!(share * panels >= query.len());
            for index in 0..panels {
                assert_eq!(panel(index).query, query.as_ptr().wrapping_add(index * share));
            }
        }
    }
}
