//! Look-ups with every protocol: every slot of small tables in the clear on the plain backend, encrypted ones on the reference, of
//! single slots and of sums.

use hush_he::params::{
    DEFAULT_LWE, INSECURE_COLPACK_N256, INSECURE_COLPACK_PLAIN, INSECURE_PACK_N256, INSECURE_PACK_PLAIN,
    INSECURE_PLAIN, INSECURE_PRIVKS_N256, INSECURE_PRIVKS_PLAIN, INSECURE_RING_N256, INSECURE_RING_PLAIN,
    INSECURE_TFHE_N256, INSECURE_TFHE_PLAIN, LWE_N1280_STD3_2_PLAIN, ONION_M31, ONION_S, PPIR_N1024_SEC110,
    ParameterSet, SIMPLEPIR_N1024_STD6_4_SEC121, TFHE_COMPACT, TFHE_FAST, TFHE_PRIVKS, TFHE_TINY,
};
use hush_math::csprng::Csprng;
use hush_ops::reference::Reference;
use hush_protocol::{Protocol, ProtocolError, Target, facts::DbForm, table::TableShape};
use hush_testkit::plain::Plain;

use crate::support::{COLUMN, PACK, Setup, all_columns, every_slot, filled, one, shape, table};

const LWE: [Protocol; 3] = [Protocol::Frodo, Protocol::Simple, Protocol::Double];

/// Columns, blocks and slot bytes.
type Shapes = [(usize, usize, usize)];

const LWE_SHAPES: [(usize, usize, usize); 5] = [(1, 1, 1), (5, 3, 2), (65, 4, 3), (130, 1, 33), (3, 70, 1)];

/// For N = 64: lanes, one slot a plaintext, two and three planes; one entry, odd and even numbers of them, a last entry that is
/// not full.
const PACK_SHAPES: [(usize, usize, usize); 8] =
    [(1, 1, 1), (5, 70, 3), (3, 4, 40), (4, 5, 20), (3, 7, 64), (2, 1, 65), (3, 5, 130), (4, 2, 128)];

/// Beside these, for column packing: 7 entries, more than N, as many as powers of X.
const COLUMN_SHAPES: [(usize, usize, usize); 4] = [(4, 3, 100), (2, 70, 64), (1, 128, 33), (130, 9, 1)];

/// Lanes, one slot a plaintext, two, three and four planes; one entry, odd and even numbers of them.
const RING_SHAPES: [(usize, usize, usize); 9] = [
    (1, 1, 1),
    (3, 40, 5),
    (4, 7, 150),
    (20, 5, 64),
    (5, 3, 176),
    (2, 1, 177),
    (7, 3, 352),
    (4, 5, 400),
    (3, 2, 700),
];

/// Returns a vector with many entries, as a key look-up has.
fn many_hot(shape: TableShape, rng: &mut Csprng) -> Target {
    let columns = (0..shape.columns as u32).filter(|_| rng.next_u32() & 1 == 1).map(|col| (col, 1)).collect();
    Target { columns, block: rng.next_u32() as usize % shape.blocks }
}

/// Returns a target of every second column.
fn even_columns(shape: TableShape, block: usize) -> Target {
    Target { columns: (0..shape.columns as u32).step_by(2).map(|column| (column, 1)).collect(), block }
}

fn every_index(protocols: &[Protocol], set: &str, shapes: &Shapes) {
    let rng = &mut Csprng::insecure_from_seed(1);
    for &protocol in protocols {
        for &(columns, blocks, slot_bytes) in shapes {
            let is_refused = (protocol == Protocol::Frodo && blocks > 1)
                || (protocol == Protocol::ExppackD && slot_bytes > 64);
            if is_refused {
                continue;
            }
            let shape = shape(columns, blocks, slot_bytes);
            let setup = Setup::new(Plain, table(protocol, set, shape), filled(shape, None));
            setup.check(&every_slot(shape));
            setup.check(&[all_columns(shape, blocks - 1), many_hot(shape, rng), many_hot(shape, rng)]);
        }
    }
}

#[test]
fn every_index_in_the_clear_over_lwe() {
    every_index(&LWE, INSECURE_PLAIN.name(), &LWE_SHAPES);
}

#[test]
fn every_index_without_encryption_packed() {
    every_index(&PACK, INSECURE_PACK_PLAIN.name(), &PACK_SHAPES);
}

#[test]
fn every_index_without_encryption_with_column_packing() {
    every_index(&COLUMN, INSECURE_COLPACK_PLAIN.name(), &[&PACK_SHAPES[..], &COLUMN_SHAPES].concat());
}

#[test]
fn every_index_without_encryption_over_rings() {
    every_index(&[Protocol::Onion], INSECURE_RING_PLAIN.name(), &RING_SHAPES);
}

/// Beside these, for `tfhe`: as many lanes as symbols, lanes that are no power of two, one of two and of four, planes.
const TFHE_SHAPES: [(usize, usize, usize); 7] =
    [(2, 70, 1), (3, 40, 5), (5, 9, 8), (3, 9, 9), (4, 3, 16), (3, 2, 17), (2, 3, 90)];

