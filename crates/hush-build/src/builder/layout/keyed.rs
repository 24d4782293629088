//! The layout of a table with filters: assigns keys to blocks and solves a filter for every block, segment by segment.

use std::ops::Range;

use hush_cpu::Cpu;
use hush_engine::Progress;
use hush_ingest::SpooledRecords;
use hush_protocol::{
    any_page::TableParams,
    descriptor::{KeyLookup, Lookup, Role, Segment},
    keyword::{BlockKey, BlockKeys, BlockMap, FilterParams, KeyDigest, MAX_BLOCKS, position_key},
    table::TableShape,
};
use hush_store::snapshot::{Changes, SnapshotWriter};
use rayon::prelude::*;

use super::{
    beside::{Beside, PlacedKeys, encode_part},
    blocks::{BlockFilters, Digest, Solver},
    delta::ChangeLayout,
    members::Members,
};
use crate::builder::{
    BuildError, Crew, LaidTable, Lengths, Plan, Written,
    shape::segment_shapes::{SegmentShapes, divisible},
};

/// Slack of a block's capacity over the mean load, tried in this order until the keys balance. The first is one key
/// in a block of up to a thousand, which is enough for blocks of 20 to 500 keys.
const BALANCE_SLACK: [f64; 8] = [1.001, 1.003, 1.005, 1.01, 1.03, 1.1, 1.5, 2.0];

/// The number of keys that are hashed before the pages of their records are released.
const KEYS_AT_A_TIME: usize = 1 << 23;

/// Chooses the shape, builds every block's filter and writes its slots. The base comes first, because its filters determine the
/// queries for the other segments. `changes` are the changes with which the table begins. Returns `None` if the plan keeps a
/// geometry that the keys do not fit.
pub(in crate::builder) fn lay_out(
    records: &SpooledRecords,
    lengths: &Lengths,
    changes: &Changes,
    plan: &Plan,
    writer: &SnapshotWriter,
    (cpu, crew): (&Cpu, Option<&dyn Crew>),
    progress: &dyn Progress,
) -> Result<Option<LaidTable>, BuildError> {
    let seed = plan.kept.as_ref().map_or(*records.seed(), |kept| kept.keys.seed);
    let digest = |key: u32| digest(records, plan.by_key, &seed, key);
    let keys = KeyLayout { records, plan, digest: &digest, cpu, crew, progress };
    let (mut params, mut block_map) = keys.base()?;
    let members = keys.members(&block_map)?;
    let filter = FilterParams { kind: plan.filter, slots: params.facts().shape.columns };
    let mut placed = None;
    if plan.kept.is_some() {
        placed = keys.placed_as_before(&params, &block_map)?;
        if placed.is_none() || !keys.solves(filter, &members, &block_map)? {
            return Ok(None);
        }
    }
    let encode = |key: u32, digest: &KeyDigest, slot: &mut [u8]| {
        let fingerprint = digest.fingerprint(usize::from(plan.slot.fingerprint_bytes));
        plan.slot.encode_into(fingerprint, records.record(key as usize).1, slot);
    };
    progress.start("filter", records.len() as u64, "keys");
    let seeds = plan.kept.as_ref().map(|kept| &kept.keys.block_seeds[..]);
    let solver = Solver::Base { filter, seeds };
    let shape = params.facts().shape;
    let release = &|| records.release();
    let members_of = &members;
    let digest = &digest;
    let encode = &encode;
    let blocks =
        BlockFilters { members: members_of, shape, digest, encode, solver, release, cpu, crew, progress };
    let (base, seeds) = blocks.write(params.base(), &writer.segment(0))?;
    block_map.seeds = seeds;
    drop(members);

    let mut beside = Vec::new();
    let mut placed = placed.into_iter().flatten();
    for part in plan.tiers() {
        let placed = match placed.next() {
            Some(placed) => placed,
            None => keys.placed(&params, &block_map, part.clone())?,
        };
        params = params.with_segment(placed.shape)?;
        beside.push(keys.write_tier(&params, &block_map, placed, part, writer)?);
    }
    if let Some(room) = plan.room {
        let shapes = plan.change_shapes(&params, lengths)?;
        let first = params.segments().len();
        params = shapes
            .iter()
            .copied()
            .try_fold(params, |params: TableParams, shape| params.with_segment(shape))?;
        let seed = &seed;
        let block_map = &block_map;
        let filter = plan.filter;
        let delta = ChangeLayout { changes, room, seed, block_map, filter, cpu, crew, progress };
        beside.extend(delta.lay_out(&params, first, &shapes, plan.longest(), writer)?);
    }
    let keys = KeyLookup {
        filter: plan.filter,
        seed,
        thresholds: block_map.thresholds,
        block_seeds: block_map.seeds,
    };
    let lookup = if plan.by_key { Lookup::Key(keys) } else { Lookup::Position(keys) };
    Ok(Some(LaidTable { params, slot: plan.slot, lookup, base, beside }))
}

