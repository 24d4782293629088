//! Tests of the bytes that look-ups send and servers keep, for tables of 1 to 64 GiB of 4 KiB records, computed
//! without building one; and that messages have these sizes.

#![allow(clippy::print_stdout)]

use hush_he::params::{
    COLPACK_N2048_Q52, INSECURE_COLPACK_N256, ONION_M31, ONION_S, PACK_M31, PackParams, VIPIR_N4096_3X29,
};
use hush_math::csprng::Csprng;
use hush_ops::path::Content;
use hush_protocol::{
    Protocol,
    any_page::{Slots, TableParams},
    pack_table::PackTable,
    ring_keys::upload_bytes,
    ring_table::RingTable,
    wire::QuerySizes,
};

use crate::support::{COLUMN, column_table, given, one, pack_table, shape, sizes, table};

const KIB: f64 = 1024.0;
const RECORD: usize = 4096;
/// Bytes that name a client's keys in every query.
const KEY_ID: f64 = 32.0;

/// Returns a table of so many GiB of records.
fn of_records(protocol: Protocol, set: &str, gib: usize, columns: usize) -> TableParams {
    table(protocol, set, shape(columns, ((gib << 30) / RECORD).div_ceil(columns), RECORD))
}

/// KiB up and down.
fn traffic(table: &TableParams) -> f64 {
    (table.facts().query.total() + table.facts().answer_bytes) as f64 / KIB
}

/// VIPIR's Table 1, to the byte but for the keys' name.
#[test]
fn the_papers_sizes_are_reproduced() {
    for (protocol, log2_first, expected) in [
        (Protocol::Hybrid, 10, [132.0, 144.0, 192.0, 384.0]),
        (Protocol::DoublePack, 10, [357.0, 369.0, 417.0, 609.0]),
        (Protocol::ExppackS, 15, [480.0, 864.0, 1632.0, 3168.0]),
    ] {
        for (step, expected) in (0u32..).zip(expected) {
            // D0 is D / 2^20, or grows with the square root of the table.
            let log2_columns =
                if protocol == Protocol::ExppackS { log2_first + step } else { log2_first + 2 * step };
            let table = of_records(protocol, VIPIR_N4096_3X29.name(), 1 << (2 * step), 1 << log2_columns);
            assert_eq!(traffic(&table), expected + KEY_ID / KIB, "{protocol}, {} GiB", 1 << (2 * step));
        }
    }
}

/// 1 GiB of single bytes under VIPIR's set: below the paper's 395 KiB, as the rows of the answer travel in the same plaintext
/// (`docs/explanation/protocols/exppack-d.md`). And what ours sends.
#[test]
fn single_bytes_take_one_plaintext() {
    let table = |params: PackParams, slot_bytes| -> (PackTable, f64) {
        let shape = shape(1 << 15, (1 << 15) / slot_bytes, slot_bytes);
        let traffic = traffic(&table(Protocol::ExppackD, params.name(), shape));
        (pack_table(Protocol::ExppackD, params, shape), traffic)
    };
    assert_eq!(table(VIPIR_N4096_3X29, 1).1, 384.0 + KEY_ID / KIB);
    for (slot_bytes, plaintexts, expected) in
        [(1, 1, 239.046_875), (3, 2, 173.044_921_875), (16, 11, 247.796_875)]
    {
        let (table, traffic) = table(PACK_M31, slot_bytes);
        println!("exppack-d, slots of {slot_bytes}: {traffic:.2} KiB");
        assert_eq!(table.answer_plaintexts(), plaintexts);
        assert_eq!(traffic, expected + KEY_ID / KIB, "slots of {slot_bytes}");
    }
}

