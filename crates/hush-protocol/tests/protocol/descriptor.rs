//! A descriptor comes from the network: everything that can be wrong with it is an error, and nothing panics.

use hush_he::params::{COLPACK_N2048_Q52, DEFAULT_LWE, PACK_M31};
use hush_math::csprng::Csprng;
use hush_protocol::{
    Protocol, ProtocolError,
    descriptor::{
        BlobRef, Codec, Compression, DESCRIPTOR_VERSION, Descriptor, KeyLookup, Lookup, MAX_SEGMENTS, Role,
        Segment, WhiteningSeed,
    },
    keyword::{FilterKind, LaneMap},
    schema::Schema,
    slot::{MAX_VALUE_BYTES, SlotFormat},
    sorted::{FenceFile, Sorted, order::SortOrder},
    table::SegmentShape,
};

use crate::support::{COLUMN, shape, table};

/// Returns the descriptor of a table of three blocks.
pub(crate) fn descriptor(
    protocol: Protocol,
    set: &str,
    max_value_bytes: usize,
    lookup: Lookup,
) -> Descriptor {
    let fingerprint_bytes = if lookup == Lookup::Index { 0 } else { 8 };
    let slot = SlotFormat::for_values(fingerprint_bytes, 0, max_value_bytes);
    let table = table(protocol, set, shape(500, 3, slot.slot_bytes()));
    let facts = table.facts();
    let mut descriptor = Descriptor {
        version: DESCRIPTOR_VERSION,
        epoch: [0; 32],
        protocol,
        preset: set.into(),
        records: 1400,
        columns: facts.shape.columns,
        blocks: facts.shape.blocks,
        word_bits: facts.word_bits,
        form: Default::default(),
        slot,
        schema: None,
        compression: None,
        sorted: None,
        lookup,
        hint: (facts.hint_bytes > 0).then_some(BlobRef { blake3: [2; 32], bytes: facts.hint_bytes }),
        whitening: None,
        database: [3; 32],
        segments: Vec::new(),
        signature: None,
    };
    descriptor.seal();
    descriptor
}

fn by_key() -> Lookup {
    Lookup::Key(KeyLookup {
        filter: FilterKind::Band256,
        seed: [1; 32],
        thresholds: vec![0, 3, 0],
        block_seeds: vec![0; 3],
    })
}

fn valid() -> Descriptor {
    descriptor(Protocol::Simple, DEFAULT_LWE.name(), 20, by_key())
}

fn with(valid: &Descriptor, change: impl Fn(&mut Descriptor)) -> Descriptor {
    let mut descriptor = valid.clone();
    change(&mut descriptor);
    descriptor
}

/// A change by name.
type Change<'a> = (&'a str, &'a dyn Fn(&mut Descriptor));

/// A descriptor is read back; every change to it that is named is refused, though it is sealed.
fn every_change_is_refused(valid: &Descriptor, changes: &[Change]) {
    assert_eq!(Descriptor::from_json(&valid.to_json()).as_ref(), Ok(valid));
    for (name, change) in changes {
        let mut descriptor = with(valid, change);
        descriptor.seal();
        let read = Descriptor::from_json(&descriptor.to_json());
        assert!(read.is_err(), "{}: {name}", valid.protocol);
    }
}

/// A change to the key layer.
fn of_key(descriptor: &mut Descriptor, change: impl Fn(&mut KeyLookup)) {
    if let Lookup::Key(key) = &mut descriptor.lookup {
        change(key);
    }
}

#[test]
fn a_descriptor_round_trips() {
    let descriptor = valid();
    assert_eq!(Descriptor::from_json(&descriptor.to_json()), Ok(descriptor));
}

#[test]
fn every_contradiction_is_an_error() {
    every_change_is_refused(
        &valid(),
        &[
            ("preset", &|d| d.preset = "LWE_N1_BROKEN".into()),
            ("insecure shape", &|d| d.columns = 0),
            ("huge columns", &|d| d.columns = usize::MAX),
            ("huge blocks", &|d| d.blocks = usize::MAX / 2),
            ("noisy", &|d| d.word_bits = Some([9, 16, 12])),
            ("no bits", &|d| d.word_bits = Some([0, 16, 12])),
            ("too many bits", &|d| d.word_bits = Some([28, 16, 33])),
            ("hint length", &|d| d.hint.as_mut().unwrap().bytes += 1),
            ("no hint", &|d| d.hint = None),
            ("no widths", &|d| d.word_bits = None),
            ("whitening over LWE", &|d| d.whitening = Some(WhiteningSeed([1; 32]))),
            ("long values", &|d| d.slot.max_value_bytes = u32::MAX),
            ("length field", &|d| d.slot.length_bytes = 200),
            ("long fingerprint", &|d| d.slot.fingerprint_bytes = 255),
            ("no fingerprint", &|d| d.slot.fingerprint_bytes = 0),
            ("index with fingerprint", &|d| d.lookup = Lookup::Index),
            ("too few thresholds", &|d| of_key(d, |k| k.thresholds.truncate(2))),
            ("too many seeds", &|d| of_key(d, |k| k.block_seeds.push(0))),
        ],
    );
}

