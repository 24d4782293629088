//! Solves the filters of all blocks of a segment and writes them as its database.

use std::{ops::Range, sync::Arc};

use hush_cpu::Cpu;
use hush_engine::Progress;
use hush_ops::tiling::TILE_COLS;
use hush_protocol::{
    any_page::SegmentParams,
    facts::Database,
    keyword::{BlockMap, FilterParams, KeyDigest, WrappedFilter},
    ring_table::RingTable,
    symbols::to_symbols,
    table::TableShape,
};
use hush_store::{
    snapshot::{DB_FILE, Release, SegmentWriter},
    tiles::TileWriter,
};
use rayon::prelude::*;

use super::{
    filter_block::{FilterBlock, FilterSize, Seeds, SlotSymbol},
    members::Members,
    plain_slots::PlainSlots,
    ring::{self, SymbolPlace},
    word_slots::WordSlots,
};
use crate::builder::{
    BuildError, Crew, Written,
    hints::{crew::have_done, task::Task},
};

/// The bytes of slots that are solved at once. A larger block is solved in stripes: ranges of the bytes of each slot.
const STRIPE_BYTES: usize = 128 << 20;
/// The least width of a stripe, in bytes of a slot: every stripe repeats the elimination.
const MIN_STRIPE: usize = 256;
/// The maximum bytes of slots in a task of a crew, unless one stripe has more.
const TASK_BYTES: usize = 8 << 20;
/// The crew solves blocks if it has at least this many times the threads of this process. The inputs of a task are as long as its
/// results, and in the time that a link takes for them, some threads solve the blocks.
const MORE_ELSEWHERE: usize = 2;
/// The bytes of slots that may be in this process's memory before their pages are released to the system.
const RESIDENT_BYTES: usize = 1 << 30;

/// Returns the digest of a key.
pub(in crate::builder) type Digest<'a> = dyn Fn(u32) -> KeyDigest + Sync + 'a;
/// Writes the slot of a key with this digest.
pub(in crate::builder) type Encode<'a> = dyn Fn(u32, &KeyDigest, &mut [u8]) + Sync + 'a;

/// The way in which a block's filter is solved.
pub(in crate::builder) enum Solver<'a> {
    /// The solver of the base: a seed is found for each block, unless `seeds` are given.
    Base { filter: FilterParams, seeds: Option<&'a [u8]> },
    /// The solver of a segment beside the base: each key has the seed of its block in the base.
    Beside { filter: WrappedFilter, block_map: &'a BlockMap },
}

impl Solver<'_> {
    fn size(&self) -> FilterSize {
        match *self {
            Self::Base { filter: FilterParams { kind, slots }, .. } => {
                FilterSize { kind, slots, base_columns: None }
            }
            Self::Beside { filter: WrappedFilter { kind, base_columns, columns }, .. } => {
                FilterSize { kind, slots: columns, base_columns: Some(base_columns) }
            }
        }
    }

    fn seeds(&self, block: usize, digests: &[KeyDigest]) -> Seeds {
        match self {
            Self::Base { seeds: None, .. } => Seeds::Any,
            Self::Base { seeds: Some(seeds), .. } => Seeds::OfBlock(seeds[block]),
            Self::Beside { block_map, .. } => {
                Seeds::OfKeys(digests.iter().map(|digest| block_map.seed_of(digest)).collect())
            }
        }
    }
}

/// The filters of all blocks of a segment.
pub(in crate::builder) struct BlockFilters<'a> {
    /// The keys of every block.
    pub(in crate::builder) members: &'a Members,
    pub(in crate::builder) shape: TableShape,
    pub(in crate::builder) digest: &'a Digest<'a>,
    /// Writes the slot of a key.
    pub(in crate::builder) encode: &'a Encode<'a>,
    pub(in crate::builder) solver: Solver<'a>,
    /// Releases the pages that were read for the finished blocks.
    pub(in crate::builder) release: &'a (dyn Fn() + Sync),
    pub(in crate::builder) cpu: &'a Cpu,
    /// The crew that may solve blocks elsewhere.
    pub(in crate::builder) crew: Option<&'a dyn Crew>,
    pub(in crate::builder) progress: &'a dyn Progress,
}

/// The destination of solved blocks, and its symbols. Used from any thread.
trait BlockSlots: Sync {
    type Symbol: SlotSymbol;

    /// Returns the number of symbols of a slot.
    fn size(&self) -> usize;

    /// Returns the number of symbols of a slot that are solved at once.
    fn stripe(&self) -> usize;

    /// Reads the symbols `symbols` of the slot whose bytes are `slot`.
    fn read(&self, slot: &[u8], symbols: Range<usize>, out: &mut [Self::Symbol]);

    /// Writes the symbols `symbols` of all slots of a block.
    fn write(&self, block: usize, symbols: Range<usize>, slots: &[Self::Symbol]);
}