/// At or below the sizes that were set as targets, with 32 to 256 planes; and what the default geometry sends.
#[test]
fn ours_are_smaller() {
    for (protocol, targets) in
        [(Protocol::Hybrid, [68.0, 80.0, 128.0, 320.0]), (Protocol::DoublePack, [117.0, 129.0, 177.0, 369.0])]
    {
        for (step, (target, planes)) in (0u32..).zip(targets.into_iter().zip([32, 64, 256, 256])) {
            let (gib, records) = (1 << (2 * step), (1usize << (30 + 2 * step)) / RECORD);
            let table = of_records(protocol, PACK_M31.name(), gib, records / planes);
            let traffic = traffic(&table);
            println!("{protocol}, {gib} GiB, {planes} planes: {traffic:.1} KiB");
            assert!(traffic <= target, "{protocol}, {planes} planes: {traffic:.1} KiB");
            assert!(table.facts().sigmas >= 12.0);
        }
    }
    let keys = of_records(Protocol::Hybrid, PACK_M31.name(), 1, 1 << 15).facts().key_bytes;
    println!("keys: {:.2} MiB", keys as f64 / KIB / KIB);
    assert!(keys as f64 <= 1.3 * KIB * KIB);
}

/// The default geometry: about a hundred KiB, and a hint of no more than a third of the table.
#[test]
fn the_default_geometry_weighs_traffic_against_the_hint() {
    for step in 0..4 {
        let records = (1usize << (30 + 2 * step)) / RECORD;
        let slots = Slots { count: records, slot_bytes: RECORD, by_key: false };
        let shape = Protocol::Hybrid.page().shape(PACK_M31.name(), slots, None).unwrap();
        let traffic = traffic(&table(Protocol::Hybrid, PACK_M31.name(), shape));
        let table = pack_table(Protocol::Hybrid, PACK_M31, shape);
        let share = table.hint_tiling().bytes() as f64 / table.tiling().bytes() as f64;
        let planes = table.first_shape().plaintexts();
        println!("{} GiB: {planes} planes, {traffic:.0} KiB, hint {share:.2} of the table", 1 << (2 * step));
        assert!((90.0..140.0).contains(&traffic) && share < 0.33 && planes.is_multiple_of(8));
    }
}

#[test]
fn sizes_over_rings_are_as_documented() {
    let table = |params, slot_bytes| RingTable::new(params, shape(256, 1 << 12, slot_bytes)).unwrap();
    let m31 = table(ONION_M31, 22 << 10);
    assert_eq!((m31.lanes(), m31.planes(), m31.folds()), (1, 2, 12));
    assert!((m31.query_bytes() as f64) < 2.3 * KIB && m31.answer_bytes() as f64 <= 1.85 * 22.0 * KIB);
    assert!((upload_bytes(&ONION_M31) as f64) < 2.1 * KIB * KIB);
    let s = table(ONION_S, 4 << 10);
    assert_eq!((s.lanes(), s.planes(), s.folds()), (1, 2, 12));
    assert!((s.query_bytes() as f64) < 2.8 * KIB && s.answer_bytes() as f64 <= 2.5 * 4.0 * KIB);
    assert!((upload_bytes(&ONION_S) as f64) < 0.81 * KIB * KIB);
}

/// GiB, log2 of the columns, and KiB of a look-up with `colpack` and with `colpack-s`, whose masks are apart.
const LOOK_UPS: [(usize, u32, f64, f64); 9] = [
    (1, 14, 110.5, 148.0),
    (1, 15, 163.0, 166.0),
    (1, 16, 275.0, 254.0),
    (4, 15, 163.0, 274.0),
    (4, 16, 275.0, 318.0),
    (16, 16, 275.0, 534.0),
    (16, 17, 491.5, 614.0),
    (64, 16, 275.0, 1398.0),
    (64, 17, 491.5, 1046.0),
];

