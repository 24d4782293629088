//! Tables whose answers are packed: where slots lie, what the shapes of the folds are, and which power of X selects an entry.

use hush_he::params::{COLPACK_N2048_Q52, INSECURE_COLPACK_N256, INSECURE_COLPACK_PLAIN, INSECURE_PACK_N256};
use hush_ops::pack_shape::PackShape;
use hush_protocol::Protocol;

use crate::support::{COLUMN, column_table, pack_table, shape};

/// 256 / 60 = 4 lanes: 11 blocks are two entries and three lanes of a third.
fn check_lanes(lanes: usize, rows: usize, packed: PackShape, place: impl Fn(usize) -> (usize, usize)) {
    let places: Vec<_> = (0..11).map(place).collect();
    assert_eq!(places[..5], [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)]);
    assert_eq!((places[10], lanes, rows), ((2, 2), 4, 660));
    assert_eq!((packed.entries(), packed.planes(), packed.plaintexts()), (3, 1, 3));
    assert_eq!((packed.plaintext_rows(0), packed.plaintext_rows(2)), (0..240, 480..660));
    // Every block's rows are in the plaintext of its entry, at its lane.
    for (block, (entry, lane)) in places.into_iter().enumerate() {
        let start = packed.plaintext_rows(entry).start + 60 * lane;
        assert_eq!(start, 60 * block);
        assert!(start + 60 <= packed.plaintext_rows(entry).end);
    }
}

/// Short slots share a plaintext; the last entry holds the blocks that are left.
#[test]
fn short_slots_lie_in_lanes() {
    let table = pack_table(Protocol::Hybrid, INSECURE_PACK_N256, shape(8, 11, 60));
    assert_eq!((table.folds(), table.answer_plaintexts()), (2, 1));
    check_lanes(table.lanes(), table.rows(), table.first_shape(), |block| table.place(block));
    for protocol in COLUMN {
        let table = column_table(protocol, INSECURE_COLPACK_N256, shape(8, 11, 60));
        check_lanes(table.lanes(), table.rows(), table.pack_shape(), |block| table.place(block));
    }
}

/// Long slots take several plaintexts, the last of which is short.
#[test]
fn long_slots_lie_in_planes() {
    let table = pack_table(Protocol::Hybrid, INSECURE_PACK_N256, shape(8, 5, 600));
    assert_eq!((table.lanes(), table.folds(), table.place(4)), (1, 3, (4, 0)));
    let first = table.first_shape();
    assert_eq!((first.entries(), first.planes(), first.plaintexts()), (5, 3, 15));
    assert_eq!((first.plaintext_rows(12), first.plaintext_rows(14)), (2400..2656, 2912..3000));
    assert_eq!(table.answer_plaintexts(), 3);
}

/// A slot of exactly a plaintext, and one byte more: planes. No plaintext is without rows, which could not be packed.
#[test]
fn slots_of_about_a_plaintext() {
    for (slot_bytes, lanes, planes) in [(128, 2, 1), (129, 1, 1), (256, 1, 1), (257, 1, 2), (600, 1, 3)] {
        for blocks in [3, 5] {
            let shape = shape(8, blocks, slot_bytes);
            let exppack_s = pack_table(Protocol::ExppackS, INSECURE_PACK_N256, shape);
            let colpack_s = column_table(Protocol::ColpackS, INSECURE_COLPACK_N256, shape);
            let colpack = column_table(Protocol::Colpack, INSECURE_COLPACK_N256, shape);
            assert_eq!([exppack_s.lanes(), colpack_s.lanes()], [lanes; 2], "slots of {slot_bytes}");
            assert_eq!(exppack_s.answer_plaintexts(), exppack_s.first_shape().plaintexts());
            let plaintexts = colpack_s.pack_shape().plaintexts();
            let answers = [colpack_s.answer_plaintexts(), colpack.answer_plaintexts()];
            assert_eq!(answers, [plaintexts, planes]);
            for packed in [exppack_s.first_shape(), colpack_s.pack_shape()] {
                assert_eq!(packed.planes(), planes, "slots of {slot_bytes}");
                assert_eq!(packed.entries(), blocks.div_ceil(lanes));
                assert!((0..packed.plaintexts()).all(|column| !packed.plaintext_rows(column).is_empty()));
            }
        }
    }
}

/// The second fold's rows: of a digit each in `exppack-d`, of a byte each in `double-pack`.
#[test]
fn second_folds_are_one_entry() {
    let n = INSECURE_PACK_N256.lwe().n();
    let digits = pack_table(Protocol::ExppackD, INSECURE_PACK_N256, shape(8, 7, 3));
    let second = digits.second_shape();
    assert_eq!((digits.second_hint_rows(), digits.second_answer_rows()), (2 * 3 * n, 2 * 3));
    assert_eq!((second.rows(), second.entries()), (2 * 3 * (n + 1), 1));
    assert_eq!((digits.second_words(), digits.folds()), (7, 0));
    assert_eq!(digits.hint_shape(), second);
    assert_eq!((digits.answer_plaintexts(), digits.hint_tiling().columns()), (2, 2));
    // 32 bits a coefficient, two planes an entry.
    let bytes = pack_table(Protocol::DoublePack, INSECURE_PACK_N256, shape(8, 7, 300));
    let second = bytes.second_shape();
    assert_eq!((second.rows(), second.entries(), second.planes()), (4 * 2 * 256, 1, 8));
    assert_eq!((bytes.second_words(), bytes.answer_plaintexts()), (7, 8));
    assert_eq!(bytes.hint_shape(), bytes.first_shape());
}

/// Entry i of T, a power of two, is selected by `X^(2N i / T)`: all different, none beyond 2N.
#[test]
fn every_entry_has_its_power_of_x() {
    for params in [COLPACK_N2048_Q52, INSECURE_COLPACK_N256, INSECURE_COLPACK_PLAIN] {
        let degree = params.ring().degree();
        for (entries, rounded) in [(2, 2), (3, 4), (4, 4), (5, 8), (17, 32), (degree + 1, 2 * degree)] {
            let shape = shape(8, entries, degree);
            let colpack = column_table(Protocol::Colpack, params, shape);
            assert_eq!((colpack.folds(), colpack.external_products()), (true, rounded - 1));
            let powers: Vec<_> = (0..entries).map(|entry| colpack.exponent(entry).unwrap()).collect();
            let expected: Vec<_> = (0..entries).map(|entry| entry * (2 * degree / rounded)).collect();
            assert_eq!(powers, expected);
            assert!(powers.iter().all(|&power| power < 2 * degree));
            let colpack_s = column_table(Protocol::ColpackS, params, shape);
            assert_eq!((colpack_s.folds(), colpack_s.external_products()), (false, 0));
            assert!((0..entries).all(|entry| colpack_s.exponent(entry).is_none()));
        }
        // One entry is not folded.
        let single = column_table(Protocol::Colpack, params, shape(8, 4, degree / 4));
        assert_eq!((single.folds(), single.external_products(), single.exponent(0)), (false, 0, None));
    }
}
