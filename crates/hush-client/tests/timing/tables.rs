//! Look-ups in whole tables: what a client does between the key and the protocol, and between the slots and the value.

use std::{hint::black_box, sync::Arc};

use hush_client::{Acceptance, Table, Wanted};
use hush_he::codec::pack_rounded;
use hush_protocol::{
    Protocol,
    any_page::Slots,
    client::Hint,
    descriptor::{BlobRef, DESCRIPTOR_VERSION, Descriptor, KeyLookup, Lookup, Role, Segment},
    facts::WordBits,
    keyword::{FilterKind, KeyDigest, LaneMap},
    schema::Schema,
    slot::SlotFormat,
    sorted::{FenceFile, Sorted, fences::built_text, found::RowMatch, leaf::LeafWriter, order::SortOrder},
};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::cases::{Case, Secret, Work};

const COLUMNS: usize = 512;
const BLOCKS: usize = 4;
const VALUE_BYTES: usize = 40;
/// The columns of the changes, and the blocks.
const CHANGES: (usize, usize) = (256, 2);
const SEED: [u8; 32] = [5; 32];
const LEAVES: u32 = (COLUMNS * BLOCKS) as u32;

/// Returns the cases of whole tables.
pub(crate) fn all() -> Vec<Case> {
    vec![
        Case::new("table: query, position", |_| {
            asks(by_position(), |secret| Wanted::Index(secret.below(u64::from(LEAVES))))
        }),
        Case::new("table: query, key, with changes", |_| {
            asks(by_key(), |secret| Wanted::Key(secret.key().to_vec()))
        }),
        Case::new("table: query, sorted row", |_| {
            asks(sorted(), |secret| Wanted::Row(RowMatch::AtOrBelow, secret.key().to_vec()))
        }),
        Case::new("table: decoding, a key there or absent", |_| {
            decodes(by_key(), |secret, table| {
                let own = KeyDigest::new(&SEED, secret.key()).unwrap().fingerprint(8).to_vec();
                let there = [&own[..], &[7; VALUE_BYTES]].concat();
                let slot = secret.choose(&there, &[9; 8 + VALUE_BYTES]);
                (Wanted::Key(secret.key().to_vec()), answer(table, &slot))
            })
        })
        .told("an answer is decoded when the requests of the call are out"),
        Case::new("table: decoding, a row at the beginning of a leaf or at its end", |_| {
            decodes(sorted(), |secret, table| {
                let mut leaf = LeafWriter::default();
                leaf.push(b"a", b"1");
                leaf.push(b"b", b"2");
                leaf.push(b"y", b"3");
                let mut slot = vec![leaf.bytes() as u8];
                slot.extend(leaf.finish());
                slot.resize(1 + VALUE_BYTES, 0);
                (Wanted::Row(RowMatch::AtOrBelow, secret.choose(b"ab", b"zz")), answer(table, &slot))
            })
        })
        .told("an answer is decoded when the requests of the call are out"),
    ]
}

/// Returns what encrypts a look-up.
fn asks(table: Arc<Table>, wanted: impl Fn(&Secret) -> Wanted) -> impl Fn(&Secret) -> Work {
    move |secret| {
        let (table, wanted) = (table.clone(), wanted(secret));
        Box::new(move || {
            black_box(table.query(&wanted)).unwrap();
        })
    }
}

/// Returns what decodes an answer to a look-up.
fn decodes(
    table: Arc<Table>,
    answered: impl Fn(&Secret, &Table) -> (Wanted, Vec<u8>),
) -> impl Fn(&Secret) -> Work {
    move |secret| {
        let (wanted, answer) = answered(secret, &table);
        let (_, pending) = table.query(&wanted).unwrap();
        let table = table.clone();
        Box::new(move || {
            black_box(table.decoded(&pending, &answer));
        })
    }
}

/// Returns the answer in which every slot of the base is `slot`, and every change another key's. The hint is zeros, so that an
/// answer is not encrypted.
fn answer(table: &Table, slot: &[u8]) -> Vec<u8> {
    let [.., bits] = table.facts().word_bits.unwrap();
    let words: Vec<u32> = slot.iter().map(|&byte| u32::from(byte) << 24).collect();
    let mut answer = pack_rounded(&words.repeat(BLOCKS), bits);
    answer.resize(table.facts().answer_bytes, 0);
    answer
}

