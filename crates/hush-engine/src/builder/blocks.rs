//! The filters of all blocks of a segment, written as its database.

use hush_cpu::Cpu;
use hush_ops::{symbol::Symbol, tiling::TILE_COLS};
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
    BuildError, Written,
    members::Members,
    ring::{self, Place},
    word_slots::WordSlots,
};
use crate::Progress;

/// Bytes of slots that one solve works on: a large block is solved in stripes of its slots' bytes.
const STRIPE_BYTES: usize = 128 << 20;
/// Narrowest stripe, in bytes of a slot: every stripe repeats the elimination.
const MIN_STRIPE: usize = 256;
/// Bytes of slots that are in the memory of this process before they are left to the system.
const RESIDENT_BYTES: usize = 1 << 30;

/// The digest of a key.
pub(super) type Digest<'a> = dyn Fn(u32) -> KeyDigest + Sync + 'a;
/// Writes the slot of a key, whose digest it gets.
pub(super) type Encode<'a> = dyn Fn(u32, &KeyDigest, &mut [u8]) + Sync + 'a;

/// What solves the filter of a block.
pub(super) enum Solver<'a> {
    /// In the base: a seed is found for each block, unless they are given.
    Base { filter: FilterParams, seeds: Option<&'a [u8]> },
    /// Beside it: keys come with the seeds of the base.
    Beside { filter: WrappedFilter, block_map: &'a BlockMap },
}

impl Solver<'_> {
    /// Solves for the slots of a block. The seed depends on the keys alone, so that every stripe has the same one.
    pub(super) fn build<S: Symbol>(
        &self,
        block: usize,
        digests: &[KeyDigest],
        values: &[S],
        size: usize,
        cpu: &Cpu,
        out: &mut [S],
    ) -> Result<u8, BuildError> {
        match self {
            Self::Base { filter, seeds } => {
                let Some(seeds) = seeds else { return Ok(filter.build(digests, values, size, cpu, out)?) };
                let is_solved = filter.build_under(seeds[block], digests, values, size, cpu, out)?;
                assert!(is_solved, "it was solved when the seeds were taken over");
                Ok(seeds[block])
            }
            Self::Beside { filter, block_map } => {
                let keys: Vec<_> = digests.iter().map(|digest| (digest, block_map.seed_of(digest))).collect();
                let is_solved = filter.build(&keys, values, size, cpu, out)?;
                assert!(is_solved, "it was solved when the lanes were chosen");
                Ok(0)
            }
        }
    }
}

/// The filters of all blocks of a segment.
pub(super) struct Blocks<'a> {
    /// The keys of every block.
    pub(super) members: &'a Members,
    pub(super) shape: TableShape,
    pub(super) digest: &'a Digest<'a>,
    /// Writes the slot of a key.
    pub(super) encode: &'a Encode<'a>,
    pub(super) solver: Solver<'a>,
    /// Takes what was read for the blocks that are done out of memory.
    pub(super) release: &'a (dyn Fn() + Sync),
    pub(super) cpu: &'a Cpu,
    pub(super) progress: &'a dyn Progress,
}

