//! Step (1), the fold of the first dimension: reads the database once, whatever the batch.
//!
//! ```text
//! for every unit (a run of panels of one row group), in parallel:
//!     for every chunk of 512 columns, for every panel of the run:
//!         sums[panel] += block (32 rows x 512 columns) * chunk of the queries
//!     words = finish(sums)
//! ```
//!
//! Every level does the same walk. The database streams, and the chunk of the queries (up to 128 KiB) stays in cache. Levels
//! differ only in the layouts of queries and partial sums, and in the block product.

use std::{ops::Range, sync::OnceLock};

use hush_ops::{
    contract::{LweBatch, LweQueries},
    tiling::{CHUNK_TILES, GROUP_PANELS, PANEL_ROWS, TILE_BYTES, TILE_COLS, TiledDb, Tiling},
};
use rayon::prelude::*;

use crate::{
    Cpu,
    buffer::AlignedBuffer,
    features::{Cores, Level},
    kernels::by_level,
    workspace::Workspace,
};

mod amx;
mod avx2;
mod avx512;
mod dotprod;
mod i8mm;
mod kernel;
mod layout;
mod neon;
mod pages;
mod portable;
mod rows;
mod single;
mod vectors;

pub(crate) use layout::QueryChunk;
pub(crate) use single::choose_single;

use kernel::FoldKernel;

/// The kernels of one level.
pub(crate) struct FoldKernels {
    /// The kernels by batch, ascending: the most queries that a kernel is best for, and the kernel.
    by_batch: &'static [(usize, FoldKernel)],
    /// The candidates for one query with their levels, that of `by_batch` first. Which one is the fastest depends on the
    /// cores ([`single`]).
    singles: &'static [(Level, FoldKernel)],
    /// The index in `singles` of the chosen kernel.
    single: OnceLock<usize>,
    cores: Cores,
}

impl FoldKernels {
    /// Returns the kernels of `level` on `cores`. Running them is unsafe on a machine without that level.
    ///
    /// Dot products of rows waste nothing on few queries; outer products load each byte of the database once for more.
    /// The batch from which outer products are faster is measured: see docs/explanation/notes/speed.md.
    pub(crate) fn of(level: Level, cores: Cores) -> Self {
        let by_batch: &[_] = by_level!(level, {
            portable: &[(MAX_BATCH, portable::KERNEL)],
            x86: {
                Level::Avx2 => &[(MAX_BATCH, avx2::KERNEL)],
                Level::Avx512 | Level::Avx512Ifma => match cores {
                    Cores::Intel => &[(2, avx512::DOT_KERNEL), (MAX_BATCH, avx512::OUTER_KERNEL)],
                    Cores::Amd => &[(8, avx512::DOT_KERNEL), (MAX_BATCH, avx512::OUTER_KERNEL)],
                },
                Level::Amx => &[(1, avx512::DOT_KERNEL), (4, amx::NARROW_KERNEL), (MAX_BATCH, amx::WIDE_KERNEL)],
            },
            arm: {
                Level::Neon => &[(MAX_BATCH, neon::KERNEL)],
                Level::Dotprod => &[(MAX_BATCH, dotprod::KERNEL)],
                Level::I8mm => &[(MAX_BATCH, i8mm::KERNEL)],
            }
        });
        let singles: &[_] = by_level!(level, {
            portable: &[],
            x86: {
                Level::Avx2 => &[],
                Level::Avx512 | Level::Avx512Ifma | Level::Amx => {
                    &[(Level::Avx512, avx512::DOT_KERNEL), (Level::Avx2, avx2::KERNEL)]
                }
            },
            arm: { Level::Neon | Level::Dotprod | Level::I8mm => &[] }
        });
        Self { by_batch, singles, single: OnceLock::new(), cores }
    }

    /// Returns the level of the kernel for one query, if there are several candidates and one has been chosen.
    pub(crate) fn single_level(&self) -> Option<Level> {
        Some(self.singles[*self.single.get()?].0)
    }

