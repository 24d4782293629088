//! The layout of segments beside a base, which answer the queries that are made for the base.

use hush_cpu::Cpu;
use hush_engine::Progress;
use hush_protocol::{
    any_page::SegmentParams,
    descriptor::{Role, Segment},
    facts::Facts,
    keyword::{BlockMap, FilterKind, KeyDigest, LaneMap, WrappedFilter},
    table::{SegmentShape, TableShape},
};
use hush_store::snapshot::SegmentWriter;
use rayon::prelude::*;

use super::{
    blocks::{BlockFilters, Digest, Encode, Solver},
    members::Members,
};
use crate::builder::{BuildError, Crew, Written};

/// The number of seeds that are tried to spread the keys of an entry over its lanes, before the segment gets another shape.
const LANE_SEEDS: u8 = 24;

/// The base, and the inputs of the layout of segments beside it.
pub(in crate::builder) struct Beside<'a> {
    /// The digest of each key that may be in a segment.
    pub(in crate::builder) digest: &'a Digest<'a>,
    /// The block map of the base.
    pub(in crate::builder) block_map: &'a BlockMap,
    /// The filter of the base.
    pub(in crate::builder) filter: FilterKind,
    /// The facts of the base.
    pub(in crate::builder) base: &'a Facts,
    pub(in crate::builder) cpu: &'a Cpu,
    pub(in crate::builder) crew: Option<&'a dyn Crew>,
    pub(in crate::builder) progress: &'a dyn Progress,
}

/// The keys of a segment, assigned to blocks that can be solved.
pub(in crate::builder) struct PlacedKeys {
    pub(in crate::builder) shape: SegmentShape,
    /// The keys of every entry.
    by_entry: Vec<Vec<u32>>,
    lanes: LaneMap,
}

impl PlacedKeys {
    /// Returns the number of keys.
    pub(in crate::builder) fn keys(&self) -> usize {
        self.by_entry.iter().map(Vec::len).sum()
    }

    /// Returns the descriptor's entry for the segment. Its hint, whitening and database are set later.
    pub(in crate::builder) fn segment(self, role: Role, records: u64) -> Segment {
        let SegmentShape { shape: TableShape { columns, blocks, slot_bytes }, entries } = self.shape;
        Segment {
            role,
            records,
            columns,
            blocks,
            entries,
            slot_bytes,
            lanes: self.lanes,
            hint: None,
            whitening: None,
            database: [0; 32],
        }
    }
}

impl Beside<'_> {
    /// Returns the number of `keys` in the fullest of `entries` entries.
    pub(in crate::builder) fn fullest(&self, keys: &[u32], entries: usize) -> usize {
        self.by_entry(keys, entries).iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Returns the keys of each of `entries` entries. The entry of a key is its entry in the base modulo `entries`.
    fn by_entry(&self, keys: &[u32], entries: usize) -> Vec<Vec<u32>> {
        let mut by_entry = vec![Vec::new(); entries];
        for &key in keys {
            let block = self.block_map.block_of(&(self.digest)(key));
            by_entry[block / self.base.lanes % entries].push(key);
        }
        by_entry
    }

    /// Returns the digest of a key, with the seed of its block in the base.
    fn seeded(&self, key: u32) -> (KeyDigest, u8) {
        let digest = (self.digest)(key);
        let seed = self.block_map.seed_of(&digest);
        (digest, seed)
    }

    fn filter(&self, shape: SegmentShape) -> WrappedFilter {
        let base_columns = self.base.shape.columns;
        WrappedFilter { kind: self.filter, base_columns, columns: shape.shape.columns }
    }

    /// Assigns keys to lanes such that every block can be solved. Returns `None` if no seed does so in this shape.
    pub(in crate::builder) fn place(
        &self,
        keys: &[u32],
        shape: SegmentShape,
    ) -> Result<Option<PlacedKeys>, BuildError> {
        let lanes = shape.lanes();
        let filter = self.filter(shape);
        let by_entry = self.by_entry(keys, shape.entries);
        let capacity = WrappedFilter::capacity(self.filter, shape.shape.columns);
        let entry = |keys: &Vec<u32>| -> Result<Option<(u8, Vec<u8>)>, BuildError> {
            let seeded: Vec<_> = keys.iter().map(|&key| self.seeded(key)).collect();
            for seed in 0..if lanes > 1 { LANE_SEEDS } else { 1 } {
                self.progress.check()?;
                let digests = seeded.iter().map(|(digest, _)| digest);
                let Ok(thresholds) = LaneMap::thresholds(digests, lanes, capacity, seed) else { continue };
                let mut blocks = vec![Vec::new(); lanes];
                for (digest, own) in &seeded {
                    blocks[LaneMap::lane_of(digest, seed, &thresholds)].push((digest, *own));
                }
                let solved = blocks
                    .par_iter()
                    .map(|keys: &Vec<_>| filter.build::<u8>(keys, &[], 0, self.cpu, &mut []))
                    .collect::<Result<Vec<_>, _>>()?;
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
            PlacedKeys { shape, by_entry, lanes: LaneMap { seeds, thresholds: thresholds.concat() } }
        }))
    }

    /// Writes the database of a segment. `encode` writes the slot of a key.
    pub(in crate::builder) fn write(
        &self,
        segment: &SegmentParams,
        placed: &PlacedKeys,
        encode: &Encode<'_>,
        writer: &SegmentWriter<'_>,
    ) -> Result<Written, BuildError> {
        let PlacedKeys { shape, by_entry, lanes } = placed;
        let keys =
            by_entry.iter().enumerate().flat_map(|(entry, keys)| keys.iter().map(move |&key| (entry, key)));
        let block = |(entry, key)| (lanes.block_of(&(self.digest)(key), entry, shape.lanes()) as u32, key);
        // Every key is hashed once.
        let blocks: Vec<_> = keys.map(block).collect();
        let pairs = blocks.iter().map(|&(block, key)| (block as usize, key));
        let members = Members::new(shape.shape.blocks, pairs);
        let solver = Solver::Beside { filter: self.filter(*shape), block_map: self.block_map };
        let &Self { digest, cpu, crew, progress, .. } = self;
        let release = &|| ();
        let members = &members;
        let shape = shape.shape;
        let blocks = BlockFilters { members, shape, digest, encode, solver, release, cpu, crew, progress };
        Ok(blocks.write(segment, writer)?.0)
    }
}

/// Writes the bytes `part` of a value into a slot, and zeros behind them.
pub(in crate::builder) fn encode_part(value: &[u8], part: std::ops::Range<usize>, slot: &mut [u8]) {
    let bytes = value.get(part.start..value.len().min(part.end)).unwrap_or_default();
    slot[..bytes.len()].copy_from_slice(bytes);
    slot[bytes.len()..].fill(0);
}
