//! A descriptor comes from the network: everything that can be wrong with it is an error, and nothing panics.

use hush_he::params::{COLPACK_N2048_Q52, DEFAULT_LWE, PACK_M31};
use hush_math::csprng::Csprng;
use hush_protocol::{
    ProtocolError,
    column_table::ColumnTable,
    descriptor::{BlobRef, DESCRIPTOR_VERSION, Descriptor, KeyLookup, Lookup, WhiteningSeed},
    keyword::FilterKind,
    lwe_table::LweTable,
    pack_table::PackTable,
    slot::{MAX_VALUE_BYTES, SlotFormat},
    table::{Protocol, TableParams, TableShape},
};

fn valid() -> Descriptor {
    let slot = SlotFormat::for_values(8, 0, 20);
    let shape = TableShape { columns: 500, blocks: 3, slot_bytes: slot.slot_bytes() };
    let params = LweTable::new(Protocol::Simple, DEFAULT_LWE, shape).unwrap();
    let widths = params.widths();
    let mut descriptor = Descriptor {
        version: DESCRIPTOR_VERSION,
        epoch: [0; 32],
        protocol: Protocol::Simple,
        preset: DEFAULT_LWE.name().into(),
        records: 1400,
        columns: shape.columns,
        blocks: shape.blocks,
        word_bits: Some([widths.query, widths.hint, widths.answer]),
        slot,
        lookup: Lookup::Key(KeyLookup {
            filter: FilterKind::Band256,
            seed: [1; 32],
            thresholds: vec![0, 3, 0],
            block_seeds: vec![0; 3],
        }),
        hint: Some(BlobRef { blake3: [2; 32], bytes: params.hint_bytes() as u64 }),
        whitening: None,
        database: [3; 32],
    };
    descriptor.seal();
    descriptor
}

#[test]
fn a_descriptor_round_trips() {
    let descriptor = valid();
    assert_eq!(Descriptor::from_json(&descriptor.to_json()), Ok(descriptor));
}

#[test]
fn every_contradiction_is_an_error() {
    let key = |change: &dyn Fn(&mut KeyLookup)| {
        let mut descriptor = valid();
        if let Lookup::Key(key) = &mut descriptor.lookup {
            change(key);
        }
        descriptor
    };
    let with = |change: &dyn Fn(&mut Descriptor)| {
        let mut descriptor = valid();
        change(&mut descriptor);
        descriptor
    };
    let broken = [
        ("preset", with(&|d| d.preset = "LWE_N1_BROKEN".into())),
        ("insecure shape", with(&|d| d.columns = 0)),
        ("huge columns", with(&|d| d.columns = usize::MAX)),
        ("huge blocks", with(&|d| d.blocks = usize::MAX / 2)),
        ("noisy", with(&|d| d.word_bits = Some([9, 16, 12]))),
        ("no bits", with(&|d| d.word_bits = Some([0, 16, 12]))),
        ("too many bits", with(&|d| d.word_bits = Some([28, 16, 33]))),
        ("hint length", with(&|d| d.hint.as_mut().unwrap().bytes += 1)),
        ("no hint", with(&|d| d.hint = None)),
        ("no widths", with(&|d| d.word_bits = None)),
        ("whitening over LWE", with(&|d| d.whitening = Some(WhiteningSeed([1; 32])))),
        ("long values", with(&|d| d.slot.max_value_bytes = u32::MAX)),
        ("length field", with(&|d| d.slot.length_bytes = 200)),
        ("long fingerprint", with(&|d| d.slot.fingerprint_bytes = 255)),
        ("no fingerprint", with(&|d| d.slot.fingerprint_bytes = 0)),
        ("index with fingerprint", with(&|d| d.lookup = Lookup::Index)),
        ("too few thresholds", key(&|k| k.thresholds.truncate(2))),
        ("too many seeds", key(&|k| k.block_seeds.push(0))),
    ];
    for (name, mut descriptor) in broken {
        descriptor.seal();
        assert!(Descriptor::from_json(&descriptor.to_json()).is_err(), "{name}");
    }
}

/// A table whose answers are packed, with values of up to a mebibyte.
fn packed() -> Descriptor {
    let slot = SlotFormat::for_values(8, 0, MAX_VALUE_BYTES);
    let shape = TableShape { columns: 500, blocks: 3, slot_bytes: slot.slot_bytes() };
    let table = PackTable::new(Protocol::Hybrid, PACK_M31, shape).unwrap();
    let bits = PACK_M31.ring().plaintext_bits();
    let mut descriptor = Descriptor {
        protocol: Protocol::Hybrid,
        preset: PACK_M31.name().into(),
        word_bits: Some([table.query_bits(), bits, bits]),
        slot,
        hint: None,
        ..valid()
    };
    descriptor.seal();
    descriptor
}

