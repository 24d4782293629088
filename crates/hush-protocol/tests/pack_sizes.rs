//! What a look-up with a packed answer sends, for tables of 1 to 64 GiB of 4 KiB records, computed without building one.

use hush_he::params::{PACK_M31, PackParams, VIPIR_N4096_3X29};
use hush_protocol::{
    layout,
    pack_table::PackTable,
    table::{Protocol, Scheme, TableParams, TableShape},
};

const KIB: f64 = 1024.0;
const RECORD: usize = 4096;
/// Bytes that name a client's keys in every query.
const KEY_ID: f64 = 32.0;

fn table(protocol: Protocol, params: PackParams, log2_gib: u32, columns: usize) -> PackTable {
    let records = (1usize << (30 + log2_gib)) / RECORD;
    let shape = TableShape { columns, blocks: records.div_ceil(columns), slot_bytes: RECORD };
    PackTable::new(protocol, params, shape).unwrap()
}

/// KiB up and down.
fn traffic(table: &PackTable) -> f64 {
    (table.query_bytes().total() + table.answer_bytes()) as f64 / KIB
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
            let table = table(protocol, VIPIR_N4096_3X29, 2 * step, 1 << log2_columns);
            assert_eq!(traffic(&table), expected + KEY_ID / KIB, "{protocol}, {} GiB", 1 << (2 * step));
        }
    }
}

/// 1 GiB of single bytes under VIPIR's set: below the paper's 395 KiB, as the rows of the answer travel in the same plaintext
/// (`docs/protocols/exppack-d.md`). And what ours sends.
#[test]
fn single_bytes_take_one_plaintext() {
    let table = |params, slot_bytes| {
        let shape = TableShape { columns: 1 << 15, blocks: (1 << 15) / slot_bytes, slot_bytes };
        PackTable::new(Protocol::ExppackD, params, shape).unwrap()
    };
    assert_eq!(traffic(&table(VIPIR_N4096_3X29, 1)), 384.0 + KEY_ID / KIB);
    for (slot_bytes, plaintexts, expected) in
        [(1, 1, 240.937_5), (3, 2, 174.935_546_875), (16, 11, 249.687_5)]
    {
        let table = table(PACK_M31, slot_bytes);
        println!("exppack-d, slots of {slot_bytes}: {:.2} KiB", traffic(&table));
        assert_eq!(table.answer_plaintexts(), plaintexts);
        assert_eq!(traffic(&table), expected + KEY_ID / KIB, "slots of {slot_bytes}");
    }
}

/// At or below the sizes that were set as targets, with 32 to 256 planes; and what the default geometry sends.
#[test]
fn ours_are_smaller() {
    for (protocol, targets) in
        [(Protocol::Hybrid, [68.0, 80.0, 128.0, 320.0]), (Protocol::DoublePack, [117.0, 129.0, 177.0, 369.0])]
    {
        for (step, (target, planes)) in (0u32..).zip(targets.into_iter().zip([32, 64, 256, 256])) {
            let records = (1usize << (30 + 2 * step)) / RECORD;
            let table = table(protocol, PACK_M31, 2 * step, records / planes);
            let traffic = traffic(&table);
            println!("{protocol}, {} GiB, {planes} planes: {traffic:.1} KiB", 1 << (2 * step));
            assert!(traffic <= target, "{protocol}, {planes} planes: {traffic:.1} KiB");
            assert!(table.sigmas() >= 12.0);
        }
    }
    let keys = TableParams::Pack(table(Protocol::Hybrid, PACK_M31, 0, 1 << 15)).key_bytes();
    println!("keys: {:.2} MiB", keys as f64 / KIB / KIB);
    assert!(keys as f64 <= 1.3 * KIB * KIB);
}

/// The default geometry: about a hundred KiB, and a hint of no more than a third of the table.
#[test]
fn the_default_geometry_weighs_traffic_against_the_hint() {
    for step in 0..4 {
        let records = (1usize << (30 + 2 * step)) / RECORD;
        let scheme = Scheme::Pack(Protocol::Hybrid, PACK_M31);
        let columns = layout::columns(&scheme, records, RECORD);
        let shape = layout::index_shape(&scheme, records, RECORD, columns);
        let TableParams::Pack(table) = TableParams::new(scheme, shape).unwrap() else { panic!("packed") };
        let (traffic, hint) = (traffic(&table), table.hint_tiling().bytes() as f64);
        let share = hint / table.tiling().bytes() as f64;
        let planes = table.first_shape().plaintexts();
        println!("{} GiB: {planes} planes, {traffic:.0} KiB, hint {share:.2} of the table", 1 << (2 * step));
        assert!((90.0..140.0).contains(&traffic) && share < 0.33 && planes.is_multiple_of(8));
    }
}
