//! Small tables of parameter sets for tests, as descriptors say them.

use std::sync::Arc;

use hush_client::{Acceptance, PendingLookup, Table, Wanted};
use hush_protocol::{
    Protocol,
    client::Hint,
    descriptor::{BlobRef, DESCRIPTOR_VERSION, Descriptor, KeyLookup, Lookup, Role, Segment, WhiteningSeed},
    keyword::{FilterKind, LaneMap},
    slot::SlotFormat,
    table::TableShape,
};

/// Parameter sets for tests, of which every protocol has one.
const SETS: [&str; 7] = [
    "INSECURE_PLAIN",
    "INSECURE_RING_N256",
    "INSECURE_TFHE_N256",
    "INSECURE_PRIVKS_N256",
    "INSECURE_PACK_N256",
    "INSECURE_COLPACK_N256",
    "DOWNLOAD",
];
const BLOCKS: usize = 3;
const COLUMNS: usize = 8;
/// Columns of a table of several tiers: those that its filter takes at least.
const TIERED_COLUMNS: usize = 128;

/// Returns every protocol, by index and by key.
pub fn descriptors() -> Vec<Descriptor> {
    let mut descriptors = Vec::new();
    for protocol in Protocol::ALL {
        let thresholds = vec![0, 1, 255];
        let block_seeds = vec![0, 1, 2];
        let key = KeyLookup { filter: FilterKind::Band64, seed: [4; 32], thresholds, block_seeds };
        descriptors.push(tiered(*protocol));
        descriptors.push(descriptor(*protocol, Lookup::Index));
        descriptors.push(descriptor(*protocol, Lookup::Key(key)));
    }
    descriptors
}

/// Returns a table of a protocol, of two tiers and looked up by position.
pub fn tiered(protocol: Protocol) -> Descriptor {
    let (page, filter) = (protocol.page(), FilterKind::Band64);
    let blocks = if page.has_columns() { BLOCKS } else { 1 };
    let keys = KeyLookup { filter, seed: [4; 32], thresholds: vec![7; blocks], block_seeds: vec![1; blocks] };
    let base = of_columns(protocol, Lookup::Position(keys), TIERED_COLUMNS);
    let rule = base.params().expect("a table").base().facts().segments.clone();
    let (columns, entries) = (TIERED_COLUMNS, rule.entries[rule.entries.len() - 1]);
    let lanes = LaneMap { seeds: vec![3; entries], thresholds: vec![100; entries] };
    let segment = Segment {
        role: Role::Tier,
        records: 9,
        columns,
        blocks: entries,
        entries,
        slot_bytes: 6,
        lanes,
        hint: None,
        whitening: base.whitening,
        database: [6; 32],
    };
    let slot = SlotFormat { max_value_bytes: 11, head_bytes: Some(5), ..base.slot };
    let mut tiered = Descriptor { slot, segments: vec![segment], ..base };
    let bytes = tiered.params().expect("a table of two tiers").segments()[1].facts().hint_bytes;
    let blake3 = *blake3::hash(&hint(bytes)).as_bytes();
    tiered.segments[0].hint = (bytes > 0).then_some(BlobRef { blake3, bytes });
    tiered.seal();
    tiered
}

/// Returns a table of a protocol.
pub fn descriptor(protocol: Protocol, lookup: Lookup) -> Descriptor {
    of_columns(protocol, lookup, COLUMNS)
}

fn of_columns(protocol: Protocol, lookup: Lookup, columns: usize) -> Descriptor {
    let page = protocol.page();
    let preset = SETS.into_iter().find(|set| page.has_set(set)).expect("a set for tests");
    let fingerprint_bytes = if matches!(lookup, Lookup::Key(_)) { 8 } else { 0 };
    let slot = SlotFormat::for_values(fingerprint_bytes, 0, 5);
    let blocks = if page.has_columns() { BLOCKS } else { 1 };
    let shape = TableShape { columns, blocks, slot_bytes: slot.slot_bytes() };
    let table = page.table(preset, shape).expect("within the limits");
    let facts = table.facts();
    let lookup = match lookup {
        Lookup::Key(mut key) => {
            key.thresholds.truncate(blocks);
            key.block_seeds.truncate(blocks);
            Lookup::Key(key)
        }
        other => other,
    };
    let hint = BlobRef { blake3: *blake3::hash(&hint(facts.hint_bytes)).as_bytes(), bytes: facts.hint_bytes };
    let mut descriptor = Descriptor {
        version: DESCRIPTOR_VERSION,
        epoch: [0; 32],
        protocol,
        preset: preset.into(),
        records: (columns * blocks) as u64,
        columns,
        blocks,
        word_bits: facts.word_bits,
        form: Default::default(),
        slot,
        schema: None,
        compression: None,
        sorted: None,
        lookup,
        hint: (facts.hint_bytes > 0).then_some(hint),
        whitening: facts.is_whitened.then_some(WhiteningSeed([3; 32])),
        database: [5; 32],
        segments: Vec::new(),
        signature: None,
    };
    descriptor.seal();
    descriptor
}

/// Returns a hint of so many bytes.
pub fn hint(bytes: u64) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7) as u8).collect()
}

/// A table as a client has it, and a look-up in it.
pub(crate) struct Asked {
    pub(crate) table: Table,
    pub(crate) pending: PendingLookup,
}

impl Asked {
    /// Creates a look-up in the table of a descriptor, with a hint of the length that it says.
    pub(crate) fn new(descriptor: Descriptor) -> Self {
        let hints = descriptor.given().filter_map(|(hint, _)| hint).map(|blob| blob.bytes);
        let given: Vec<_> = hints.map(|bytes| Arc::new(hint(bytes)) as Hint).collect();
        let wanted = match descriptor.lookup {
            Lookup::Index | Lookup::Position(_) => Wanted::Index(descriptor.records - 1),
            Lookup::Key(_) => Wanted::Key(b"a key".to_vec()),
        };
        let acceptance = Acceptance::of_weak(&descriptor.preset);
        let mut table = Table::new(descriptor, given, &acceptance).expect("a table of its descriptor");
        table.use_keys(&[6; 32]).expect("nothing else is missing");
        let (query, pending) = table.query(&wanted).expect("a look-up of its kind");
        let sizes = table.facts().query;
        assert_eq!([query.first.len(), query.second.len()], [sizes.first, sizes.second]);
        assert_eq!([query.packed.len(), query.key_id.len()], [sizes.packed, sizes.key_id]);
        Self { table, pending }
    }
}