impl Blocks<'_> {
    /// Builds every block and writes the database; returns the seeds under which the blocks could be built.
    pub(super) fn write(
        &self,
        params: &SegmentParams,
        writer: &SegmentWriter<'_>,
    ) -> Result<(Written, Vec<u8>), BuildError> {
        match params.database() {
            Database::Bytes(tiling) => {
                let mut db = writer.create_mapped(DB_FILE, tiling.bytes())?;
                let (bytes, release) = db.shared();
                let tiles = TileWriter::new(tiling, bytes);
                let seeds = self.each(release, |block, keys| self.write_bytes(block, keys, &tiles))?;
                Ok((Written { db, whitening: None }, seeds))
            }
            Database::Plaintexts(table) => {
                // Its space first: a disk that is too small is found before the work.
                let db = writer.create_mapped(DB_FILE, table.content().bytes() as usize)?;
                // The filters before the plaintexts, since a plaintext holds slots of many blocks.
                let (size, TableShape { columns, blocks, .. }) = (table.slot_symbols(), self.shape);
                let mut scratch = writer.create_scratch(blocks * columns * size * size_of::<u32>())?;
                let (words, release) = scratch.shared();
                let solved = WordSlots::new(words, columns * size);
                let seeds =
                    self.each(release, |block, keys| self.write_words(block, keys, &table, &solved))?;
                let fill = |place: Place, symbols: &mut [u32]| {
                    let first = place.row * size + place.plane * table.ring().degree();
                    solved.read(place.block, first, symbols);
                };
                let seed = ring::write_db(&table, &db, self.cpu, self.progress, &fill)?;
                Ok((Written { db, whitening: Some(seed) }, seeds))
            }
        }
    }

    fn each(
        &self,
        release: Release<'_>,
        build: impl Fn(usize, &[u32]) -> Result<u8, BuildError> + Sync,
    ) -> Result<Vec<u8>, BuildError> {
        let build = |block: usize| {
            let keys = self.members.of(block);
            let seed = build(block, keys)?;
            self.progress.advance(keys.len() as u64);
            Ok::<_, BuildError>(seed)
        };
        let shape = self.shape;
        let resident = RESIDENT_BYTES / (shape.columns * shape.slot_bytes).max(1);
        // The threads end together.
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

    /// Builds a filter over bytes and writes its slots into the tiles.
    fn write_bytes(&self, block: usize, keys: &[u32], tiles: &TileWriter<'_>) -> Result<u8, BuildError> {
        let TableShape { columns, slot_bytes: size, .. } = self.shape;
        let stripe = (STRIPE_BYTES / columns).max(MIN_STRIPE).min(size);
        let digests = self.digests(keys);
        let mut seed = 0;
        for first in (0..size).step_by(stripe) {
            self.progress.check()?;
            let width = stripe.min(size - first);
            let values = self.values(keys, &digests, width, |slot, out: &mut [u8]| {
                out.copy_from_slice(&slot[first..first + width]);
            });
            let mut out = vec![0; columns * width];
            seed = self.solver.build(block, &digests, &values, width, self.cpu, &mut out)?;
            drop(values);
            out.par_chunks(TILE_COLS * width)
                .enumerate()
                .for_each(|(tile, slots)| tiles.write(block * size + first, tile, slots, width));
        }
        Ok(seed)
    }

    /// Builds a filter over the symbols of a table over rings.
    fn write_words(
        &self,
        block: usize,
        keys: &[u32],
        table: &RingTable,
        solved: &WordSlots<'_>,
    ) -> Result<u8, BuildError> {
        self.progress.check()?;
        let (size, bits) = (table.slot_symbols(), table.ring().plaintext_bits());
        let digests = self.digests(keys);
        let values = self.values(keys, &digests, size, |slot, out: &mut [u32]| to_symbols(slot, bits, out));
        let mut out = vec![0; self.shape.columns * size];
        let seed = self.solver.build(block, &digests, &values, size, self.cpu, &mut out)?;
        solved.write(block, &out);
        Ok(seed)
    }

    fn digests(&self, keys: &[u32]) -> Vec<KeyDigest> {
        keys.par_iter().map(|&key| (self.digest)(key)).collect()
    }

    /// `width` symbols of every key's slot value, which `convert` makes of its bytes.
    fn values<S: Symbol>(
        &self,
        keys: &[u32],
        digests: &[KeyDigest],
        width: usize,
        convert: impl Fn(&[u8], &mut [S]) + Sync,
    ) -> Vec<S> {
        let mut values = vec![S::default(); keys.len() * width];
        let fill = |buffer: &mut Vec<u8>, ((&key, digest), out): ((&u32, &KeyDigest), &mut [S])| {
            (self.encode)(key, digest, buffer);
            convert(buffer, out);
        };
        let size = self.shape.slot_bytes;
        keys.par_iter().zip(digests).zip(values.par_chunks_mut(width)).for_each_init(|| vec![0; size], fill);
        values
    }
}
