//! Layout of a table that is looked up by key: keys to blocks, a filter in every block, segment by segment.

use hush_cpu::Cpu;
use hush_math::csprng::Csprng;
use hush_ops::{symbol::Symbol, tiling::TILE_COLS};
use hush_protocol::{
    any_page::{SegmentParams, TableParams},
    descriptor::{KeyLookup, Lookup, Role, Segment},
    facts::Database,
    keyword::{BlockMap, FilterParams, KeyDigest, LaneMap, WrappedFilter, position_key},
    ring_table::RingTable,
    symbols::to_symbols,
    table::{SegmentShape, TableShape},
};
use hush_store::{
    ingest::SpooledRecords,
    snapshot::{DB_FILE, SegmentWriter, SnapshotWriter},
    tiles::TileWriter,
};
use rayon::prelude::*;

use super::{
    BuildError, Laid, Plan, Written,
    ring::{self, Place},
    segment_shapes::{Candidate, divisible, segment_shapes},
    word_slots::WordSlots,
};
use crate::Progress;

/// Bytes of slots that one solve works on: a large block is solved in stripes of its slots' bytes.
const STRIPE_BYTES: usize = 128 << 20;
/// Narrowest stripe, in bytes of a slot: every stripe repeats the elimination.
const MIN_STRIPE: usize = 256;
/// Slack of a block's capacity over the mean load, tried in this order until the keys balance. The first is one key
/// in a block of up to a thousand, which is enough for blocks of 20 to 500 keys.
const BALANCE_SLACK: [f64; 8] = [1.001, 1.003, 1.005, 1.01, 1.03, 1.1, 1.5, 2.0];
/// Seeds under which the keys of an entry are spread over its lanes, before its segment gets another shape.
const LANE_SEEDS: u8 = 24;

/// Chooses the shape, builds every block's filter and writes its slots; the base first, whose filters say what the others are asked
/// with.
pub(super) fn lay_out(
    records: &SpooledRecords,
    plan: &Plan,
    writer: &SnapshotWriter,
    cpu: &Cpu,
    progress: &dyn Progress,
) -> Result<Laid, BuildError> {
    let mut seed = [0; 32];
    Csprng::from_os().fill_bytes(&mut seed);
    let digests = hash_keys(records, plan.by_key, &seed, cpu, progress)?;
    let scheme = &plan.scheme;
    let (mut block_map, capacity) = balance(&digests, plan.params.base().facts().shape.blocks, progress)?;
    let planned = plan.params.base().facts();
    let columns = match (plan.filter.slots_for(capacity), planned.shape.columns) {
        (columns, _) if plan.ends.len() < 2 => columns,
        (columns, planned) if columns <= planned => planned,
        // Segments have those of the base.
        (columns, all) if planned.segments.column_unit == all => columns,
        (columns, _) => divisible(columns, planned.segments.column_unit),
    };
    let shape = TableShape { columns, blocks: block_map.blocks(), slot_bytes: plan.slot.slot_bytes() };
    let mut params = scheme.params(shape)?;
    let filter = FilterParams { kind: plan.filter, slots: params.facts().shape.columns };
    let members = members(&digests, &block_map);
    let encode = |key: u32, slot: &mut [u8]| {
        let fingerprint = digests[key as usize].fingerprint(usize::from(plan.slot.fingerprint_bytes));
        plan.slot.encode_into(fingerprint, records.record(key as usize).1, slot);
    };
    progress.start("filter", records.len() as u64, "keys");
    let solver = Solver::Base { filter, digests: &digests };
    let blocks =
        Blocks { members: &members, shape: params.facts().shape, encode: &encode, solver, cpu, progress };
    let (base, seeds) = blocks.write(params.base(), &writer.segment(0))?;
    block_map.seeds = seeds;
    drop(members);

    let tiers = Tiers { records, plan, digests: &digests, block_map: &block_map, cpu, progress };
    let mut beside = Vec::new();
    for (index, pair) in plan.ends.windows(2).enumerate() {
        let (segment, written);
        (params, segment, written) = tiers.lay_out(params, pair[0]..pair[1], &writer.segment(index + 1))?;
        beside.push((segment, written));
    }
    let keys = KeyLookup {
        filter: plan.filter,
        seed,
        thresholds: block_map.thresholds,
        block_seeds: block_map.seeds,
    };
    let lookup = if plan.by_key { Lookup::Key(keys) } else { Lookup::Position(keys) };
    Ok(Laid { params, slot: plan.slot, lookup, base, beside })
}

