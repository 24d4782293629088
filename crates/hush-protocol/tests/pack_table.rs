//! Tables whose answers are packed: where slots lie, what the shapes of the folds are, and which tables are refused.

use hush_he::params::{
    INSECURE_PACK_N256, PACK_M31, PACK_PRESETS, PackParams, ResponseBits, VIPIR_N4096_3X29,
};
use hush_ops::contract::switched_bytes;
use hush_protocol::{
    ProtocolError,
    pack_table::{MAX_EXPPACK_D_SLOT, PackTable},
    table::{MAX_COLUMNS, MAX_KEPT_BYTES, MAX_ROWS, MAX_SLOT_BYTES, Protocol, TableShape},
};

const PROTOCOLS: [Protocol; 4] =
    [Protocol::ExppackS, Protocol::ExppackD, Protocol::DoublePack, Protocol::Hybrid];

fn shape(columns: usize, blocks: usize, slot_bytes: usize) -> TableShape {
    TableShape { columns, blocks, slot_bytes }
}

fn table(protocol: Protocol, params: PackParams, shape: TableShape) -> PackTable {
    PackTable::new(protocol, params, shape).unwrap()
}

/// What is out of range, and its value.
fn limit(protocol: Protocol, params: PackParams, shape: TableShape) -> (&'static str, u64) {
    refused(PackTable::new(protocol, params, shape))
}

fn refused(table: Result<PackTable, ProtocolError>) -> (&'static str, u64) {
    match table {
        Err(ProtocolError::Limit { what, actual, .. }) => (what, actual),
        other => panic!("{other:?} is no limit"),
    }
}

#[test]
fn shapes_out_of_range_are_refused() {
    for protocol in PROTOCOLS {
        let refuse = |columns, blocks, slot| limit(protocol, PACK_M31, shape(columns, blocks, slot));
        assert_eq!(refuse(0, 3, 5), ("columns", 0));
        assert_eq!(refuse(MAX_COLUMNS + 1, 3, 5), ("columns", MAX_COLUMNS as u64 + 1));
        assert_eq!(refuse(8, 3, 0), ("slot bytes", 0));
        assert_eq!(refuse(8, 1, MAX_SLOT_BYTES + 1), ("slot bytes", MAX_SLOT_BYTES as u64 + 1));
        assert_eq!(refuse(8, 0, 5), ("blocks", 0));
        let most = MAX_ROWS / 5;
        assert_eq!(refuse(8, most + 1, 5), ("blocks", most as u64 + 1));
        assert_eq!(refuse(8, usize::MAX, 5), ("blocks", u64::MAX));
        for bits in [0, 33] {
            let refused = refused(PackTable::with_query_bits(protocol, PACK_M31, shape(8, 3, 5), bits));
            assert_eq!(refused, ("bits of a query word", u64::from(bits)));
        }
    }
}

#[test]
fn exppack_d_is_for_the_shortest_slots() {
    let refuse = |shape| limit(Protocol::ExppackD, PACK_M31, shape);
    table(Protocol::ExppackD, PACK_M31, shape(8, 3, MAX_EXPPACK_D_SLOT));
    let refused =
        PackTable::new(Protocol::ExppackD, PACK_M31, shape(8, 3, MAX_EXPPACK_D_SLOT + 1)).unwrap_err();
    assert!(matches!(refused, ProtocolError::SlotTooLong { instead: Protocol::Hybrid, .. }), "{refused}");
    // A query holds a word for every block.
    let (what, actual) = refuse(shape(8, MAX_COLUMNS + 1, 1));
    assert!(what.starts_with("blocks or entries"), "{what}");
    assert_eq!(actual, MAX_COLUMNS as u64 + 1);
}

