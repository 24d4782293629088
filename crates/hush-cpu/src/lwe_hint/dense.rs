//! The hint as a fold whose queries are the columns of A.

use std::ops::Range;

use hush_he::entities::PublicMatrix;
use hush_ops::tiling::{CHUNK_TILES, GROUP_ROWS, TILE_COLS, TiledDb};
use rayon::prelude::*;

use crate::{
    Cpu,
    lwe_fold::{MAX_BATCH, QueryChunk, QuerySource, split_rows},
};

/// The number of database columns of a chunk.
const CHUNK_COLS: usize = CHUNK_TILES * TILE_COLS;

/// Computes `db[rows] * A`, row-major, for `rows` of whole groups. Expands A once (`4 * cols * n` bytes) and multiplies by
/// 64 columns at a time, so one call for many rows is cheaper than several.
pub(super) fn lwe_hint(cpu: &Cpu, db: &TiledDb, a: &PublicMatrix, rows: Range<usize>) -> Vec<u32> {
    let tiling = db.tiling();
    let n = a.n();
    let mut out = vec![0; rows.len() * n];
    if out.is_empty() || a.cols() == 0 {
        return out;
    }
    let columns = cpu.install(|| MatrixColumns::expand(a));
    let groups = rows.start / GROUP_ROWS..rows.end.div_ceil(GROUP_ROWS);
    for first in (0..n).step_by(MAX_BATCH) {
        let source = columns.select(first, MAX_BATCH.min(n - first));
        let mut rest = out.as_mut_slice();
        let items = split_rows(tiling, groups.clone(), cpu.threads()).into_iter().map(|item| {
            let (dest, tail) = std::mem::take(&mut rest).split_at_mut(item.rows(tiling).len() * n);
            rest = tail;
            item.with_dest(dest)
        });
        cpu.fold_items(db, &source, items.collect(), |dest, row, words| {
            for (i, words) in words.chunks_exact(source.batch()).enumerate() {
                dest[(row + i) * n + first..][..words.len()].copy_from_slice(words);
            }
        });
    }
    out
}

/// A in column order within each chunk: `[chunk][column of A][512 rows of A]`, the last chunk short.
struct MatrixColumns {
    words: Vec<u32>,
    cols: usize,
    n: usize,
}

impl MatrixColumns {
    fn expand(a: &PublicMatrix) -> Self {
        let cols = a.cols();
        let n = a.n();
        let mut words = vec![0; cols * n];
        words.par_chunks_mut(CHUNK_COLS * n).enumerate().for_each(|(chunk, out)| {
            let width = out.len() / n;
            let mut row = vec![0; n];
            for c in 0..width {
                a.row_into(chunk * CHUNK_COLS + c, &mut row);
                for (i, &word) in row.iter().enumerate() {
                    out[i * width + c] = word;
                }
            }
        });
        Self { words, cols, n }
    }

    /// Returns columns `first..first + count` of A as queries.
    fn select(&self, first: usize, count: usize) -> SelectedColumns<'_> {
        SelectedColumns { columns: self, first, count }
    }
}

struct SelectedColumns<'a> {
    columns: &'a MatrixColumns,
    first: usize,
    count: usize,
}

impl QuerySource for SelectedColumns<'_> {
    fn batch(&self) -> usize {
        self.count
    }

    fn chunk(&self, chunk: usize) -> QueryChunk<'_> {
        let start = chunk * CHUNK_COLS;
        let width = CHUNK_COLS.min(self.columns.cols - start);
        let words = &self.columns.words[start * self.columns.n + self.first * width..];
        QueryChunk { words, stride: width, cols: width }
    }
}