fn hash_keys(
    records: &SpooledRecords,
    by_key: bool,
    seed: &[u8; 32],
    cpu: &Cpu,
    progress: &dyn Progress,
) -> Result<Vec<KeyDigest>, BuildError> {
    progress.start("hash keys", records.len() as u64, "keys");
    let hash = |index: usize| {
        progress.check()?;
        let position = position_key(index as u64);
        Ok(KeyDigest::new(seed, if by_key { records.record(index).0 } else { &position })?)
    };
    let digests =
        cpu.install(|| (0..records.len()).into_par_iter().map(hash).collect::<Result<_, BuildError>>())?;
    progress.advance(records.len() as u64);
    Ok(digests)
}

/// A block map, and the most keys that a block then has to hold.
fn balance(
    digests: &[KeyDigest],
    blocks: usize,
    progress: &dyn Progress,
) -> Result<(BlockMap, usize), BuildError> {
    let mean = digests.len().div_ceil(blocks);
    let mut capacities = BALANCE_SLACK.map(|slack| (mean as f64 * slack).ceil() as usize).to_vec();
    capacities.dedup();
    for capacity in capacities {
        progress.check()?;
        if let Ok(map) = BlockMap::assign(digests, blocks, capacity) {
            return Ok((map, capacity));
        }
    }
    // So few keys a block that loads cannot be evened out: room for the fullest one.
    let map = BlockMap::unbalanced(blocks);
    let fullest = members(digests, &map).iter().map(Vec::len).max().unwrap_or(0);
    Ok((map, fullest))
}

/// The keys of every block, in the order of the input.
fn members(digests: &[KeyDigest], block_map: &BlockMap) -> Vec<Vec<u32>> {
    let mut members = vec![Vec::new(); block_map.blocks()];
    for (index, digest) in digests.iter().enumerate() {
        members[block_map.block_of(digest)].push(index as u32);
    }
    members
}

/// The tiers of a table beside the base.
struct Tiers<'a> {
    records: &'a SpooledRecords,
    plan: &'a Plan,
    digests: &'a [KeyDigest],
    /// Of the base.
    block_map: &'a BlockMap,
    cpu: &'a Cpu,
    progress: &'a dyn Progress,
}