/// Returns a table of two tiers.
fn tiered(protocol: Protocol, set: &str) -> Descriptor {
    let slot = SlotFormat::for_values(8, 0, 400).with_head(40);
    let columns = 2048;
    let base = table(protocol, set, shape(columns, 3, slot.slot_bytes()));
    let (facts, entries) = (base.facts(), base.facts().segments.entries[0]);
    let segment = SegmentShape { shape: shape(columns / 4, entries, 360), entries };
    let params = base.clone().with_segment(segment).unwrap();
    let hint = |index: usize| {
        let bytes = params.segments()[index].facts().hint_bytes;
        (bytes > 0).then_some(BlobRef { blake3: [2; 32], bytes })
    };
    let beside = Segment {
        role: Role::Tier,
        records: 20,
        columns: columns / 4,
        blocks: entries,
        entries,
        slot_bytes: 360,
        lanes: LaneMap { seeds: vec![0; entries], thresholds: vec![9; entries] },
        hint: hint(1),
        whitening: None,
        database: [4; 32],
    };
    let mut descriptor = Descriptor {
        version: DESCRIPTOR_VERSION,
        epoch: [0; 32],
        protocol,
        preset: set.into(),
        records: 5000,
        columns,
        blocks: 3,
        word_bits: facts.word_bits,
        form: Default::default(),
        slot,
        schema: None,
        compression: None,
        sorted: None,
        lookup: Lookup::Key(KeyLookup {
            filter: FilterKind::Band64,
            seed: [1; 32],
            thresholds: vec![0; 3],
            block_seeds: vec![0; 3],
        }),
        hint: hint(0),
        whitening: None,
        database: [3; 32],
        segments: vec![beside],
        signature: None,
    };
    descriptor.seal();
    descriptor
}

#[test]
fn every_contradiction_of_segments_is_an_error() {
    for (protocol, set) in [
        (Protocol::Simple, DEFAULT_LWE.name()),
        (Protocol::Colpack, "INSECURE_COLPACK_N256"),
        (Protocol::Hybrid, "INSECURE_PACK_N256"),
    ] {
        every_change_is_refused(
            &tiered(protocol, set),
            &[
                ("version", &|d| d.version = 2),
                ("no segments", &|d| d.segments.clear()),
                ("many segments", &|d| d.segments = vec![d.segments[0].clone(); MAX_SEGMENTS]),
                ("by index", &|d| (d.lookup, d.slot.fingerprint_bytes) = (Lookup::Index, 0)),
                ("a filter that is not wrapped", &|d| of_key(d, |k| k.filter = FilterKind::Band256)),
                ("no band", &|d| of_key(d, |k| k.filter = FilterKind::Fuse3)),
                ("no divisor", &|d| d.segments[0].columns = 768),
                ("no column", &|d| d.segments[0].columns = 0),
                ("few columns", &|d| d.segments[0].columns = 64),
                ("no block", &|d| d.segments[0].blocks = 0),
                ("huge blocks", &|d| d.segments[0].blocks = usize::MAX),
                ("no entry", &|d| d.segments[0].entries = 0),
                ("other entries", &|d| d.segments[0].entries = 7),
                ("no slot", &|d| d.segments[0].slot_bytes = 0),
                ("short slot", &|d| d.segments[0].slot_bytes = 359),
                ("huge slot", &|d| d.segments[0].slot_bytes = usize::MAX),
                ("no head", &|d| d.slot.head_bytes = None),
                ("long head", &|d| d.slot.head_bytes = Some(u32::MAX)),
                ("no thresholds", &|d| d.segments[0].lanes.thresholds.clear()),
                ("many seeds", &|d| d.segments[0].lanes.seeds.push(0)),
                ("hint", &|d| d.segments[0].hint = Some(BlobRef { blake3: [2; 32], bytes: 7 })),
                ("whitening", &|d| d.segments[0].whitening = Some(WhiteningSeed([1; 32]))),
            ],
        );
    }
}