/// A switched coefficient is whole words of 32 bits, which it is in every preset: widths that are none come to no bytes,
/// which the table refuses.
#[test]
fn double_pack_wants_widths_of_whole_words() {
    for params in PACK_PRESETS {
        let bits = params.ring().response_bits();
        assert_eq!(switched_bytes(bits), Some((bits.a + bits.b) as usize / 8), "{}", params.name());
        assert!((1..=size_of::<u64>()).contains(&switched_bytes(bits).unwrap()));
        table(Protocol::DoublePack, params, shape(8, 3, 16));
    }
    for (a, b) in [(31, 24), (20, 20), (20, 11)] {
        assert_eq!(switched_bytes(ResponseBits { a, b }), None);
    }
}

/// No table has more folds than rows have bits, so this limit is never met by a preset.
#[test]
fn every_set_has_leaves_for_the_most_folds() {
    for params in PACK_PRESETS {
        assert!(params.leaves(MAX_ROWS.ilog2() as usize) <= params.ring().max_leaves(), "{}", params.name());
    }
}

#[test]
fn a_hint_that_is_too_long_is_refused() {
    let plane = PACK_M31.lwe().n() * PACK_M31.ring().kept_limbs() * 4096 * size_of::<u32>();
    // Whole tiles of 16 columns.
    let planes = MAX_KEPT_BYTES as usize / plane / 16 * 16;
    let longest = table(Protocol::Hybrid, PACK_M31, shape(8, planes, 4096));
    assert_eq!(longest.hint_tiling().bytes(), planes * plane);
    let (what, bytes) = limit(Protocol::Hybrid, PACK_M31, shape(8, planes + 16, 4096));
    assert!(what.starts_with("bytes of the hint"), "{what}");
    assert_eq!(bytes, ((planes + 16) * plane) as u64);
    // What exppack-s would answer with such a table is too long before that.
    let (what, _) = limit(Protocol::ExppackS, PACK_M31, shape(8, planes, 4096));
    assert!(what.starts_with("bytes of an answer"), "{what}");
    // And exppack-d has a database of its own beside the hint.
    let (what, _) = limit(Protocol::ExppackD, PACK_M31, shape(8, MAX_COLUMNS / 8, MAX_EXPPACK_D_SLOT));
    assert!(what.starts_with("bytes of the second database"), "{what}");
}

/// 128 sqrt(2^26) times the error of a query is past the limit of decoding by far.
#[test]
fn tables_that_are_too_noisy_are_refused() {
    for params in [PACK_M31, VIPIR_N4096_3X29] {
        for protocol in PROTOCOLS {
            match PackTable::new(protocol, params, shape(MAX_COLUMNS, 2, 16)) {
                Err(ProtocolError::TooNoisy { log2_failure, columns, blocks, preset }) => {
                    assert!(log2_failure > -40.0, "2^{log2_failure}");
                    assert_eq!((columns, blocks, preset), (MAX_COLUMNS, 2, params.name()));
                }
                other => panic!("{protocol}: {other:?}"),
            }
        }
    }
    // The second fold, over as many blocks or entries.
    for (protocol, shape) in
        [(Protocol::ExppackD, shape(8, MAX_COLUMNS, 1)), (Protocol::ExppackD, shape(1 << 16, MAX_COLUMNS, 1))]
    {
        let refused = PackTable::new(protocol, PACK_M31, shape);
        assert!(matches!(refused, Err(ProtocolError::TooNoisy { .. })), "{protocol}: {refused:?}");
    }
    // Narrow query words alone; wide ones that are enough.
    let narrow = PackTable::with_query_bits(Protocol::Hybrid, PACK_M31, shape(1 << 16, 1, 4096), 16);
    assert!(matches!(narrow, Err(ProtocolError::TooNoisy { .. })), "{narrow:?}");
    let chosen = table(Protocol::Hybrid, PACK_M31, shape(1 << 16, 1, 4096));
    assert!(chosen.sigmas() >= 12.0 && chosen.log2_failure() < -80.0);
    let narrower =
        PackTable::with_query_bits(Protocol::Hybrid, PACK_M31, chosen.shape(), chosen.query_bits() - 1);
    assert!(narrower.is_err() || narrower.is_ok_and(|table| table.sigmas() < 12.0));
}