impl Tiers<'_> {
    /// Lays out the tier of the bytes `part` of values. Returns the table with it.
    fn lay_out(
        &self,
        params: TableParams,
        part: std::ops::Range<usize>,
        writer: &SegmentWriter<'_>,
    ) -> Result<(TableParams, Segment, Written), BuildError> {
        let keys: Vec<u32> = (0u32..)
            .zip(self.records.value_lens())
            .filter_map(|(key, length)| (length as usize > part.start).then_some(key))
            .collect();
        self.progress.start("filter", keys.len() as u64, "keys");
        let no_tier = BuildError::NoTier { records: keys.len(), from: part.start };
        let fullest = |entries: usize| self.by_entry(&params, &keys, entries).iter().map(Vec::len).max();
        let shapes =
            segment_shapes(&params, self.plan.filter, part.len(), |entries| fullest(entries).unwrap_or(0));
        // The cheapest one in which all keys have a place.
        for Candidate { shape, capacity, .. } in shapes {
            let by_entry = self.by_entry(&params, &keys, shape.entries);
            let Some(lanes) = self.lanes(&params, &by_entry, shape, capacity)? else { continue };
            let params = params.clone().with_segment(shape)?;
            let written = self.write(&params, &by_entry, &lanes, shape, part, writer)?;
            let SegmentShape { shape: TableShape { columns, blocks, slot_bytes }, entries } = shape;
            let segment = Segment {
                role: Role::Tier,
                records: keys.len() as u64,
                columns,
                blocks,
                entries,
                slot_bytes,
                lanes,
                hint: None,
                whitening: None,
                database: [0; 32],
            };
            return Ok((params, segment, written));
        }
        Err(no_tier)
    }

    /// The keys of each of `entries` entries: their entry in the base, modulo these.
    fn by_entry(&self, params: &TableParams, keys: &[u32], entries: usize) -> Vec<Vec<u32>> {
        let lanes = params.base().facts().lanes;
        let mut by_entry = vec![Vec::new(); entries];
        for &key in keys {
            by_entry[self.block_map.block_of(&self.digests[key as usize]) / lanes % entries].push(key);
        }
        by_entry
    }

    /// A key with the seed of its block in the base.
    fn seeded(&self, key: u32) -> (&KeyDigest, u8) {
        let digest = &self.digests[key as usize];
        (digest, self.block_map.seeds[self.block_map.block_of(digest)])
    }

    fn filter(&self, params: &TableParams, shape: SegmentShape) -> WrappedFilter {
        let base_columns = params.base().facts().shape.columns;
        WrappedFilter { kind: self.plan.filter, base_columns, columns: shape.shape.columns }
    }

    /// Lanes in which every block can be solved; `None` if none were found.
    fn lanes(
        &self,
        params: &TableParams,
        by_entry: &[Vec<u32>],
        shape: SegmentShape,
        capacity: usize,
    ) -> Result<Option<LaneMap>, BuildError> {
        let (lanes, filter) = (shape.lanes(), self.filter(params, shape));
        let entry = |keys: &Vec<u32>| -> Result<Option<(u8, Vec<u8>)>, BuildError> {
            let digests = || keys.iter().map(|&key| &self.digests[key as usize]);
            for seed in 0..if lanes > 1 { LANE_SEEDS } else { 1 } {
                self.progress.check()?;
                let Ok(thresholds) = LaneMap::thresholds(digests(), lanes, capacity, seed) else { continue };
                let mut blocks = vec![Vec::new(); lanes];
                for &key in keys {
                    let digest = &self.digests[key as usize];
                    blocks[LaneMap::lane_of(digest, seed, &thresholds)].push(self.seeded(key));
                }
                let solves = |keys: &Vec<_>| filter.build::<u8>(keys, &[], 0, self.cpu, &mut []);
                let solved = blocks.par_iter().map(solves).collect::<Result<Vec<_>, _>>()?;
                if solved.into_iter().all(|solved| solved) {
                    return Ok(Some((seed, thresholds)));
                }
            }
            Ok(None)
        };
        let found = self.cpu.install(|| by_entry.par_iter().map(entry).collect::<Result<Vec<_>, _>>())?;
        let found: Option<Vec<_>> = found.into_iter().collect();
        Ok(found.map(|found| {
            let (seeds, thresholds): (Vec<u8>, Vec<Vec<u8>>) = found.into_iter().unzip();
            LaneMap { seeds, thresholds: thresholds.concat() }
        }))
    }

    fn write(
        &self,
        params: &TableParams,
        by_entry: &[Vec<u32>],
        lanes: &LaneMap,
        shape: SegmentShape,
        part: std::ops::Range<usize>,
        writer: &SegmentWriter<'_>,
    ) -> Result<Written, BuildError> {
        let mut members = vec![Vec::new(); shape.shape.blocks];
        for (entry, keys) in by_entry.iter().enumerate() {
            for &key in keys {
                members[lanes.block_of(&self.digests[key as usize], entry, shape.lanes())].push(key);
            }
        }
        let encode = |key: u32, slot: &mut [u8]| {
            let value = self.records.record(key as usize).1;
            let bytes = &value[part.start..value.len().min(part.end)];
            slot[..bytes.len()].copy_from_slice(bytes);
            slot[bytes.len()..].fill(0);
        };
        let seeded = |key: u32| self.seeded(key);
        let solver = Solver::Beside { filter: self.filter(params, shape), seeded: &seeded };
        let blocks = Blocks {
            members: &members,
            shape: shape.shape,
            encode: &encode,
            solver,
            cpu: self.cpu,
            progress: self.progress,
        };
        let segment = params.segments().last().expect("it was added");
        Ok(blocks.write(segment, writer)?.0)
    }
}

/// What solves the filter of a block.
enum Solver<'a> {
    /// In the base: a seed is found for each block.
    Base { filter: FilterParams, digests: &'a [KeyDigest] },
    /// Beside it: keys come with the seeds of the base.
    Beside { filter: WrappedFilter, seeded: &'a (dyn Fn(u32) -> (&'a KeyDigest, u8) + Sync) },
}