#[test]
fn a_segment_has_whole_blocks_of_the_matrix() {
    let no_multiple: Change = ("half a block", &|d| d.segments[0].columns = 128);
    every_change_is_refused(&tiered(Protocol::Simple, DEFAULT_LWE.name()), &[no_multiple]);
}

/// Messages quote a server's words short, and without control characters of a terminal.
#[test]
fn what_is_said_of_a_hostile_descriptor_fits_a_line() {
    let sealed = with(&valid(), |d| d.preset = "\x1b[2J".repeat(10_000));
    let sealed = with(&sealed, Descriptor::seal).to_json();
    let json = String::from_utf8(valid().to_json()).unwrap();
    let long = "\\u001b".repeat(10_000);
    for hostile in [
        String::from_utf8(sealed).unwrap(),
        json.replace("\"simple\"", &format!("\"{long}\"")),
        json.replace("\"band256\"", &format!("\"{long}\"")),
        json.replace("\"version\":3", &format!("\"version\":\"{long}\"")),
    ] {
        assert_ne!(hostile, json);
        let message = Descriptor::from_json(hostile.as_bytes()).unwrap_err().to_string();
        assert!(!message.chars().any(char::is_control) && message.len() < 1000, "{message}");
    }
}

/// A table whose answers are packed, with values of up to a mebibyte.
#[test]
fn every_contradiction_of_a_packed_table_is_an_error() {
    every_change_is_refused(
        &descriptor(Protocol::Hybrid, PACK_M31.name(), MAX_VALUE_BYTES, by_key()),
        &[
            ("a set over LWE", &|d| d.preset = DEFAULT_LWE.name().into()),
            ("a set over rings", &|d| d.preset = "ONION_M31".into()),
            ("no widths", &|d| d.word_bits = None),
            ("no query bits", &|d| d.word_bits = Some([0, 18, 18])),
            ("noisy", &|d| d.word_bits = Some([9, 18, 18])),
            ("too many query bits", &|d| d.word_bits = Some([33, 18, 18])),
            ("packed at another width", &|d| d.word_bits = Some([24, 18, 17])),
            ("a hint", &|d| d.hint = valid().hint),
            ("whitening", &|d| d.whitening = Some(WhiteningSeed([1; 32]))),
            ("no columns", &|d| d.columns = 0),
            ("huge columns", &|d| d.columns = usize::MAX),
            ("huge blocks", &|d| d.blocks = usize::MAX / 2),
            ("more rows than there can be", &|d| d.blocks = 1 << 12),
            ("long values", &|d| d.slot.max_value_bytes += 1),
            ("long slots", &|d| d.protocol = Protocol::ExppackD),
        ],
    );
}

/// A table of column packing, with values of up to a mebibyte.
#[test]
fn every_contradiction_of_column_packing_is_an_error() {
    for protocol in COLUMN {
        let valid_one = descriptor(protocol, COLPACK_N2048_Q52.name(), MAX_VALUE_BYTES, by_key());
        let params = valid_one.params().unwrap();
        assert_eq!(params.facts().protocol, protocol);
        let [bits, mask, body] = params.facts().word_bits.unwrap();
        // One of the two has masks to download.
        let hint = valid_one.hint.is_none().then(|| valid().hint).flatten();
        every_change_is_refused(
            &valid_one,
            &[
                ("a set over LWE", &|d| d.preset = DEFAULT_LWE.name().into()),
                ("its own set over LWE", &|d| d.preset = COLPACK_N2048_Q52.lwe().name().into()),
                ("a set over rings", &|d| d.preset = "ONION_M31".into()),
                ("a set of another packing", &|d| d.preset = PACK_M31.name().into()),
                ("another protocol", &|d| d.protocol = Protocol::Hybrid),
                ("no widths", &|d| d.word_bits = None),
                ("no query bits", &|d| d.word_bits = Some([0, mask, body])),
                ("noisy", &|d| d.word_bits = Some([9, mask, body])),
                ("too many query bits", &|d| d.word_bits = Some([33, mask, body])),
                ("noisy masks", &|d| d.word_bits = Some([bits, body, body])),
                ("words of masks that are too long", &|d| d.word_bits = Some([bits, 25, body])),
                ("words of answers that are longer than those of masks", &|d| {
                    d.word_bits = Some([bits, mask, mask + 1])
                }),
                ("words of answers with a byte", &|d| d.word_bits = Some([bits, mask, 8])),
                ("words of answers with nothing", &|d| d.word_bits = Some([bits, mask, 0])),
                ("another hint", &|d| d.hint = hint.clone()),
                ("an empty hint", &|d| d.hint = Some(BlobRef { blake3: [2; 32], bytes: 0 })),
                ("whitening", &|d| d.whitening = Some(WhiteningSeed([1; 32]))),
                ("no columns", &|d| d.columns = 0),
                ("huge columns", &|d| d.columns = usize::MAX),
                ("huge blocks", &|d| d.blocks = usize::MAX / 2),
                ("more pack columns than are kept", &|d| d.blocks = 1 << 10),
                ("long values", &|d| d.slot.max_value_bytes += 1),
            ],
        );
        let long = with(&valid_one, |d| d.blocks = 1 << 10);
        assert!(matches!(long.params(), Err(ProtocolError::Limit { .. })));
        // Wider words than the noise asks for are a builder's choice.
        let mut wide = with(&valid_one, |d| d.word_bits = Some([32, mask, body + 1]));
        wide.seal();
        assert_eq!(Descriptor::from_json(&wide.to_json()), Ok(wide));
    }
}