#[test]
fn every_index_without_encryption_with_rotations() {
    let shapes = [&RING_SHAPES[..], &TFHE_SHAPES].concat();
    every_index(&[Protocol::Tfhe], INSECURE_TFHE_PLAIN.name(), &shapes);
    every_index(&[Protocol::TfhePrivks], INSECURE_PRIVKS_PLAIN.name(), &shapes);
}

/// Slots of a lane of many, that fit the small ring and do not, and of several planes; in both forms.
#[test]
fn slots_that_are_rotated_are_found_under_encryption() {
    for (columns, blocks, slot_bytes) in
        [(3, 40, 1), (20, 70, 5), (7, 9, 32), (4, 5, 33), (9, 3, 65), (2, 3, 300)]
    {
        let shape = shape(columns, blocks, slot_bytes);
        for form in [DbForm::Evaluation, DbForm::Symbols] {
            for fill in [None, Some(0x88), Some(0x77)] {
                let table = table(Protocol::Tfhe, INSECURE_TFHE_N256.name(), shape).in_form(form).unwrap();
                let matrix = fill.map_or_else(|| patterned(shape, mixed), |byte| filled(shape, Some(byte)));
                let setup = Setup::new(Reference, table, matrix);
                let ones = [one(0, 0), one(columns - 1, blocks - 1), one(columns / 2, blocks / 2)];
                setup.check(&[&ones[..], &[all_columns(shape, blocks - 1), even_columns(shape, 0)]].concat());
            }
        }
    }
}

/// A column, as in the paper, and several; lanes and planes.
#[test]
fn slots_are_found_by_private_key_switching() {
    for (columns, blocks, slot_bytes) in [(1, 40, 5), (9, 7, 32), (1, 9, 65), (40, 3, 150)] {
        let shape = shape(columns, blocks, slot_bytes);
        for form in [DbForm::Evaluation, DbForm::Symbols] {
            let table =
                table(Protocol::TfhePrivks, INSECURE_PRIVKS_N256.name(), shape).in_form(form).unwrap();
            let setup = Setup::new(Reference, table, patterned(shape, mixed));
            setup.check(&[one(0, 0), one(columns - 1, blocks - 1), all_columns(shape, blocks / 2)]);
        }
    }
    let shape = shape(1, 11, 128);
    let table = table(Protocol::TfhePrivks, TFHE_PRIVKS.name(), shape);
    Setup::new(Reference, table, filled(shape, Some(0xaa))).check(&[one(0, 9)]);
}

/// The paper's own set has no room for a fold; rows and planes it has.
#[test]
fn the_papers_set_is_refused_where_it_would_fold() {
    let (name, folded) = (PPIR_N1024_SEC110.name(), shape(2, 2, 256));
    let error = Protocol::TfhePrivks.page().table(name, folded).unwrap_err();
    assert!(matches!(error, ProtocolError::TooNoisy { .. }), "{error}");
    let shape = shape(3, 1, 300);
    let setup = Setup::new(Reference, table(Protocol::TfhePrivks, name, shape), patterned(shape, mixed));
    setup.check(&[one(2, 0)]);
}

/// At the real sizes: a short record, one that fills a polynomial, and a longer one.
#[test]
fn tables_of_tfhe_decode_at_full_size() {
    let patterns: [&dyn Fn(usize, usize, usize) -> u8; 3] =
        [&|_, _, _| 0x88, &|_, column, _| if column % 2 == 0 { 0x88 } else { 0x77 }, &mixed];
    for (params, slot_bytes) in
        [(TFHE_COMPACT, 256), (TFHE_COMPACT, 1024), (TFHE_TINY, 256), (TFHE_FAST, 2048), (TFHE_FAST, 9000)]
    {
        for (form, pattern) in
            [DbForm::Evaluation, DbForm::Symbols, DbForm::Symbols].into_iter().zip(patterns)
        {
            let shape = shape(16, 6, slot_bytes);
            let table = table(Protocol::Tfhe, params.name(), shape).in_form(form).unwrap();
            Setup::new(Reference, table, patterned(shape, pattern))
                .check(&[one(11, 5), even_columns(shape, 3)]);
        }
    }
}

#[test]
fn encrypted_look_ups_on_structured_tables() {
    let rng = &mut Csprng::insecure_from_seed(2);
    let shape = shape(300, 2, 3);
    for lwe in [DEFAULT_LWE, LWE_N1280_STD3_2_PLAIN, SIMPLEPIR_N1024_STD6_4_SEC121] {
        for fill in [None, Some(0), Some(0x80), Some(0xff), Some(0x7f)] {
            let table = table(Protocol::Simple, lwe.name(), shape);
            let setup = Setup::new(Reference, table, filled(shape, fill));
            setup.check(&[many_hot(shape, rng), one(299, 1), many_hot(shape, rng)]);
        }
    }
}