/// Returns the bytes of a slot that are solved at once.
fn byte_stripe(shape: TableShape) -> usize {
    (STRIPE_BYTES / shape.columns).max(MIN_STRIPE).min(shape.slot_bytes)
}

/// The slots of a byte database, in tiles.
struct ByteSlots<'a> {
    tiles: TileWriter<'a>,
    shape: TableShape,
}

impl BlockSlots for ByteSlots<'_> {
    type Symbol = u8;

    fn size(&self) -> usize {
        self.shape.slot_bytes
    }

    fn stripe(&self) -> usize {
        byte_stripe(self.shape)
    }

    fn read(&self, slot: &[u8], symbols: Range<usize>, out: &mut [u8]) {
        out.copy_from_slice(&slot[symbols]);
    }

    fn write(&self, block: usize, symbols: Range<usize>, slots: &[u8]) {
        let first = block * self.size() + symbols.start;
        let width = symbols.len();
        slots
            .par_chunks(TILE_COLS * width)
            .enumerate()
            .for_each(|(tile, slots)| self.tiles.write(first, tile, slots, width));
    }
}

impl BlockSlots for PlainSlots<'_> {
    type Symbol = u8;

    fn size(&self) -> usize {
        self.shape().slot_bytes
    }

    fn stripe(&self) -> usize {
        byte_stripe(self.shape())
    }

    fn read(&self, slot: &[u8], symbols: Range<usize>, out: &mut [u8]) {
        out.copy_from_slice(&slot[symbols]);
    }

    fn write(&self, block: usize, symbols: Range<usize>, slots: &[u8]) {
        PlainSlots::write(self, block, &symbols, slots);
    }
}

/// The slots of a table over rings, as words in a scratch file.
struct RingSlots<'a> {
    table: &'a RingTable,
    solved: &'a WordSlots<'a>,
}

impl BlockSlots for RingSlots<'_> {
    type Symbol = u32;

    fn size(&self) -> usize {
        self.table.slot_symbols()
    }

    fn stripe(&self) -> usize {
        self.size()
    }

    fn read(&self, slot: &[u8], _: Range<usize>, out: &mut [u32]) {
        to_symbols(slot, self.table.ring().plaintext_bits(), out);
    }

    fn write(&self, block: usize, _: Range<usize>, slots: &[u32]) {
        self.solved.write(block, slots);
    }
}