fn by_position() -> Arc<Table> {
    opened(descriptor(SlotFormat::for_values(0, VALUE_BYTES, VALUE_BYTES)), Vec::new())
}

fn by_key() -> Arc<Table> {
    let mut descriptor = descriptor(SlotFormat::for_values(8, VALUE_BYTES, VALUE_BYTES));
    let bytes = |count: usize| (0..count).map(|at| (at * 77) as u8).collect::<Vec<u8>>();
    descriptor.lookup = Lookup::Key(KeyLookup {
        filter: FilterKind::Band128,
        seed: SEED,
        thresholds: bytes(BLOCKS),
        block_seeds: bytes(BLOCKS),
    });
    let (columns, blocks) = CHANGES;
    let slot_bytes = hush_protocol::changes::ChangeFormat::new(VALUE_BYTES, VALUE_BYTES).slot_bytes();
    descriptor.segments = vec![Segment {
        role: Role::Delta,
        records: 100,
        columns,
        blocks,
        entries: 1,
        slot_bytes,
        lanes: LaneMap { seeds: vec![3], thresholds: bytes(blocks) },
        hint: None,
        whitening: None,
        database: [0; 32],
    }];
    opened(descriptor, Vec::new())
}

/// Returns a sorted table, whose fences are two letters each.
fn sorted() -> Arc<Table> {
    let mut descriptor = descriptor(SlotFormat::for_values(0, 0, VALUE_BYTES));
    let texts: Vec<Vec<u8>> = (0..LEAVES).map(|leaf| (leaf + 0x6161).to_be_bytes()[2..].to_vec()).collect();
    let fences = built_text(std::iter::once(&b""[..]).chain(texts[1..].iter().map(|text| &text[..])));
    let frame = compress_to_vec(&fences[..], CompressionLevel::Fastest);
    let blob = BlobRef { blake3: blake3::hash(&frame).into(), bytes: frame.len() as u64 };
    let schema = r#"{"key":[["word","string"]],"value":[["meaning","string"]]}"#;
    descriptor.schema = Some(serde_json::from_str::<Schema>(schema).unwrap());
    descriptor.sorted = Some(Sorted {
        order: SortOrder::Bytes,
        range: None,
        rows: descriptor.records,
        overlap: 0,
        fences: FenceFile { blob, length: fences.len() as u64 },
        added: None,
    });
    opened(descriptor, frame)
}

/// Returns the descriptor of a table over LWE by position.
fn descriptor(slot: SlotFormat) -> Descriptor {
    let page = Protocol::Simple.page();
    let preset = page.default_set(slot.slot_bytes());
    let slots = Slots { count: COLUMNS * BLOCKS, slot_bytes: slot.slot_bytes(), by_key: false };
    let table = page.table(preset, page.shape(preset, slots, Some(COLUMNS)).unwrap()).unwrap();
    let word_bits: Option<WordBits> = table.facts().word_bits;
    Descriptor {
        version: DESCRIPTOR_VERSION,
        epoch: [0; 32],
        protocol: Protocol::Simple,
        preset: preset.into(),
        records: slots.count as u64,
        columns: COLUMNS,
        blocks: BLOCKS,
        word_bits,
        form: Default::default(),
        slot,
        schema: None,
        compression: None,
        sorted: None,
        lookup: Lookup::Index,
        hint: None,
        whitening: None,
        database: [0; 32],
        segments: Vec::new(),
        signature: None,
    }
}

/// Opens a table whose hints are zeros. `fences` is the file of fences, if there is one.
fn opened(mut descriptor: Descriptor, fences: Vec<u8>) -> Arc<Table> {
    let params = descriptor.params().unwrap();
    let hints = params.segments().iter().map(|segment| vec![0; segment.facts().hint_bytes as usize]);
    let hints: Vec<Vec<u8>> = hints.collect();
    let blob = |hint: &Vec<u8>| Some(BlobRef { blake3: [0; 32], bytes: hint.len() as u64 });
    descriptor.hint = blob(&hints[0]);
    for (segment, hint) in descriptor.segments.iter_mut().zip(&hints[1..]) {
        segment.hint = blob(hint);
    }
    descriptor.seal();
    let files = [fences].into_iter().filter(|fences| !fences.is_empty()).chain(hints);
    let files = files.map(|file| Arc::new(file) as Hint);
    Arc::new(Table::new(descriptor, files, &Acceptance::default()).unwrap())
}