#[test]
fn double_look_ups_of_one_byte() {
    let rng = &mut Csprng::insecure_from_seed(3);
    let shape = shape(40, 7, 1);
    for fill in [None, Some(0x80)] {
        let table = table(Protocol::Double, DEFAULT_LWE.name(), shape);
        let setup = Setup::new(Reference, table, filled(shape, fill));
        setup.check(&[many_hot(shape, rng), one(0, 6)]);
    }
}

#[test]
fn encrypted_packed_tables_of_every_kind() {
    for protocol in PACK {
        for (columns, blocks, slot_bytes) in [(30, 9, 100), (17, 3, 300), (40, 5, 2)] {
            let slot_bytes = if protocol == Protocol::ExppackD { slot_bytes / 60 + 1 } else { slot_bytes };
            let shape = shape(columns, blocks, slot_bytes);
            for fill in [None, Some(0x80), Some(0xff)] {
                let table = table(protocol, INSECURE_PACK_N256.name(), shape);
                let setup = Setup::new(Reference, table, filled(shape, fill));
                setup.check(&[one(0, 0), one(columns - 1, blocks / 2), even_columns(shape, blocks - 1)]);
            }
        }
    }
}

/// N = 256: two lanes and five entries; two planes and three entries; one entry; four entries, the last not full.
#[test]
fn encrypted_tables_of_every_kind_with_column_packing() {
    for protocol in COLUMN {
        for (columns, blocks, slot_bytes) in [(30, 9, 100), (17, 3, 300), (40, 5, 2), (300, 10, 85)] {
            let shape = shape(columns, blocks, slot_bytes);
            for fill in [None, Some(0x80), Some(0xff)] {
                let table = table(protocol, INSECURE_COLPACK_N256.name(), shape);
                let setup = Setup::new(Reference, table, filled(shape, fill));
                let nothing = Target { columns: Vec::new(), block: 1 };
                let ones = [one(0, 0), one(columns - 1, blocks / 2), one(columns / 2, blocks - 1)];
                let sums = [even_columns(shape, blocks - 1), all_columns(shape, 0), nothing];
                setup.check(&[ones, sums].concat());
            }
        }
    }
}

/// Every block of an encrypted table, whatever its entry and lane.
#[test]
fn every_block_of_an_encrypted_table() {
    for protocol in COLUMN {
        for shape in [shape(20, 19, 60), shape(20, 5, 512)] {
            let table = table(protocol, INSECURE_COLPACK_N256.name(), shape);
            let setup = Setup::new(Reference, table, filled(shape, None));
            setup.check(&(0..shape.blocks).map(|block| one(block, block)).collect::<Vec<_>>());
        }
    }
}

/// Returns the slot bytes that a function of block, column and byte gives.
fn patterned(shape: TableShape, byte: impl Fn(usize, usize, usize) -> u8) -> Vec<u8> {
    let rows = (0..shape.blocks * shape.slot_bytes).flat_map(|row| (0..shape.columns).map(move |c| (row, c)));
    rows.map(|(row, column)| byte(row / shape.slot_bytes, column, row % shape.slot_bytes)).collect()
}

fn mixed(block: usize, column: usize, byte: usize) -> u8 {
    (block * 89 + column * 31 + byte * 7 + block * column * byte) as u8
}

#[test]
fn slots_over_rings_are_found_under_encryption() {
    for (columns, blocks, slot_bytes) in [(3, 40, 50), (20, 5, 704), (7, 3, 705), (4, 5, 1500), (2, 1, 2200)]
    {
        let shape = shape(columns, blocks, slot_bytes);
        let table = table(Protocol::Onion, INSECURE_RING_N256.name(), shape);
        let setup = Setup::new(Reference, table, patterned(shape, mixed));
        setup.check(&[one(0, 0), one(columns - 1, blocks - 1), one(columns / 2, blocks / 2)]);
    }
}

/// Tables that are far from random, which whitening has to make so, at the real sizes.
#[test]
fn structured_tables_over_rings_decode_at_full_size() {
    let patterns: [&dyn Fn(usize, usize, usize) -> u8; 3] =
        [&|_, _, _| 0, &|_, _, _| 0xff, &|_, column, _| if column % 2 == 0 { 0x80 } else { 0x7f }];
    for (params, slot_bytes) in [(ONION_M31, 22 << 10), (ONION_S, 4 << 10)] {
        for pattern in patterns {
            let shape = shape(24, 3, slot_bytes);
            let table = table(Protocol::Onion, params.name(), shape);
            let planes = table.facts().details.iter().find(|(name, _)| *name == "planes");
            assert_eq!(planes.unwrap().1, 2);
            Setup::new(Reference, table, patterned(shape, pattern)).check(&[one(17, 2)]);
        }
    }
}

#[test]
fn sums_of_slots_over_rings_wrap_modulo_t() {
    let shape = shape(64, 6, 300);
    let table = table(Protocol::Onion, INSECURE_RING_N256.name(), shape);
    let setup = Setup::new(Reference, table, patterned(shape, mixed));
    let columns = (3..60).map(|column| (column, (column * 5) as u8 | 1)).collect();
    setup.check(&[Target { columns, block: 4 }, Target { columns: vec![(5, 1), (6, 0), (63, 1)], block: 5 }]);
}