#[test]
fn an_altered_or_newer_descriptor_is_refused() {
    let mut altered = valid();
    altered.records += 1;
    let error = Descriptor::from_json(&altered.to_json()).unwrap_err();
    assert!(error.to_string().contains("epoch"), "{error}");
    let text = String::from_utf8(valid().to_json()).unwrap();
    let newer = text.replacen("\"version\":3", "\"version\":4", 1);
    assert!(Descriptor::from_json(newer.as_bytes()).unwrap_err().to_string().contains("update"));
}

#[test]
fn random_damage_never_panics() {
    let text = valid().to_json();
    let rng = &mut Csprng::insecure_from_seed(7);
    for _ in 0..3000 {
        let mut bytes = text.clone();
        for _ in 0..1 + rng.next_u32() % 4 {
            let place = rng.next_u32() as usize % bytes.len();
            bytes[place] = rng.next_u32() as u8;
        }
        bytes.truncate(bytes.len() - (rng.next_u32() as usize % 3));
        if let Ok(descriptor) = Descriptor::from_json(&bytes) {
            assert_eq!(descriptor, valid(), "a damaged descriptor was taken");
        }
    }
    let long = vec![b' '; (64 << 20) + 1];
    assert!(matches!(Descriptor::from_json(&long), Err(ProtocolError::Descriptor(_))));
}

/// Matrices and masks follow from what queries depend on, and from nothing that is made of them or changes with the records.
#[test]
fn the_public_seed_is_that_of_the_geometry() {
    let table = tiered(Protocol::Simple, DEFAULT_LWE.name());
    let seed = table.public_seed();
    let changed = |change: &dyn Fn(&mut Descriptor)| {
        let mut other = table.clone();
        change(&mut other);
        other.seal();
        assert_ne!(other.epoch, table.epoch);
        other.public_seed()
    };
    let blob = || Some(BlobRef { blake3: [8; 32], bytes: 8 });
    let same: [&dyn Fn(&mut Descriptor); 12] = [
        &|d| d.whitening = Some(WhiteningSeed([8; 32])),
        &|d| d.segments[0].whitening = Some(WhiteningSeed([8; 32])),
        &|d| d.schema = Some(Schema::default()),
        &|d| {
            let dictionary = BlobRef { blake3: [8; 32], bytes: 8 };
            d.compression = Some(Compression { codec: Codec::Zstd, dictionary, max_value_bytes: 8 });
        },
        &|d| {
            let fences = FenceFile { blob: BlobRef { blake3: [8; 32], bytes: 8 }, length: 8 };
            let order = SortOrder::Bytes;
            d.sorted = Some(Sorted { order, range: None, rows: 8, overlap: 0, fences, added: None });
        },
        &|d| d.records += 1,
        &|d| d.database = [8; 32],
        &|d| d.hint = blob(),
        &|d| d.segments[0].hint = blob(),
        &|d| d.segments[0].records += 1,
        &|d| d.segments[0].lanes.thresholds[0] += 1,
        &|d| d.segments[0].database = [8; 32],
    ];
    let other: [&dyn Fn(&mut Descriptor); 6] = [
        &|d| of_key(d, |k| k.seed = [8; 32]),
        &|d| of_key(d, |k| k.thresholds[0] += 1),
        &|d| d.columns *= 2,
        &|d| d.preset = "LWE_N1280_STD3_2_PLAIN".into(),
        &|d| d.protocol = Protocol::Frodo,
        &|d| d.segments[0].slot_bytes += 1,
    ];
    for (index, change) in same.into_iter().enumerate() {
        assert_eq!(changed(change), seed, "{index}");
    }
    for (index, change) in other.into_iter().enumerate() {
        assert_ne!(changed(change), seed, "{index}");
    }
}