    /// Returns the kernel for a pass of `batch` queries, at most [`MAX_BATCH`].
    fn for_batch(&self, batch: usize) -> &FoldKernel {
        if batch == 1
            && let Some(&chosen) = self.single.get()
        {
            return &self.singles[chosen].1;
        }
        let best = self.by_batch.iter().find(|(most, _)| batch <= *most);
        &best.expect("the last one is for all").1
    }
}

/// The largest number of queries of one pass over the database.
pub(crate) const MAX_BATCH: usize = 64;

/// The queries of one pass, chunk by chunk.
pub(crate) trait QuerySource: Sync {
    /// Returns the number of queries.
    fn batch(&self) -> usize;

    /// Returns the words of database columns `chunk * 512 ..`.
    fn chunk(&self, chunk: usize) -> QueryChunk<'_>;
}

/// A query source whose queries lie one after another.
struct QueryRows<'a> {
    /// The number of words of one query.
    cols: usize,
    /// All words, query after query; at least one query.
    words: &'a [u32],
}

impl QuerySource for QueryRows<'_> {
    fn batch(&self) -> usize {
        self.words.len() / self.cols
    }

    fn chunk(&self, chunk: usize) -> QueryChunk<'_> {
        let start = chunk * CHUNK_TILES * TILE_COLS;
        let cols = (self.cols - start).min(CHUNK_TILES * TILE_COLS);
        QueryChunk { words: &self.words[start..], stride: self.cols, cols }
    }
}

/// A unit of work: some panels of one group, and the destination of their rows.
pub(crate) struct Item<D> {
    group: usize,
    panels: Range<usize>,
    dest: D,
}

/// Splits `groups` into units for `threads` threads, in row order. Units are whole groups if there are many, else runs of
/// panels, so that a small table keeps all threads busy too.
pub(crate) fn split_rows(tiling: Tiling, groups: Range<usize>, threads: usize) -> Vec<Item<()>> {
    const UNITS_PER_THREAD: usize = 4;
    let pieces = (UNITS_PER_THREAD * threads).div_ceil(groups.len().max(1)).min(GROUP_PANELS);
    let mut items = Vec::with_capacity(groups.len() * pieces);
    for group in groups {
        let panels = tiling.group_panels(group);
        let run = panels.div_ceil(pieces);
        for start in (0..panels).step_by(run) {
            items.push(Item { group, panels: start..panels.min(start + run), dest: () });
        }
    }
    items
}

impl<D> Item<D> {
    /// Returns the database rows of this unit, without padding.
    pub(crate) fn rows(&self, tiling: Tiling) -> Range<usize> {
        let row = |panel: usize| ((self.group * GROUP_PANELS + panel) * PANEL_ROWS).min(tiling.rows());
        row(self.panels.start)..row(self.panels.end)
    }

    /// Gives the unit a destination for its rows.
    pub(crate) fn with_dest<E>(self, dest: E) -> Item<E> {
        Item { group: self.group, panels: self.panels, dest }
    }
}

/// Computes `db * query[b] mod 2^32` for every query.
pub(crate) fn lwe_fold(cpu: &Cpu, db: &TiledDb, queries: &LweQueries) -> LweBatch {
    let rows = db.tiling().rows();
    let mut words = vec![0; queries.batch() * rows];
    add_fold(cpu, db, queries, &mut words);
    LweBatch { rows, words: words.into() }
}

/// Computes `out[b] += db * query[b] mod 2^32` in passes of up to 64 queries. `out` is query after query.
pub(crate) fn add_fold(cpu: &Cpu, db: &TiledDb, queries: &LweQueries, out: &mut [u32]) {
    let rows = db.tiling().rows();
    let cols = queries.cols;
    if !out.is_empty() {
        let passes = queries.words.chunks(MAX_BATCH * cols).zip(out.chunks_mut(MAX_BATCH * rows));
        for (query_words, out) in passes {
            fold_pass(cpu, db, &QueryRows { cols, words: query_words }, out);
        }
    }
}