impl Solver<'_> {
    /// Solves for the slots of a block. The seed depends on the keys alone, so that every stripe has the same one.
    fn build<S: Symbol>(
        &self,
        keys: &[u32],
        values: &[S],
        size: usize,
        cpu: &Cpu,
        out: &mut [S],
    ) -> Result<u8, BuildError> {
        match self {
            Self::Base { filter, digests } => {
                let digests: Vec<_> = keys.iter().map(|&key| digests[key as usize].clone()).collect();
                Ok(filter.build(&digests, values, size, cpu, out)?)
            }
            Self::Beside { filter, seeded } => {
                let keys: Vec<_> = keys.iter().map(|&key| seeded(key)).collect();
                let is_solved = filter.build(&keys, values, size, cpu, out)?;
                assert!(is_solved, "it was solved when the lanes were chosen");
                Ok(0)
            }
        }
    }
}

/// The filters of all blocks of a segment.
struct Blocks<'a> {
    /// The keys of every block.
    members: &'a [Vec<u32>],
    shape: TableShape,
    /// Writes the slot of a key.
    encode: &'a (dyn Fn(u32, &mut [u8]) + Sync),
    solver: Solver<'a>,
    cpu: &'a Cpu,
    progress: &'a dyn Progress,
}

impl Blocks<'_> {
    /// Builds every block and writes the database; returns the seeds under which the blocks could be built.
    fn write(
        &self,
        params: &SegmentParams,
        writer: &SegmentWriter<'_>,
    ) -> Result<(Written, Vec<u8>), BuildError> {
        match params.database() {
            Database::Bytes(tiling) => {
                let mut db = writer.create_mapped(DB_FILE, tiling.bytes())?;
                let tiles = TileWriter::new(tiling, db.bytes());
                let seeds = self.each(|block, keys| self.write_bytes(block, keys, &tiles))?;
                Ok((Written { db, whitening: None }, seeds))
            }
            Database::Plaintexts(table) => {
                // Its space first: a disk that is too small is found before the work.
                let db = writer.create_mapped(DB_FILE, table.tiling().bytes())?;
                // The filters before the plaintexts, since a plaintext holds slots of many blocks.
                let (size, TableShape { columns, blocks, .. }) = (table.slot_symbols(), self.shape);
                let mut scratch = writer.create_scratch(blocks * columns * size * size_of::<u32>())?;
                let solved = WordSlots::new(scratch.words(), columns * size);
                let seeds = self.each(|block, keys| self.write_words(block, keys, &table, &solved))?;
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
        build: impl Fn(usize, &[u32]) -> Result<u8, BuildError> + Sync,
    ) -> Result<Vec<u8>, BuildError> {
        self.cpu.install(|| {
            let seeds = self.members.par_iter().enumerate().map(|(block, keys)| {
                let seed = build(block, keys)?;
                self.progress.advance(keys.len() as u64);
                Ok(seed)
            });
            seeds.collect()
        })
    }

    /// Builds a filter over bytes and writes its slots into the tiles.
    fn write_bytes(&self, block: usize, keys: &[u32], tiles: &TileWriter<'_>) -> Result<u8, BuildError> {
        let TableShape { columns, slot_bytes: size, .. } = self.shape;
        let stripe = (STRIPE_BYTES / columns).max(MIN_STRIPE).min(size);
        let mut seed = 0;
        for first in (0..size).step_by(stripe) {
            self.progress.check()?;
            let width = stripe.min(size - first);
            let values = self.values(keys, width, |slot, out: &mut [u8]| {
                out.copy_from_slice(&slot[first..first + width]);
            });
            let mut out = vec![0; columns * width];
            seed = self.solver.build(keys, &values, width, self.cpu, &mut out)?;
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
        let values = self.values(keys, size, |slot, out: &mut [u32]| to_symbols(slot, bits, out));
        let mut out = vec![0; self.shape.columns * size];
        let seed = self.solver.build(keys, &values, size, self.cpu, &mut out)?;
        solved.write(block, &out);
        Ok(seed)
    }

    /// `width` symbols of every key's slot value, which `convert` makes of its bytes.
    fn values<S: Symbol>(
        &self,
        keys: &[u32],
        width: usize,
        convert: impl Fn(&[u8], &mut [S]) + Sync,
    ) -> Vec<S> {
        let mut values = vec![S::default(); keys.len() * width];
        let fill = |buffer: &mut Vec<u8>, (&key, out): (&u32, &mut [S])| {
            (self.encode)(key, buffer);
            convert(buffer, out);
        };
        let size = self.shape.slot_bytes;
        keys.par_iter().zip(values.par_chunks_mut(width)).for_each_init(|| vec![0; size], fill);
        values
    }
}
