//! What a look-up with column packing sends and what a server keeps for it, for tables of 1 to 64 GiB of 4 KiB records,
//! computed without building one.

use hush_he::params::COLPACK_N2048_Q52;
use hush_protocol::{
    column_table::ColumnTable,
    table::{Protocol, TableShape},
};

const KIB: f64 = 1024.0;
const RECORD: usize = 4096;

fn table(protocol: Protocol, gib: usize, log2_columns: u32) -> ColumnTable {
    let columns = 1 << log2_columns;
    let shape = TableShape { columns, blocks: (gib << 30) / RECORD / columns, slot_bytes: RECORD };
    ColumnTable::new(protocol, COLPACK_N2048_Q52, shape).unwrap()
}

/// KiB up and down.
fn traffic(table: &ColumnTable) -> f64 {
    (table.query_bytes().total() + table.answer_bytes()) as f64 / KIB
}

/// GiB, log2 of the columns, and KiB of a look-up with `colpack` and with `colpack-s`, with query words of 26 bits up to 2^15
/// columns and of 27 above.
const LOOK_UPS: [(usize, u32, f64, f64); 9] = [
    (1, 14, 112.0, 314.0),
    (1, 15, 164.0, 246.0),
    (1, 16, 276.0, 298.0),
    (4, 15, 164.0, 606.0),
    (4, 16, 276.0, 478.0),
    (16, 16, 276.0, 1198.0),
    (16, 17, 492.0, 934.0),
    (64, 16, 276.0, 4078.0),
    (64, 17, 492.0, 2374.0),
];

#[test]
fn look_ups_are_as_short_as_documented() {
    println!(" GiB |   D0 | entries | bits | colpack | colpack-s KiB | pack columns");
    for (gib, log2_columns, colpack, colpack_s) in LOOK_UPS {
        let fold = table(Protocol::Colpack, gib, log2_columns);
        let plain = table(Protocol::ColpackS, gib, log2_columns);
        let columns = fold.columns_tiling().bytes();
        println!(
            "{gib:4} | 2^{log2_columns} | {:7} | {:4} | {:7.1} | {:13.1} | {:8.3} GiB",
            fold.pack_shape().entries(),
            fold.query_bits(),
            traffic(&fold),
            traffic(&plain),
            columns as f64 / 2f64.powi(30),
        );
        assert_eq!([traffic(&fold), traffic(&plain)], [colpack, colpack_s], "{gib} GiB, 2^{log2_columns}");
        // 8 KiB of pack columns a row of D0 bytes.
        assert_eq!(columns, (gib << 30) / (1 << log2_columns) * 8192);
        assert_eq!([fold.query_bits(), plain.query_bits()], [if log2_columns < 16 { 26 } else { 27 }; 2]);
    }
}

/// Answers have 15 KiB whatever the table, and keys 45 KiB.
#[test]
fn answers_and_keys_do_not_grow() {
    for (gib, log2_columns, ..) in LOOK_UPS {
        let table = table(Protocol::Colpack, gib, log2_columns);
        assert_eq!(table.answer_bytes(), 15 * 1024);
        assert_eq!(table.query_bytes().packed, 45 * 1024);
    }
}