/// Runs one pass over the whole database and adds the results to `out`, query after query.
fn fold_pass(cpu: &Cpu, db: &TiledDb, source: &QueryRows<'_>, out: &mut [u32]) {
    let tiling = db.tiling();
    // The rest of each query's words; the units are in row order.
    let mut rests: Vec<&mut [u32]> = out.chunks_exact_mut(tiling.rows()).collect();
    let items = split_rows(tiling, 0..tiling.groups(), cpu.threads()).into_iter().map(|item| {
        let count = item.rows(tiling).len();
        let dest: Vec<&mut [u32]> = rests
            .iter_mut()
            .map(|rest| {
                let (dest, tail) = std::mem::take(rest).split_at_mut(count);
                *rest = tail;
                dest
            })
            .collect();
        item.with_dest(dest)
    });
    let items = items.collect();
    cpu.fold_items(db, source, items, |dest, first, words| {
        let batch = dest.len();
        for (b, dest) in dest.iter_mut().enumerate() {
            let column = words[b..].iter().step_by(batch);
            for (out, &word) in dest[first..].iter_mut().zip(column) {
                *out = out.wrapping_add(word);
            }
        }
    });
}

impl Cpu {
    /// Multiplies the rows of `items` by the queries of `source`. `store(dest, first, words)` receives the results of
    /// one panel: row `first + i` of the unit for query `b` is `words[i * batch + b]`.
    pub(crate) fn fold_items<D: Send>(
        &self,
        db: &TiledDb,
        source: &impl QuerySource,
        items: Vec<Item<D>>,
        store: impl Fn(&mut D, usize, &[u32]) + Sync,
    ) {
        let kernel = self.kernels().fold.for_batch(source.batch());
        self.fold_items_with(kernel, db, source, items, store);
    }

    /// Does the work of [`Cpu::fold_items`] with a given kernel, which must be one for the batch of `source`.
    fn fold_items_with<D: Send>(
        &self,
        kernel: &FoldKernel,
        db: &TiledDb,
        source: &impl QuerySource,
        items: Vec<Item<D>>,
        store: impl Fn(&mut D, usize, &[u32]) + Sync,
    ) {
        let batch = source.batch();
        debug_assert!((1..=MAX_BATCH).contains(&batch));
        let cores = self.kernels().fold.cores;
        self.install(|| {
            let mut prepared = self.query_buffers().take(db.tiling().tiles() * (kernel.query_bytes)(batch));
            prepare(kernel, db.tiling(), source, &mut prepared);
            items.into_par_iter().with_max_len(1).for_each(|mut item| {
                self.with_workspace(|workspace| {
                    fold_item((kernel, cores), db, &prepared, batch, &mut item, workspace, &store);
                });
            });
            self.query_buffers().give_back(prepared);
        });
    }
}

/// Lays the queries out for `kernel`, chunk after chunk.
fn prepare(kernel: &FoldKernel, tiling: Tiling, source: &impl QuerySource, prepared: &mut AlignedBuffer<u8>) {
    let batch = source.batch();
    let chunk_bytes = CHUNK_TILES * (kernel.query_bytes)(batch);
    let used = tiling.tiles() * (kernel.query_bytes)(batch);
    prepared[..used].par_chunks_mut(chunk_bytes).enumerate().for_each(|(chunk, out)| {
        (kernel.prepare)(&source.chunk(chunk), batch, tiling.chunk_tiles(chunk), out);
    });
}