impl BlockFilters<'_> {
    /// Solves every block and writes the database. Returns the seed of each block (0 beside a base).
    pub(in crate::builder) fn write(
        &self,
        params: &SegmentParams,
        writer: &SegmentWriter<'_>,
    ) -> Result<(Written, Vec<u8>), BuildError> {
        match params.database() {
            Database::Bytes(tiling) => {
                let mut db = writer.create_mapped(DB_FILE, tiling.bytes())?;
                let (bytes, release) = db.shared();
                let slots = ByteSlots { tiles: TileWriter::new(tiling, bytes), shape: self.shape };
                let seeds = self.solve(&slots, release)?;
                Ok((Written { db, whitening: None }, seeds))
            }
            Database::Slots => {
                let TableShape { columns, blocks, slot_bytes } = self.shape;
                let mut db = writer.create_mapped(DB_FILE, blocks * columns * slot_bytes)?;
                let (bytes, release) = db.shared();
                let seeds = self.solve(&PlainSlots::new(bytes, self.shape), release)?;
                Ok((Written { db, whitening: None }, seeds))
            }
            Database::Plaintexts(table) => {
                // The space is reserved first, so that a disk that is too small is found before the work.
                let db = writer.create_mapped(DB_FILE, table.content().bytes() as usize)?;
                // The filters are solved before the plaintexts are written, because a plaintext holds slots of many blocks.
                let size = table.slot_symbols();
                let TableShape { columns, blocks, .. } = self.shape;
                let mut scratch = writer.create_scratch(blocks * columns * size * size_of::<u32>())?;
                let (words, release) = scratch.shared();
                let solved = WordSlots::new(words, columns * size);
                let seeds = self.solve(&RingSlots { table: &table, solved: &solved }, release)?;
                let fill = |place: SymbolPlace, symbols: &mut [u32]| {
                    let first = place.row * size + place.plane * table.ring().degree();
                    solved.read(place.block, first, symbols);
                };
                let seed = ring::write_db(&table, &db, self.cpu, self.progress, &fill)?;
                Ok((Written { db, whitening: Some(seed) }, seeds))
            }
        }
    }

    /// Solves all blocks: in this process, or on the crew if that is large enough.
    fn solve<S: BlockSlots>(&self, slots: &S, release: Release<'_>) -> Result<Vec<u8>, BuildError> {
        match self.crew {
            Some(crew) if crew.places() >= MORE_ELSEWHERE * self.cpu.threads() => {
                self.elsewhere(crew, slots, release)
            }
            _ => self.here(slots, release),
        }
    }

    fn here<S: BlockSlots>(&self, slots: &S, release: Release<'_>) -> Result<Vec<u8>, BuildError> {
        let build = |block: usize| {
            let digests = self.digests(block);
            let mut seed = 0;
            for symbols in stripes(slots) {
                self.progress.check()?;
                let (solved, out) = self
                    .block(slots, block, digests.clone(), symbols.clone())
                    .solve(self.solver.size(), self.cpu)?;
                slots.write(block, symbols, &out);
                seed = solved;
            }
            self.progress.advance(self.members.of(block).len() as u64);
            Ok::<_, BuildError>(seed)
        };
        let shape = self.shape;
        let resident = RESIDENT_BYTES / (shape.columns * shape.slot_bytes).max(1);
        // The number of blocks is a multiple of the threads, so that all threads end at about the same time.
        let some = resident.next_multiple_of(self.cpu.threads()).max(self.cpu.threads());
        let mut seeds = Vec::with_capacity(self.members.blocks());
        for first in (0..self.members.blocks()).step_by(some) {
            let blocks = first..self.members.blocks().min(first + some);
            let built =
                self.cpu.install(|| blocks.into_par_iter().map(build).collect::<Result<Vec<_>, _>>())?;
            seeds.extend(built);
            release.release();
            (self.release)();
        }
        Ok(seeds)
    }

    /// Solves all blocks on the crew. A task has the keys and values of some blocks, or of a stripe of one.
    fn elsewhere<S: BlockSlots>(
        &self,
        crew: &dyn Crew,
        slots: &S,
        release: Release<'_>,
    ) -> Result<Vec<u8>, BuildError> {
        let size = self.solver.size();
        let columns = self.shape.columns;
        let stripes: Vec<_> = stripes(slots).collect();
        let all: Vec<(usize, Range<usize>)> = (0..self.members.blocks())
            .flat_map(|block| stripes.iter().map(move |symbols| (block, symbols.clone())))
            .collect();
        let bytes = columns * stripes[0].len() * size_of::<S::Symbol>();
        let tasks = all.chunks((TASK_BYTES / bytes.max(1)).max(1)).map(|some| {
            let blocks: Vec<_> = self.cpu.install(|| {
                some.par_iter()
                    .map(|(block, symbols): &(usize, Range<usize>)| {
                        self.block(slots, *block, self.digests(*block), symbols.clone())
                    })
                    .collect()
            });
            Ok((some, Task::filters(size, &blocks)))
        });
        let mut seeds = vec![0; self.members.blocks()];
        let mut written = 0;
        have_done(crew, self.progress, tasks, |some, solved| {
            let none = || BuildError::Crew("what came are not the filters that were asked for".into());
            let (solved, rest) = solved.as_chunks::<2>();
            if solved.len() != some.len() || !rest.is_empty() {
                return Err(none());
            }
            for ((block, symbols), [seed, content]) in some.iter().zip(solved) {
                let content = S::Symbol::from_bytes(content);
                if seed.len() != 1 || content.len() != columns * symbols.len() {
                    return Err(none());
                }
                slots.write(*block, symbols.clone(), &content);
                seeds[*block] = seed[0];
                if symbols.end == slots.size() {
                    self.progress.advance(self.members.of(*block).len() as u64);
                }
                written += size_of_val(&content[..]);
            }
            if written >= RESIDENT_BYTES {
                written = 0;
                release.release();
                (self.release)();
            }
            Ok(())
        })?;
        Ok(seeds)
    }

    /// Returns a block with the symbols `symbols` of its slots, to be solved.
    fn block<S: BlockSlots>(
        &self,
        slots: &S,
        block: usize,
        digests: Arc<Vec<KeyDigest>>,
        symbols: Range<usize>,
    ) -> FilterBlock<S::Symbol> {
        let keys = self.members.of(block);
        let width = symbols.len();
        let mut values = vec![S::Symbol::default(); keys.len() * width];
        let bytes = self.shape.slot_bytes;
        let pairs = keys.par_iter().zip(&*digests).zip(values.par_chunks_mut(width));
        pairs.for_each_init(
            || vec![0; bytes],
            |buffer: &mut Vec<u8>, ((&key, digest), out): ((&u32, &KeyDigest), &mut [S::Symbol])| {
                (self.encode)(key, digest, buffer);
                slots.read(buffer, symbols.clone(), out);
            },
        );
        FilterBlock { seeds: self.solver.seeds(block, &digests), digests, values, size: width }
    }

    fn digests(&self, block: usize) -> Arc<Vec<KeyDigest>> {
        Arc::new(self.members.of(block).par_iter().map(|&key| (self.digest)(key)).collect())
    }
}

/// Returns the stripes: the ranges of a slot's symbols that are solved at once.
fn stripes<S: BlockSlots>(slots: &S) -> impl Iterator<Item = Range<usize>> {
    let size = slots.size();
    let stripe = slots.stripe();
    (0..size).step_by(stripe.max(1)).map(move |start| start..size.min(start + stripe))
}
