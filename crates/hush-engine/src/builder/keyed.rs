//! Layout of a table that is looked up by key: keys to blocks, a filter in every block.

use hush_cpu::Cpu;
use hush_math::csprng::Csprng;
use hush_ops::{symbol::Symbol, tiling::TILE_COLS};
use hush_protocol::{
    descriptor::{KeyLookup, Lookup},
    facts::Database,
    keyword::{BlockMap, FilterParams, KeyDigest},
    ring_table::RingTable,
    slot::SlotFormat,
    symbols::to_symbols,
    table::TableShape,
};
use hush_store::{
    ingest::SpooledRecords,
    snapshot::{DB_FILE, SnapshotWriter},
    tiles::TileWriter,
};
use rayon::prelude::*;

use super::{
    BuildError, BuildOptions, Laid,
    ring::{self, Place},
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

/// Chooses the shape, builds every block's filter and writes its slots.
pub(super) fn lay_out(
    records: &SpooledRecords,
    options: &BuildOptions,
    writer: &SnapshotWriter,
    cpu: &Cpu,
    progress: &dyn Progress,
) -> Result<Laid, BuildError> {
    let slot = options.slot_format(true, (records.min_value_len(), records.max_value_len()));
    let mut seed = [0; 32];
    Csprng::from_os().fill_bytes(&mut seed);
    let digests = hash_keys(records, &seed, cpu, progress)?;
    let slots = options.slots(true, records.len(), slot);
    let scheme = options.scheme_for(slots)?;
    let (mut block_map, capacity) = balance(&digests, scheme.shape(slots)?.blocks, progress)?;
    let columns = options.filter.slots_for(capacity);
    let shape = TableShape { columns, blocks: block_map.blocks(), slot_bytes: slot.slot_bytes() };
    let params = scheme.params(shape)?;
    let filter = FilterParams { kind: options.filter, slots: columns };
    let members = members(&digests, &block_map);
    let blocks = Blocks { records, digests: &digests, members: &members, filter, slot, cpu, progress };
    progress.start("filter", records.len() as u64, "keys");
    let (db, whitening) = match params.database() {
        Database::Bytes(tiling) => {
            let mut db = writer.create_mapped(DB_FILE, tiling.bytes())?;
            let tiles = TileWriter::new(tiling, db.bytes());
            block_map.seeds = blocks.each(|block, keys| blocks.write_bytes(block, keys, &tiles))?;
            (db, None)
        }
        Database::Plaintexts(table) => {
            // Its space first: a disk that is too small is found before the work.
            let db = writer.create_mapped(DB_FILE, table.tiling().bytes())?;
            // The filters before the plaintexts, since a plaintext holds slots of many blocks.
            let size = table.slot_symbols();
            let mut scratch = writer.create_scratch(shape.blocks * columns * size * size_of::<u32>())?;
            let solved = WordSlots::new(scratch.words(), columns * size);
            block_map.seeds = blocks.each(|block, keys| blocks.write_words(block, keys, &table, &solved))?;
            let fill = |place: Place, symbols: &mut [u32]| {
                let first = place.row * size + place.plane * table.ring().degree();
                solved.read(place.block, first, symbols);
            };
            let seed = ring::write_db(&table, &db, cpu, progress, &fill)?;
            (db, Some(seed))
        }
    };
    let lookup = Lookup::Key(KeyLookup {
        filter: options.filter,
        seed,
        thresholds: block_map.thresholds,
        block_seeds: block_map.seeds,
    });
    Ok(Laid { params, slot, lookup, db, whitening })
}

fn hash_keys(
    records: &SpooledRecords,
    seed: &[u8; 32],
    cpu: &Cpu,
    progress: &dyn Progress,
) -> Result<Vec<KeyDigest>, BuildError> {
    progress.start("hash keys", records.len() as u64, "keys");
    let hash = |index: usize| {
        progress.check()?;
        Ok(KeyDigest::new(seed, records.record(index).0)?)
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

/// The filters of all blocks.
struct Blocks<'a> {
    records: &'a SpooledRecords,
    digests: &'a [KeyDigest],
    /// The keys of every block.
    members: &'a [Vec<u32>],
    filter: FilterParams,
    slot: SlotFormat,
    cpu: &'a Cpu,
    progress: &'a dyn Progress,
}

impl Blocks<'_> {
    /// Builds every block; returns the seeds under which they could be built.
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
        let (digests, slots, size) = (self.digests_of(keys), self.filter.slots, self.slot.slot_bytes());
        let stripe = (STRIPE_BYTES / slots).max(MIN_STRIPE).min(size);
        let mut seed = 0;
        for first in (0..size).step_by(stripe) {
            self.progress.check()?;
            let width = stripe.min(size - first);
            let values = self.values(keys, &digests, width, |slot, out: &mut [u8]| {
                out.copy_from_slice(&slot[first..first + width]);
            });
            let mut out = vec![0; slots * width];
            // The seed depends on the keys alone, so that every stripe has the same one.
            seed = self.filter.build(&digests, &values, width, self.cpu, &mut out)?;
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
        let (digests, size) = (self.digests_of(keys), table.slot_symbols());
        let bits = table.ring().plaintext_bits();
        let values = self.values(keys, &digests, size, |slot, out: &mut [u32]| to_symbols(slot, bits, out));
        let mut out = vec![0; self.filter.slots * size];
        let seed = self.filter.build(&digests, &values, size, self.cpu, &mut out)?;
        solved.write(block, &out);
        Ok(seed)
    }

    fn digests_of(&self, keys: &[u32]) -> Vec<KeyDigest> {
        keys.iter().map(|&key| self.digests[key as usize].clone()).collect()
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
            let fingerprint = digest.fingerprint(usize::from(self.slot.fingerprint_bytes));
            self.slot.encode_into(fingerprint, self.records.record(key as usize).1, buffer);
            convert(buffer, out);
        };
        let size = self.slot.slot_bytes();
        keys.par_iter().zip(digests).zip(values.par_chunks_mut(width)).for_each_init(|| vec![0; size], fill);
        values
    }
}