/// Returns the digest of a key: of the record's key, or of its position.
fn digest(records: &SpooledRecords, by_key: bool, seed: &[u8; 32], key: u32) -> KeyDigest {
    let position = position_key(u64::from(key));
    let key = if by_key { records.record(key as usize).0 } else { &position };
    KeyDigest::new(seed, key).expect("its length was checked when it was read")
}

/// The keys of a table, with the inputs of their layout.
struct KeyLayout<'a> {
    records: &'a SpooledRecords,
    plan: &'a Plan,
    digest: &'a Digest<'a>,
    cpu: &'a Cpu,
    crew: Option<&'a dyn Crew>,
    progress: &'a dyn Progress,
}

impl KeyLayout<'_> {
    /// Returns the parameters of the base alone, and its block map. The map has seeds only if the geometry is kept.
    fn base(&self) -> Result<(TableParams, BlockMap), BuildError> {
        let plan = self.plan;
        if let Some(kept) = &plan.kept {
            return Ok((kept.base.clone(), kept.keys.block_map()));
        }
        let planned = plan.params.base().facts();
        let (block_map, capacity) = self.balanced(planned.shape.blocks)?;
        let columns = match (plan.filter.slots_for(capacity), planned.shape.columns) {
            (columns, _) if !plan.has_segments() => columns,
            (columns, planned) if columns <= planned => planned,
            // Segments have the columns of the base.
            (columns, all) if planned.segments.column_unit == all => columns,
            (columns, _) => divisible(columns, planned.segments.column_unit),
        };
        let blocks = block_map.blocks();
        let slot_bytes = plan.slot.slot_bytes();
        Ok((plan.scheme.params(TableShape { columns, blocks, slot_bytes })?, block_map))
    }

    /// Returns a block map for at most `blocks` blocks, and the number of keys in the fullest block.
    fn balanced(&self, blocks: usize) -> Result<(BlockMap, usize), BuildError> {
        // A descriptor lists at most this many.
        let blocks = blocks.clamp(1, MAX_BLOCKS);
        let keys = self.each("hash keys", |digest| BlockKey::new(&digest, blocks))?;
        let keys = self.cpu.install(|| BlockKeys::new(keys, blocks));
        let mean = self.records.len().div_ceil(blocks);
        let mut capacities = BALANCE_SLACK.map(|slack| (mean as f64 * slack).ceil() as usize).to_vec();
        capacities.dedup();
        for capacity in capacities {
            self.progress.check()?;
            if let Ok(map) = keys.assign(capacity) {
                return Ok((map, capacity));
            }
        }
        // The blocks have too few keys to even out the loads, so every block has room for the keys of the fullest one.
        Ok((BlockMap::unbalanced(blocks), keys.fullest()))
    }

    /// Returns the keys of every block, in the order of the records.
    fn members(&self, block_map: &BlockMap) -> Result<Members, BuildError> {
        let blocks = self.each("sort keys", |digest| block_map.block_of(&digest) as u32)?;
        let pairs = blocks.iter().zip(0u32..).map(|(&block, key)| (block as usize, key));
        Ok(Members::new(block_map.blocks(), pairs))
    }

    /// Computes a value of each key's digest, some keys at a time, so that not all records are in memory.
    fn each<T: Send>(&self, stage: &str, of: impl Fn(KeyDigest) -> T + Sync) -> Result<Vec<T>, BuildError> {
        let count = self.records.len();
        self.progress.start(stage, count as u64, "keys");
        let mut all = Vec::with_capacity(count);
        for first in (0..count).step_by(KEYS_AT_A_TIME) {
            self.progress.check()?;
            let some = first..count.min(first + KEYS_AT_A_TIME);
            let keys = some.len();
            self.cpu
                .install(|| all.par_extend(some.into_par_iter().map(|key| of((self.digest)(key as u32)))));
            self.records.release();
            self.progress.advance(keys as u64);
        }
        Ok(all)
    }

    /// Returns whether every block of the base can be solved under its present seed.
    fn solves(
        &self,
        filter: FilterParams,
        members: &Members,
        block_map: &BlockMap,
    ) -> Result<bool, BuildError> {
        self.progress.start("keep filters", self.records.len() as u64, "keys");
        let solved = self.cpu.install(|| {
            block_map
                .seeds
                .par_iter()
                .enumerate()
                .map(|(block, &seed): (usize, &u8)| -> Result<bool, BuildError> {
                    self.progress.check()?;
                    let keys = members.of(block);
                    let digests: Vec<_> = keys.iter().map(|&key| (self.digest)(key)).collect();
                    let is_solved = filter.build_under::<u8>(seed, &digests, &[], 0, self.cpu, &mut [])?;
                    self.progress.advance(keys.len() as u64);
                    Ok(is_solved)
                })
                .collect::<Result<Vec<_>, _>>()
        })?;
        Ok(solved.into_iter().all(|is_solved| is_solved))
    }

    fn beside<'b>(&'b self, params: &'b TableParams, block_map: &'b BlockMap) -> Beside<'b> {
        let &Self { plan, digest, cpu, crew, progress, .. } = self;
        let filter = plan.filter;
        let base = params.base().facts();
        Beside { digest, block_map, filter, base, cpu, crew, progress }
    }

    /// Returns the keys whose values are longer than `start` bytes.
    fn longer_than(&self, start: usize) -> Vec<u32> {
        let lengths = (0u32..).zip(self.records.value_lens());
        lengths.filter_map(|(key, length)| (length as usize > start).then_some(key)).collect()
    }

    /// Assigns the keys of the tier with the bytes `part` to blocks, in the cheapest shape in which they all fit.
    fn placed(
        &self,
        params: &TableParams,
        block_map: &BlockMap,
        part: Range<usize>,
    ) -> Result<PlacedKeys, BuildError> {
        let keys = self.longer_than(part.start);
        let beside = self.beside(params, block_map);
        let candidates = SegmentShapes::beside(params, self.plan.filter)
            .of_slots(part.len(), |entries| beside.fullest(&keys, entries));
        for candidate in candidates {
            if let Some(placed) = beside.place(&keys, candidate.shape)? {
                return Ok(placed);
            }
        }
        Err(BuildError::NoTier { records: keys.len(), from: part.start })
    }

    /// Assigns the keys of all tiers to blocks, in the kept shapes. Returns `None` if they do not fit.
    fn placed_as_before(
        &self,
        params: &TableParams,
        block_map: &BlockMap,
    ) -> Result<Option<Vec<PlacedKeys>>, BuildError> {
        let beside = self.beside(params, block_map);
        let shapes = self.plan.kept.iter().flat_map(|kept| &kept.tiers);
        self.plan
            .tiers()
            .zip(shapes)
            .map(|(part, &shape): (Range<usize>, _)| beside.place(&self.longer_than(part.start), shape))
            .collect()
    }

    /// Writes the tier of the bytes `part`, the last segment of `params`.
    fn write_tier(
        &self,
        params: &TableParams,
        block_map: &BlockMap,
        placed: PlacedKeys,
        part: Range<usize>,
        writer: &SnapshotWriter,
    ) -> Result<(Segment, Written), BuildError> {
        let index = params.segments().len() - 1;
        let records = placed.keys() as u64;
        self.progress.start("filter", records, "keys");
        let encode = |key: u32, _: &KeyDigest, slot: &mut [u8]| {
            encode_part(self.records.record(key as usize).1, part.clone(), slot);
        };
        let beside = self.beside(params, block_map);
        let written = beside.write(&params.segments()[index], &placed, &encode, &writer.segment(index))?;
        Ok((placed.segment(Role::Tier, records), written))
    }
}