#[test]
fn every_contradiction_of_a_packed_table_is_an_error() {
    assert_eq!(Descriptor::from_json(&packed().to_json()), Ok(packed()));
    let with = |change: &dyn Fn(&mut Descriptor)| {
        let mut descriptor = packed();
        change(&mut descriptor);
        descriptor
    };
    let broken = [
        ("a set over LWE", with(&|d| d.preset = DEFAULT_LWE.name().into())),
        ("a set over rings", with(&|d| d.preset = "ONION_M31".into())),
        ("no widths", with(&|d| d.word_bits = None)),
        ("no query bits", with(&|d| d.word_bits = Some([0, 18, 18]))),
        ("noisy", with(&|d| d.word_bits = Some([9, 18, 18]))),
        ("too many query bits", with(&|d| d.word_bits = Some([33, 18, 18]))),
        ("packed at another width", with(&|d| d.word_bits = Some([24, 18, 17]))),
        ("a hint", with(&|d| d.hint = valid().hint)),
        ("whitening", with(&|d| d.whitening = Some(WhiteningSeed([1; 32])))),
        ("no columns", with(&|d| d.columns = 0)),
        ("huge columns", with(&|d| d.columns = usize::MAX)),
        ("huge blocks", with(&|d| d.blocks = usize::MAX / 2)),
        ("more rows than there can be", with(&|d| d.blocks = 1 << 12)),
        ("long values", with(&|d| d.slot.max_value_bytes += 1)),
        ("long slots", with(&|d| d.protocol = Protocol::ExppackD)),
    ];
    for (name, mut descriptor) in broken {
        descriptor.seal();
        assert!(Descriptor::from_json(&descriptor.to_json()).is_err(), "{name}");
    }
}

/// A table of column packing, with values of up to a mebibyte.
fn column_packed(protocol: Protocol) -> Descriptor {
    let slot = SlotFormat::for_values(8, 0, MAX_VALUE_BYTES);
    let shape = TableShape { columns: 500, blocks: 3, slot_bytes: slot.slot_bytes() };
    let table = ColumnTable::new(protocol, COLPACK_N2048_Q52, shape).unwrap();
    let mut descriptor = Descriptor {
        protocol,
        preset: COLPACK_N2048_Q52.name().into(),
        word_bits: Some([table.query_bits(), 32, 32]),
        slot,
        hint: None,
        ..valid()
    };
    descriptor.seal();
    descriptor
}

#[test]
fn every_contradiction_of_column_packing_is_an_error() {
    for protocol in [Protocol::ColpackS, Protocol::Colpack] {
        let valid_one = column_packed(protocol);
        assert_eq!(Descriptor::from_json(&valid_one.to_json()), Ok(valid_one.clone()));
        let TableParams::Column(table) = valid_one.params().unwrap() else { panic!("column packing") };
        assert_eq!(table.protocol(), protocol);
        let bits = table.query_bits();
        let with = |change: &dyn Fn(&mut Descriptor)| {
            let mut descriptor = column_packed(protocol);
            change(&mut descriptor);
            descriptor
        };
        let broken = [
            ("a set over LWE", with(&|d| d.preset = DEFAULT_LWE.name().into())),
            ("its own set over LWE", with(&|d| d.preset = COLPACK_N2048_Q52.lwe().name().into())),
            ("a set over rings", with(&|d| d.preset = "ONION_M31".into())),
            ("a set of another packing", with(&|d| d.preset = PACK_M31.name().into())),
            ("another protocol", with(&|d| d.protocol = Protocol::Hybrid)),
            ("no widths", with(&|d| d.word_bits = None)),
            ("no query bits", with(&|d| d.word_bits = Some([0, 32, 32]))),
            ("noisy", with(&|d| d.word_bits = Some([9, 32, 32]))),
            ("too many query bits", with(&|d| d.word_bits = Some([33, 32, 32]))),
            ("rounded hint words", with(&|d| d.word_bits = Some([bits, 31, 32]))),
            ("rounded answer words", with(&|d| d.word_bits = Some([bits, 32, 18]))),
            ("words that are too long", with(&|d| d.word_bits = Some([bits, 33, 33]))),
            ("a hint", with(&|d| d.hint = valid().hint)),
            ("an empty hint", with(&|d| d.hint = Some(BlobRef { blake3: [2; 32], bytes: 0 }))),
            ("whitening", with(&|d| d.whitening = Some(WhiteningSeed([1; 32])))),
            ("no columns", with(&|d| d.columns = 0)),
            ("huge columns", with(&|d| d.columns = usize::MAX)),
            ("huge blocks", with(&|d| d.blocks = usize::MAX / 2)),
            ("more pack columns than are kept", with(&|d| d.blocks = 1 << 10)),
            ("long values", with(&|d| d.slot.max_value_bytes += 1)),
        ];
        for (name, mut descriptor) in broken {
            descriptor.seal();
            assert!(Descriptor::from_json(&descriptor.to_json()).is_err(), "{protocol}: {name}");
        }
        let long = with(&|d| d.blocks = 1 << 10);
        assert!(matches!(long.params(), Err(ProtocolError::Limit { .. })));
        // Wider words than the noise asks for are a builder's choice.
        let mut wide = with(&|d| d.word_bits = Some([32, 32, 32]));
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
    let newer = text.replacen("\"version\":1", "\"version\":2", 1);
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