/// Short slots share a plaintext; the last entry holds the blocks that are left.
#[test]
fn short_slots_lie_in_lanes() {
    // 256 / 60 = 4 lanes: 11 blocks are two entries and three lanes of a third.
    let table = table(Protocol::Hybrid, INSECURE_PACK_N256, shape(8, 11, 60));
    assert_eq!((table.lanes(), table.folds()), (4, 2));
    let places: Vec<_> = (0..11).map(|block| table.place(block)).collect();
    assert_eq!(places[..5], [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)]);
    assert_eq!(places[10], (2, 2));
    let first = table.first_shape();
    assert_eq!((first.entries(), first.planes(), first.plaintexts()), (3, 1, 3));
    assert_eq!((first.plaintext_rows(0), first.plaintext_rows(2)), (0..240, 480..660));
    assert_eq!((table.rows(), table.answer_plaintexts()), (660, 1));
    // Every block's rows are in the plaintext of its entry, at its lane.
    for (block, (entry, lane)) in places.into_iter().enumerate() {
        let start = first.plaintext_rows(entry).start + 60 * lane;
        assert_eq!(start, 60 * block);
        assert!(start + 60 <= first.plaintext_rows(entry).end);
    }
}

/// Long slots take several plaintexts, the last of which is short.
#[test]
fn long_slots_lie_in_planes() {
    let table = table(Protocol::Hybrid, INSECURE_PACK_N256, shape(8, 5, 600));
    assert_eq!((table.lanes(), table.folds(), table.place(4)), (1, 3, (4, 0)));
    let first = table.first_shape();
    assert_eq!((first.entries(), first.planes(), first.plaintexts()), (5, 3, 15));
    assert_eq!((first.plaintext_rows(12), first.plaintext_rows(14)), (2400..2656, 2912..3000));
    assert_eq!(table.answer_plaintexts(), 3);
}

/// A slot of exactly a plaintext, and one byte more.
#[test]
fn slots_of_about_a_plaintext() {
    for (slot_bytes, lanes, planes) in [(128, 2, 1), (129, 1, 1), (256, 1, 1), (257, 1, 2)] {
        let table = table(Protocol::ExppackS, INSECURE_PACK_N256, shape(8, 3, slot_bytes));
        let first = table.first_shape();
        assert_eq!((table.lanes(), first.planes()), (lanes, planes), "slots of {slot_bytes}");
        assert_eq!(table.answer_plaintexts(), first.plaintexts());
        assert_eq!(first.entries(), 3usize.div_ceil(lanes));
    }
}

/// The second fold's rows: of a digit each in `exppack-d`, of a byte each in `double-pack`.
#[test]
fn second_folds_are_one_entry() {
    let n = INSECURE_PACK_N256.lwe().n();
    let digits = table(Protocol::ExppackD, INSECURE_PACK_N256, shape(8, 7, 3));
    let second = digits.second_shape();
    assert_eq!((digits.second_hint_rows(), digits.second_answer_rows()), (2 * 3 * n, 2 * 3));
    assert_eq!((second.rows(), second.entries()), (2 * 3 * (n + 1), 1));
    assert_eq!((digits.second_words(), digits.folds()), (7, 0));
    assert_eq!(digits.hint_shape(), second);
    assert_eq!((digits.answer_plaintexts(), digits.hint_tiling().columns()), (2, 2));
    // 32 bits a coefficient, two planes an entry.
    let bytes = table(Protocol::DoublePack, INSECURE_PACK_N256, shape(8, 7, 300));
    let second = bytes.second_shape();
    assert_eq!((second.rows(), second.entries(), second.planes()), (4 * 2 * 256, 1, 8));
    assert_eq!((bytes.second_words(), bytes.answer_plaintexts()), (7, 8));
    assert_eq!(bytes.hint_shape(), bytes.first_shape());
}