#[test]
fn look_ups_are_as_short_as_documented() {
    println!(" GiB |   D0 | entries | bits | colpack | colpack-s KiB | pack columns");
    for (gib, log2_columns, colpack, colpack_s) in LOOK_UPS {
        let of_records = |protocol| of_records(protocol, COLPACK_N2048_Q52.name(), gib, 1 << log2_columns);
        let traffic = [Protocol::Colpack, Protocol::ColpackS].map(|protocol| traffic(&of_records(protocol)));
        let shape = of_records(Protocol::Colpack).facts().shape;
        let fold = column_table(Protocol::Colpack, COLPACK_N2048_Q52, shape);
        let columns = fold.columns_tiling().bytes();
        println!(
            "{gib:4} | 2^{log2_columns} | {:7} | {:4} | {:7.1} | {:13.1} | {:8.3} GiB",
            fold.pack_shape().entries(),
            fold.widths().query,
            traffic[0],
            traffic[1],
            columns as f64 / 2f64.powi(30),
        );
        assert_eq!(traffic, [colpack, colpack_s], "{gib} GiB, 2^{log2_columns}");
        // 8 KiB of pack columns a row of D0 bytes.
        assert_eq!(columns, (gib << 30) / (1 << log2_columns) * 8192);
        assert_eq!(fold.widths().query, if log2_columns < 16 { 26 } else { 27 });
    }
}

/// Answers have 14 KiB whatever the table, give or take half a KiB, and keys 45 KiB.
#[test]
fn answers_and_keys_do_not_grow() {
    for (gib, log2_columns, ..) in LOOK_UPS {
        let table = of_records(Protocol::Colpack, COLPACK_N2048_Q52.name(), gib, 1 << log2_columns);
        assert!((27..=29).contains(&(table.facts().answer_bytes / 512)));
        assert_eq!(table.facts().query.packed, 45 * 1024);
    }
}

/// The formulas are those of real queries, for words that end in the middle of a byte as well; and by hand for one of them.
#[test]
fn sizes_are_those_of_the_codecs() {
    for params in [INSECURE_COLPACK_N256, COLPACK_N2048_Q52] {
        for protocol in COLUMN {
            for (columns, blocks, slot_bytes) in [(1, 1, 1), (77, 9, 100), (1000, 3, 5000), (4097, 1, 256)] {
                let table = table(protocol, params.name(), shape(columns, blocks, slot_bytes));
                let client = table.client(&given(&table)).unwrap();
                let (query, pending) = client.query(one(0, blocks - 1), &mut Csprng::from_os());
                assert_eq!(table.facts().query, sizes(&query));
                let answer = vec![0; table.facts().answer_bytes];
                assert_eq!(client.recover(&pending, &answer).unwrap().len(), slot_bytes);
            }
        }
    }
    let table = column_table(Protocol::Colpack, COLPACK_N2048_Q52, shape(1001, 9, 4096));
    let keys = 2048 * (46 + 42 + 2 * 46) / 8;
    let vector = (1001 * table.widths().query as usize).div_ceil(8);
    assert_eq!(table.query_bytes(), QuerySizes { first: vector, packed: keys, ..QuerySizes::default() });
    assert_eq!(table.answer_bytes(), 2 * 2048 * (17 + 10) / 8);
    // A digit and a mask for 18 plaintexts, two limbs each.
    assert!(matches!(table.chain(), Content::Chain { .. }));
    assert_eq!(table.chain().bytes(), 4 * 2 * 18 * 2 * 2048);
}

/// Nothing is uploaded beforehand. Clients of `colpack-s` download 4.5 KiB of masks for each of 16 plaintexts, others nothing.
#[test]
fn there_are_no_evaluation_keys() {
    for protocol in COLUMN {
        let table = of_records(protocol, COLPACK_N2048_Q52.name(), 1, 1 << 15);
        let facts = table.facts();
        let masks = if protocol == Protocol::ColpackS { 16 * 2048 * 18 / 8 } else { 0 };
        assert_eq!((facts.hint_bytes, facts.keys, facts.key_bytes, facts.query.key_id), (masks, None, 0, 0));
        assert!(facts.is_secure() && facts.protocol == protocol);
        assert_eq!(facts.preset, COLPACK_N2048_Q52.name());
        let table = self::table(protocol, facts.preset, shape(1000, 9, 4096));
        assert_eq!(table.facts().encoded_bytes, 9 * 4096 * 1000u64.next_multiple_of(64));
    }
}
