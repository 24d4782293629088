//! The shapes that are chosen for tables whose answers are packed, off the beaten track: one record, slots of a byte and of
//! many planes, every protocol. Nothing is built.

use hush_he::params::{INSECURE_PACK_N256, PACK_M31, PackParams, VIPIR_N4096_3X29};
use hush_protocol::{
    layout,
    pack_table::{MAX_EXPPACK_D_SLOT, PackTable},
    table::{Protocol, Scheme},
};

const PROTOCOLS: [Protocol; 4] =
    [Protocol::ExppackS, Protocol::ExppackD, Protocol::DoublePack, Protocol::Hybrid];
const SLOTS: [usize; 9] = [1, 2, 3, 63, 1000, 65_537, 1 << 18, 999_983, 3_000_000];
const SLOT_BYTES: [usize; 12] = [1, 2, 16, 100, 1365, 2048, 2049, 4096, 4097, 10_000, 1 << 16, 1 << 20];

/// The table that a build by index makes.
fn table(protocol: Protocol, params: PackParams, slots: usize, slot_bytes: usize) -> Option<PackTable> {
    let scheme = Scheme::Pack(protocol, params);
    let columns = layout::columns(&scheme, slots, slot_bytes);
    assert!((1..=slots).contains(&columns), "{protocol}: {columns} columns for {slots} slots");
    let keyed = layout::key_columns(&scheme, slots, slot_bytes);
    assert!((columns..=slots).contains(&keyed), "{protocol}: {keyed} columns for {slots} slots by key");
    let shape = layout::index_shape(&scheme, slots, slot_bytes, columns);
    assert!(shape.columns * shape.blocks >= slots, "{protocol}: {slots} slots in {shape:?}");
    assert!((shape.columns - 1) * shape.blocks < slots, "{protocol}: {slots} slots in {shape:?}, wasteful");
    for index in [0, slots / 2, slots - 1] {
        let (block, column) = layout::index_position(&shape, index);
        assert!(block < shape.blocks && column < shape.columns, "{protocol}: {index} in {shape:?}");
    }
    // Tables beyond a few TiB of hint are refused, not those that a machine could hold.
    match PackTable::new(protocol, params, shape) {
        Ok(table) => Some(table),
        Err(error) => {
            let too_long = protocol == Protocol::ExppackD && slot_bytes > MAX_EXPPACK_D_SLOT;
            assert!(too_long || slots * slot_bytes > 1 << 30, "{protocol}: {shape:?}: {error}");
            None
        }
    }
}

#[test]
fn every_slot_has_its_place() {
    for params in [PACK_M31, VIPIR_N4096_3X29, INSECURE_PACK_N256] {
        for protocol in PROTOCOLS {
            for slots in SLOTS {
                for slot_bytes in SLOT_BYTES {
                    table(protocol, params, slots, slot_bytes);
                }
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
                let Some(table) = table(protocol, PACK_M31, slots, slot_bytes) else { continue };
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
    for protocol in PROTOCOLS {
        let table = table(protocol, PACK_M31, 1, 3).unwrap();
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
            |protocol| table(protocol, PACK_M31, slots, slot_bytes).unwrap().first_shape().plaintexts();
        assert!(planes(Protocol::ExppackS) <= planes(Protocol::Hybrid), "{slots} slots of {slot_bytes}");
        assert_eq!(planes(Protocol::DoublePack), planes(Protocol::Hybrid));
    }
}
