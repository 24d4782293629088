//! Layout of a table that is looked up by key: keys to blocks, a filter in every block.

use hush_cpu::Cpu;
use hush_math::csprng::Csprng;
use hush_ops::tiling::TILE_COLS;
use hush_protocol::{
    ProtocolError,
    descriptor::{KeyLookup, Lookup},
    keyword::{BlockMap, FilterParams, KeyDigest},
    layout,
    slot::SlotFormat,
    table::{Protocol, TableParams, TableShape},
};
use hush_store::{
    ingest::SpooledRecords,
    snapshot::{DB_FILE, SnapshotWriter},
    tiles::TileWriter,
};
use rayon::prelude::*;

use super::{BuildError, BuildOptions, Laid};
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
    let slot =
        SlotFormat::for_values(options.fingerprint_bytes, records.min_value_len(), records.max_value_len());
    let mut seed = [0; 32];
    Csprng::from_os().fill_bytes(&mut seed);
    let digests = hash_keys(records, &seed, cpu, progress)?;
    let (protocol, blocks) = protocol_and_blocks(records.len(), slot.slot_bytes(), options);
    let (mut block_map, capacity) = balance(&digests, blocks);
    let columns = options.filter.slots_for(capacity);
    let shape = TableShape { columns, blocks, slot_bytes: slot.slot_bytes() };
    let params = TableParams::new(protocol, options.lwe, shape)?;

    let mut db = writer.create_mapped(DB_FILE, shape.tiling().bytes())?;
    let block = BlockBuilder {
        records,
        digests: &digests,
        filter: FilterParams { kind: options.filter, slots: columns },
        slot,
        tiles: TileWriter::new(shape.tiling(), db.bytes()),
        cpu,
    };
    progress.start("filter", records.len() as u64, "keys");
    let members = members(&digests, &block_map);
    block_map.seeds = cpu.install(|| {
        let seeds = members.par_iter().enumerate().map(|(index, keys)| {
            let seed = block.build(index, keys)?;
            progress.advance(keys.len() as u64);
            Ok(seed)
        });
        seeds.collect::<Result<Vec<u8>, BuildError>>()
    })?;
    let lookup = Lookup::Key(KeyLookup {
        filter: options.filter,
        seed,
        thresholds: block_map.thresholds,
        block_seeds: block_map.seeds,
    });
    Ok(Laid { params, slot, lookup, db })
}

fn hash_keys(
    records: &SpooledRecords,
    seed: &[u8; 32],
    cpu: &Cpu,
    progress: &dyn Progress,
) -> Result<Vec<KeyDigest>, ProtocolError> {
    progress.start("hash keys", records.len() as u64, "keys");
    let hash = |index: usize| KeyDigest::new(seed, records.record(index).0);
    let digests = cpu.install(|| (0..records.len()).into_par_iter().map(hash).collect());
    progress.advance(records.len() as u64);
    digests
}

/// Protocol and number of blocks for `keys` keys.
fn protocol_and_blocks(keys: usize, slot_bytes: usize, options: &BuildOptions) -> (Protocol, usize) {
    let slots = options.filter.slots_for(keys);
    let protocol = options.protocol_for(slots, slot_bytes);
    let columns =
        options.columns.unwrap_or_else(|| layout::columns(protocol, &options.lwe, slots, slot_bytes));
    let blocks = match protocol {
        Protocol::Frodo => 1,
        Protocol::Simple | Protocol::Double => slots.div_ceil(columns.max(1)),
    };
    (protocol, blocks)
}

/// A block map, and the most keys that a block then has to hold.
fn balance(digests: &[KeyDigest], blocks: usize) -> (BlockMap, usize) {
    let mean = digests.len().div_ceil(blocks);
    let mut capacities = BALANCE_SLACK.map(|slack| (mean as f64 * slack).ceil() as usize).to_vec();
    capacities.dedup();
    capacities
        .into_iter()
        .find_map(|capacity| BlockMap::assign(digests, blocks, capacity).ok().map(|map| (map, capacity)))
        .unwrap_or_else(|| {
            // So few keys a block that loads cannot be evened out: room for the fullest one.
            let map = BlockMap::unbalanced(blocks);
            let fullest = members(digests, &map).iter().map(Vec::len).max().unwrap_or(0);
            (map, fullest)
        })
}

/// The keys of every block, in the order of the input.
fn members(digests: &[KeyDigest], block_map: &BlockMap) -> Vec<Vec<u32>> {
    let mut members = vec![Vec::new(); block_map.blocks()];
    for (index, digest) in digests.iter().enumerate() {
        members[block_map.block_of(digest)].push(index as u32);
    }
    members
}

/// Builds the filter of one block and writes its slots.
struct BlockBuilder<'a> {
    records: &'a SpooledRecords,
    digests: &'a [KeyDigest],
    filter: FilterParams,
    slot: SlotFormat,
    tiles: TileWriter<'a>,
    cpu: &'a Cpu,
}

impl BlockBuilder<'_> {
    /// Returns the seed under which the block's filter could be built.
    fn build(&self, block: usize, keys: &[u32]) -> Result<u8, BuildError> {
        let digests: Vec<KeyDigest> = keys.iter().map(|&key| self.digests[key as usize].clone()).collect();
        let (slots, size) = (self.filter.slots, self.slot.slot_bytes());
        let stripe = (STRIPE_BYTES / slots).max(MIN_STRIPE).min(size);
        let mut seed = 0;
        for first in (0..size).step_by(stripe) {
            let width = stripe.min(size - first);
            let values = self.values(keys, &digests, first, width);
            let mut out = vec![0; slots * width];
            // The seed depends on the keys alone, so that every stripe has the same one.
            seed = self.filter.build(&digests, &values, width, self.cpu, &mut out)?;
            drop(values);
            out.par_chunks(TILE_COLS * width)
                .enumerate()
                .for_each(|(tile, slots)| self.tiles.write(block * size + first, tile, slots, width));
        }
        Ok(seed)
    }

    /// Bytes `first .. first + width` of every key's slot value.
    fn values(&self, keys: &[u32], digests: &[KeyDigest], first: usize, width: usize) -> Vec<u8> {
        let size = self.slot.slot_bytes();
        let mut values = vec![0; keys.len() * width];
        let fill = |buffer: &mut Vec<u8>, ((&key, digest), out): ((&u32, &KeyDigest), &mut [u8])| {
            let fingerprint = digest.fingerprint(usize::from(self.slot.fingerprint_bytes));
            self.slot.encode_into(fingerprint, self.records.record(key as usize).1, buffer);
            out.copy_from_slice(&buffer[first..first + width]);
        };
        keys.par_iter().zip(digests).zip(values.par_chunks_mut(width)).for_each_init(|| vec![0; size], fill);
        values
    }
}
