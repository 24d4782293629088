//! The shapes that are chosen for tables whose answers are packed, off the beaten track: one record, slots of a byte and of many
//! planes, every protocol. Nothing is built.

use hush_he::params::{
    COLPACK_N2048_Q52, ColumnParams, INSECURE_COLPACK_N256, INSECURE_COLPACK_PLAIN, INSECURE_PACK_N256,
    PACK_M31, PackParams, VIPIR_N4096_3X29,
};
use hush_protocol::{
    Protocol,
    any_page::Slots,
    column_table::ColumnTable,
    layout,
    pack_table::{MAX_EXPPACK_D_SLOT, PackTable},
    table::TableShape,
};

use crate::support::{COLUMN, PACK, column_table, pack_spec};

const GIB: usize = 1 << 30;
const SLOTS: [usize; 9] = [1, 2, 3, 63, 1000, 65_537, 1 << 18, 999_983, 3_000_000];
const SLOT_BYTES: [usize; 12] = [1, 2, 16, 100, 1365, 2048, 2049, 4096, 4097, 10_000, 1 << 16, 1 << 20];

/// Returns the shape of a table that a build by index makes.
fn chosen(protocol: Protocol, set: &str, count: usize, slot_bytes: usize) -> TableShape {
    let [shape, keyed] = [false, true].map(|by_key| {
        let slots = Slots { count, slot_bytes, by_key };
        protocol.page().shape(set, slots, None).unwrap()
    });
    let TableShape { columns, blocks, .. } = shape;
    assert!((1..=count).contains(&columns), "{protocol}: {columns} columns for {count} slots");
    assert!((columns..=count).contains(&keyed.columns), "{protocol}: {keyed:?} for {count} slots by key");
    assert!(keyed.columns * keyed.blocks >= count, "{protocol}: {count} slots in {keyed:?}");
    assert!(columns * blocks >= count, "{protocol}: {count} slots in {shape:?}");
    assert!((columns - 1) * blocks < count, "{protocol}: {count} slots in {shape:?}, wasteful");
    for index in [0, count / 2, count - 1] {
        let (block, column) = layout::index_position(&shape, index as u64);
        assert!(block < blocks && column < columns, "{protocol}: {index} in {shape:?}");
        assert_eq!(layout::index_at(&shape, block, column), index);
    }
    shape
}

/// Returns the table that a build by index makes. Tables beyond a few TiB of hint are refused, not those that a machine could hold.
fn packed(protocol: Protocol, params: PackParams, slots: usize, slot_bytes: usize) -> Option<PackTable> {
    let shape = chosen(protocol, params.name(), slots, slot_bytes);
    match PackTable::new(pack_spec(protocol), params, shape) {
        Ok(table) => Some(table),
        Err(error) => {
            let too_long = protocol == Protocol::ExppackD && slot_bytes > MAX_EXPPACK_D_SLOT;
            assert!(too_long || slots * slot_bytes > GIB, "{protocol}: {shape:?}: {error}");
            None
        }
    }
}

fn column_packed(protocol: Protocol, params: ColumnParams, slots: usize, slot_bytes: usize) -> ColumnTable {
    column_table(protocol, params, chosen(protocol, params.name(), slots, slot_bytes))
}

fn default(protocol: Protocol, slots: usize, slot_bytes: usize) -> ColumnTable {
    column_packed(protocol, COLPACK_N2048_Q52, slots, slot_bytes)
}

/// Columns and entries of the default table.
fn geometry(protocol: Protocol, slots: usize, slot_bytes: usize) -> (usize, usize) {
    let table = default(protocol, slots, slot_bytes);
    (table.shape().columns, table.pack_shape().entries())
}

#[test]
fn every_slot_has_its_place() {
    for params in [PACK_M31, VIPIR_N4096_3X29, INSECURE_PACK_N256] {
        for protocol in PACK {
            for slots in SLOTS {
                for slot_bytes in SLOT_BYTES {
                    packed(protocol, params, slots, slot_bytes);
                }
            }
        }
    }
    for params in [COLPACK_N2048_Q52, INSECURE_COLPACK_N256, INSECURE_COLPACK_PLAIN] {
        for protocol in COLUMN {
            for slots in &SLOTS[..7] {
                for slot_bytes in &SLOT_BYTES[..11] {
                    column_packed(protocol, params, *slots, *slot_bytes);
                }
            }
            for (slots, slot_bytes) in [(999_983, 1000), (30_000_000, 2), (5, 1 << 20), (1000, 1 << 20)] {
                column_packed(protocol, params, slots, slot_bytes);
            }
        }
    }
}