/// Runs one unit of work on the calling thread.
fn fold_item<D>(
    (kernel, cores): (&FoldKernel, Cores),
    db: &TiledDb,
    prepared: &[u8],
    batch: usize,
    item: &mut Item<D>,
    workspace: &mut Workspace,
    store: &impl Fn(&mut D, usize, &[u32]),
) {
    let tiling = db.tiling();
    let panel_sums = (kernel.sum_words)(batch);
    let (sums, words) = workspace.fold_buffers(item.panels.len() * panel_sums, PANEL_ROWS * batch);
    sums.fill(0);
    // SAFETY: `Cpu` only hands out kernels of a level that its constructor vouched for.
    unsafe { (kernel.begin)(batch) };
    let group = &db.bytes()[tiling.group_bytes(item.group)];
    let group_panels = tiling.group_panels(item.group);
    let query_tile = (kernel.query_bytes)(batch);
    for chunk in 0..tiling.chunks() {
        let tiles = tiling.chunk_tiles(chunk);
        let next_tiles = if chunk + 1 < tiling.chunks() { tiling.chunk_tiles(chunk + 1) } else { 0 };
        let block_bytes = tiles * TILE_BYTES;
        let chunk_start = chunk * CHUNK_TILES * TILE_BYTES * group_panels;
        let query_start = chunk * CHUNK_TILES * query_tile;
        let query_end = query_start + tiles * query_tile;
        for (index, panel) in item.panels.clone().enumerate() {
            let start = chunk_start + panel * block_bytes;
            // The last panel of a run is followed by the first one in the next chunk.
            let next = if panel + 1 < item.panels.end {
                start + block_bytes
            } else {
                chunk_start + (group_panels * tiles + item.panels.start * next_tiles) * TILE_BYTES
            };
            let block = kernel::Block {
                db: &group[start..start + block_bytes],
                tiles,
                query: &prepared[query_start..query_end],
                batch,
                sums: &mut sums[index * panel_sums..][..panel_sums],
                ahead: kernel::Ahead {
                    db: group.as_ptr().wrapping_add(next),
                    cores,
                    query: prepared[query_end..].as_ptr(),
                    panel: index,
                    panels: item.panels.len(),
                },
            };
            // SAFETY: as for `begin`, which this follows on the same thread.
            unsafe { (kernel.block)(block) };
        }
    }
    // SAFETY: as for `begin`.
    unsafe { (kernel.end)() };
    let rows = item.rows(tiling).len();
    for index in 0..item.panels.len() {
        (kernel.finish)(&sums[index * panel_sums..][..panel_sums], batch, words);
        let first = index * PANEL_ROWS;
        store(&mut item.dest, first, &words[..PANEL_ROWS.min(rows - first) * batch]);
    }
}

hush_ops::footprint!(Cpu: LweFold, |step, batch| {
    batch * size_of::<u32>() * (step.db.cols() + step.db.rows())
});

hush_ops::footprint!(Cpu: FoldOnline, |step, batch| {
    batch * size_of::<u32>() * (step.db.cols() + (batch + 1) * step.db.rows())
});

#[cfg(test)]
mod tests {
    use hush_math::csprng::Csprng;

    use super::*;

    #[test]
    fn the_choices_for_other_cores_give_the_same_words() {
        // SAFETY: requested only for levels that the machine has.
        let cpu = |level, cores| unsafe { Cpu::with_cores(level, cores, 1) }.expect("a thread starts");
        let scalar = cpu(Level::Portable, Cores::Intel);
        for (rows, cols) in [(1, 1), (40, 577), (70, 1100)] {
            let mut bytes = vec![0; rows * cols];
            Csprng::insecure_from_seed(1).fill_bytes(&mut bytes);
            let db = TiledDb::from_matrix(rows, cols, &bytes);
            for batch in 1..=10 {
                let mut words = vec![0; batch * cols];
                Csprng::insecure_from_seed(2).fill_u32(&mut words);
                let queries = LweQueries { cols, words };
                let expected = lwe_fold(&scalar, &db, &queries);
                for level in Level::usable() {
                    for cores in [Cores::Intel, Cores::Amd] {
                        let folded = lwe_fold(&cpu(level, cores), &db, &queries);
                        assert_eq!(folded, expected, "{level} {cores:?}, {batch} queries of {cols}");
                    }
                }
            }
        }
    }
}