/// Tiles of the hint are full. Where the planes of an entry do not fill them, fewer than the next power of two of them are
/// padding.
#[test]
fn planes_come_in_whole_tiles() {
    for protocol in [Protocol::ExppackS, Protocol::DoublePack, Protocol::Hybrid] {
        for slots in SLOTS {
            for slot_bytes in SLOT_BYTES {
                let Some(table) = packed(protocol, PACK_M31, slots, slot_bytes) else { continue };
                let (shape, tiling) = (table.first_shape(), table.hint_tiling());
                let padding = tiling.tiles() * tiling.tile_width() - shape.plaintexts();
                let fills_tiles = 16 % shape.planes() == 0 || shape.planes() % 16 == 0;
                let most = if fills_tiles { 0 } else { shape.planes().next_power_of_two() - 1 };
                assert!(padding <= most, "{protocol}, {slots} slots of {slot_bytes}: {padding} of padding");
            }
        }
    }
}

/// A single record is a single plaintext.
#[test]
fn one_record() {
    for protocol in PACK {
        let table = packed(protocol, PACK_M31, 1, 3).unwrap();
        let shape = table.shape();
        assert_eq!((shape.columns, shape.blocks, table.folds()), (1, 1, 0), "{protocol}");
        assert_eq!(table.first_shape().plaintexts(), 1);
    }
}

/// `exppack-s` sends a ciphertext a plane, so it has the fewest planes.
#[test]
fn exppack_s_has_fewer_planes() {
    for (slots, slot_bytes) in [(1 << 18, 4096), (3_000_000, 100), (65_537, 10_000)] {
        let planes =
            |protocol| packed(protocol, PACK_M31, slots, slot_bytes).unwrap().first_shape().plaintexts();
        assert!(planes(Protocol::ExppackS) <= planes(Protocol::Hybrid), "{slots} slots of {slot_bytes}");
        assert_eq!(planes(Protocol::DoublePack), planes(Protocol::Hybrid));
    }
}

#[test]
fn a_gibibyte_of_4_kib_records() {
    assert_eq!(geometry(Protocol::Colpack, GIB / 4096, 4096), (1 << 15, 8));
}

/// Neither pack columns of more than half of the table, nor queries of hundreds of KiB.
#[test]
fn large_tables_have_some_ten_thousand_columns() {
    for protocol in COLUMN {
        for gib in [1, 2, 3, 5, 8, 16, 31, 64] {
            for slot_bytes in [32, 100, 256, 1000, 1024, 4096, 5000, 1 << 16] {
                let table = default(protocol, gib * GIB / slot_bytes, slot_bytes);
                let (columns, share) = (
                    table.shape().columns,
                    table.columns_tiling().bytes() as f64 / table.tiling().bytes() as f64,
                );
                let name = format!("{protocol}, {gib} GiB of {slot_bytes}: {columns} columns, {share:.2}");
                // Powers of two of entries may pass the upper limit by sqrt(2), the least number of entries by 2.
                assert!((1 << 14..=100_000).contains(&columns), "{name}");
                assert!(share < 0.51, "{name}");
            }
        }
    }
}

/// Folds are of a power of two of entries, so there are as many.
#[test]
fn entries_are_powers_of_two() {
    for slots in (1..1 << 20).step_by(4999).chain([1 << 20, 9_999_999, 1 << 24, (1 << 24) + 1]) {
        for slot_bytes in [1, 60, 512, 2048, 4096, 6000] {
            let table = default(Protocol::Colpack, slots, slot_bytes);
            let (entries, folded) = (table.pack_shape().entries(), table.external_products() + 1);
            assert_eq!(entries, folded, "{slots} slots of {slot_bytes}");
        }
    }
}

/// Small tables are one entry: one record, a few long ones, and as many as fit.
#[test]
fn small_tables_are_one_entry() {
    for protocol in COLUMN {
        for (slots, slot_bytes) in [(1, 3), (1, 1 << 20), (100, 100), (10_000, 100), (1000, 2048)] {
            let table = default(protocol, slots, slot_bytes);
            assert_eq!(table.pack_shape().entries(), 1, "{protocol}: {slots} slots of {slot_bytes}");
            assert!(!table.folds() && table.answer_plaintexts() == slot_bytes.div_ceil(2048));
        }
        // Five records of a MiB in one block: 512 plaintexts, as more blocks would make more pack columns.
        assert_eq!(geometry(protocol, 5, 1 << 20), (5, 1));
    }
    // 10,000 records of 100 bytes: 20 lanes share the plaintext.
    let table = default(Protocol::Colpack, 10_000, 100);
    assert_eq!((table.shape().columns, table.shape().blocks, table.lanes()), (500, 20, 20));
}

/// Both protocols stay at or above 2^14 columns where a table has as many slots a lane.
#[test]
fn defaults_keep_the_fewest_columns() {
    for protocol in COLUMN {
        for slots in (1 << 14..1 << 18).step_by(1001) {
            for slot_bytes in [100, 1024, 2048, 4096] {
                let table = default(protocol, slots, slot_bytes);
                let enough = table.shape().columns >= 1 << 14 || table.pack_shape().entries() == 1;
                assert!(enough, "{protocol}, {slots} slots of {slot_bytes}: {}", table.shape().columns);
            }
        }
    }
}
