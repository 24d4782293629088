//! Which tables are refused, and how wide query words are chosen.

#![allow(clippy::print_stdout)]

use std::collections::BTreeSet;

use hush_he::params::{
    COLPACK_N2048_Q52, ColumnNoise, DEFAULT_LWE, FRODOPIR_N1774_TERNARY, INSECURE_COLPACK_N256,
    INSECURE_COLPACK_PLAIN, MAX_LOG2_FAILURE, ONION_M31, ONIONPIRV2_N4096_4X27_SEC126, PACK_M31,
    PACK_PRESETS, ResponseBits, SIMPLEPIR_N1024_STD6_4_SEC121, VIPIR_N4096_3X29, Widths,
};
use hush_ops::{contract::switched_bytes, ntt_tiling::MAX_ROWS};
use hush_protocol::{
    Protocol, ProtocolError,
    any_page::TableParams,
    column_table::ColumnTable,
    pack_table::{MAX_EXPPACK_D_SLOT, PackTable},
    ring_table::RingTable,
    table::{MAX_COLUMNS, MAX_DB_ROWS, MAX_KEPT_BYTES, MAX_SLOT_BYTES, TableShape},
};

use crate::support::{COLUMN, PACK, column_spec, column_table, pack_spec, pack_table, shape};

/// Protocols whose database is bytes, with sets of theirs.
fn byte_tables() -> Vec<(Protocol, &'static str)> {
    let columns = [COLPACK_N2048_Q52, INSECURE_COLPACK_N256, INSECURE_COLPACK_PLAIN];
    let pack = PACK.map(|protocol| (protocol, PACK_M31.name()));
    let column = COLUMN.map(|protocol| columns.map(|params| (protocol, params.name())));
    [&[(Protocol::Simple, DEFAULT_LWE.name())], &pack[..], &column[0], &column[1]].concat()
}

type Made = Result<TableParams, ProtocolError>;

fn new(protocol: Protocol, set: &str, shape: TableShape) -> Made {
    protocol.page().table(set, shape)
}

/// Returns the table with query words of so many bits.
fn with_query_bits(protocol: Protocol, set: &str, shape: TableShape, bits: u32) -> Made {
    let small = new(protocol, set, TableShape { columns: 8, ..shape }).unwrap();
    let [_, hint, answer] = small.facts().word_bits.unwrap();
    protocol.page().described(set, shape, Some([bits, hint, answer]))
}

/// Returns the name of the value that is out of range, and the value.
fn limit<T: std::fmt::Debug>(table: Result<T, ProtocolError>) -> (&'static str, u64) {
    match table {
        Err(ProtocolError::Limit { what, actual, .. }) => (what, actual),
        other => panic!("{other:?} is no limit"),
    }
}

#[test]
fn shapes_out_of_range_are_refused() {
    for (protocol, set) in byte_tables() {
        let refuse = |columns, blocks, slot| limit(new(protocol, set, shape(columns, blocks, slot)));
        let most = MAX_DB_ROWS / 5;
        let huge = usize::MAX;
        for columns in [0, MAX_COLUMNS + 1, 1 << 40, huge] {
            assert_eq!(refuse(columns, 3, 5), ("columns", columns as u64));
        }
        for slot_bytes in [0, MAX_SLOT_BYTES + 1, huge] {
            assert_eq!(refuse(8, 1, slot_bytes), ("slot bytes", slot_bytes as u64));
        }
        for blocks in [0, most + 1, huge] {
            assert_eq!(refuse(8, blocks, 5), ("blocks", blocks as u64));
        }
        let has_widths = protocol == Protocol::Simple || COLUMN.contains(&protocol);
        let what = if has_widths { "bits of a word" } else { "bits of a query word" };
        for bits in [0, 33, u32::MAX] {
            let refused = limit(with_query_bits(protocol, set, shape(8, 3, 5), bits));
            assert_eq!(refused, (what, u64::from(bits)));
        }
        with_query_bits(protocol, set, shape(8, 3, 5), 32).unwrap();
    }
}

#[test]
fn frodo_and_double_have_limits_of_their_own() {
    let refuse = limit(new(Protocol::Frodo, DEFAULT_LWE.name(), shape(10, 2, 4)));
    assert_eq!(refuse.0, "blocks (frodo has one)");
    // With more, its ternary errors would give it fewer bits than it claims.
    let ternary = |columns| new(Protocol::Frodo, FRODOPIR_N1774_TERNARY.name(), shape(columns, 1, 4));
    assert!(ternary(1 << 23).is_ok());
    assert_eq!(limit(ternary((1 << 23) + 1)), ("columns", (1 << 23) + 1));
    let long = new(Protocol::Double, DEFAULT_LWE.name(), shape(10, 2, 4000));
    assert!(matches!(long, Err(ProtocolError::SlotTooLong { max: 163, .. })), "{long:?}");
}

#[test]
fn shapes_over_rings_out_of_range_are_refused() {
    let new = |columns, blocks, slot_bytes| RingTable::new(ONION_M31, shape(columns, blocks, slot_bytes));
    assert!(new(256, 1, 100).is_ok());
    for (columns, blocks, slot_bytes) in [
        (0, 1, 1),
        (1, 0, 1),
        (1, 1, 0),
        (4097, 1, 1),
        (4090, 1 << 20, 11 << 10),
        (1, usize::MAX, 1),
        (1, 1, MAX_SLOT_BYTES + 1),
    ] {
        let refused = new(columns, blocks, slot_bytes).unwrap_err();
        assert!(matches!(refused, ProtocolError::Limit { .. } | ProtocolError::TooNoisy { .. }), "{refused}");
    }
    assert!(matches!(new(1000, 1 << 22, 22 << 10), Err(ProtocolError::TooNoisy { .. })));
    // More rows than a database can have, though the tree has the leaves and the noise the room.
    for columns in [MAX_ROWS, MAX_ROWS + 1] {
        let table = RingTable::new(ONIONPIRV2_N4096_4X27_SEC126, shape(columns, 4, 1000));
        assert_eq!(table.map(|table| table.tiling().rows()).ok(), (columns == MAX_ROWS).then_some(MAX_ROWS));
    }
}

#[test]
fn exppack_d_is_for_the_shortest_slots() {
    let new = |shape| new(Protocol::ExppackD, PACK_M31.name(), shape);
    new(shape(8, 3, MAX_EXPPACK_D_SLOT)).unwrap();
    let refused = new(shape(8, 3, MAX_EXPPACK_D_SLOT + 1)).unwrap_err();
    assert!(matches!(refused, ProtocolError::SlotTooLong { instead: Protocol::Hybrid, .. }), "{refused}");
    // A query holds a word for every block.
    let (what, actual) = limit(new(shape(8, MAX_COLUMNS + 1, 1)));
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
        pack_table(Protocol::DoublePack, params, shape(8, 3, 16));
    }
    for (a, b) in [(31, 24), (20, 20), (20, 11)] {
        assert_eq!(switched_bytes(ResponseBits { a, b }), None);
    }
}

/// No table has more folds than rows have bits, so this limit is never met by a preset.
#[test]
fn every_set_has_leaves_for_the_most_folds() {
    for params in PACK_PRESETS {
        let leaves = params.leaves(MAX_DB_ROWS.ilog2() as usize);
        assert!(leaves <= params.ring().max_leaves(), "{}", params.name());
    }
}

#[test]
fn a_hint_that_is_too_long_is_refused() {
    let plane = PACK_M31.lwe().n() * PACK_M31.ring().kept_limbs() * 4096 * size_of::<u32>();
    let refuse = |protocol, shape| limit(new(protocol, PACK_M31.name(), shape));
    // Whole tiles of 16 columns.
    let planes = MAX_KEPT_BYTES as usize / plane / 16 * 16;
    let longest = pack_table(Protocol::Hybrid, PACK_M31, shape(8, planes, 4096));
    assert_eq!(longest.hint_tiling().bytes(), planes * plane);
    let (what, bytes) = refuse(Protocol::Hybrid, shape(8, planes + 16, 4096));
    assert!(what.starts_with("bytes of the hint"), "{what}");
    assert_eq!(bytes, ((planes + 16) * plane) as u64);
    // What exppack-s would answer with such a table is too long before that.
    let (what, _) = refuse(Protocol::ExppackS, shape(8, planes, 4096));
    assert!(what.starts_with("bytes of an answer"), "{what}");
    // And exppack-d has a database of its own beside the hint.
    let (what, _) = refuse(Protocol::ExppackD, shape(8, MAX_COLUMNS / 8, MAX_EXPPACK_D_SLOT));
    assert!(what.starts_with("bytes of the second database"), "{what}");
}

/// Refuses one entry more than the 2N powers of X, with a message that says what to do. Where nothing is folded,
/// there may be more.
#[test]
fn more_entries_than_powers_of_x_are_refused() {
    for params in [COLPACK_N2048_Q52, INSECURE_COLPACK_N256, INSECURE_COLPACK_PLAIN] {
        let degree = params.ring().degree();
        let full = column_table(Protocol::Colpack, params, shape(8, 2 * degree, degree));
        assert_eq!(full.pack_shape().entries(), 2 * degree);
        let more =
            |protocol| ColumnTable::new(column_spec(protocol), params, shape(8, 2 * degree + 1, degree));
        let error = more(Protocol::Colpack).unwrap_err();
        assert!(error.to_string().contains("use more columns"), "{error}");
        assert_eq!(limit::<()>(Err(error)).1, 2 * degree as u64 + 1);
        assert_eq!(more(Protocol::ColpackS).unwrap().pack_shape().entries(), 2 * degree + 1);
        // Lanes: as many blocks as fit beside each other count once.
        let short = column_table(Protocol::Colpack, params, shape(8, 2 * degree * 4, degree / 4));
        assert_eq!((short.lanes(), short.pack_shape().entries()), (4, 2 * degree));
        let more = new(Protocol::Colpack, params.name(), shape(8, 2 * degree * 4 + 1, degree / 4));
        assert_eq!(limit(more).1, 2 * degree as u64 + 1);
    }
}

/// Pack columns of more than a TiB.
#[test]
fn pack_columns_that_are_too_long_are_refused() {
    let bytes_a_row = 4 * 2048;
    // Slots of a MiB in few entries.
    let blocks = (MAX_KEPT_BYTES as usize / bytes_a_row) >> 20;
    let longest = column_table(Protocol::Colpack, COLPACK_N2048_Q52, shape(8, blocks, 1 << 20));
    assert_eq!(longest.columns_tiling().bytes() as u64, MAX_KEPT_BYTES);
    for protocol in COLUMN {
        let error = new(protocol, COLPACK_N2048_Q52.name(), shape(8, blocks + 1, 1 << 20)).unwrap_err();
        assert!(error.to_string().contains("use more columns"), "{error}");
        let (what, bytes) = limit::<()>(Err(error));
        assert!(what.starts_with("bytes of the pack columns"), "{what}");
        assert_eq!(bytes, MAX_KEPT_BYTES + (bytes_a_row << 20) as u64);
    }
}

/// `colpack-s` answers with every row: 256 MiB is the limit, where `colpack` would answer with one entry. The default set has as
/// many pack columns that none of its tables comes so far.
#[test]
fn answers_that_are_too_long_are_refused() {
    let new = |protocol, entries| {
        new(protocol, INSECURE_COLPACK_N256.name(), shape(8, entries, 1 << 20))
            .map(|table| table.facts().answer_bytes)
    };
    let entry = new(Protocol::ColpackS, 100).unwrap() / 100;
    let entries = (256 << 20) / entry;
    assert_eq!(new(Protocol::ColpackS, entries), Ok(entries * entry));
    let error = new(Protocol::ColpackS, entries + 1).unwrap_err();
    assert!(error.to_string().contains("use colpack"), "{error}");
    let (what, bytes) = limit::<()>(Err(error));
    assert!(what.starts_with("bytes of an answer"), "{what}");
    assert_eq!(bytes, ((entries + 1) * entry) as u64);
    assert!(new(Protocol::Colpack, entries + 1).unwrap() < 4 << 20);
}

/// The fewest bits that keep 12 sigma: one less does not.
#[test]
fn query_words_are_as_short_as_the_noise_allows() {
    let mut widths = BTreeSet::new();
    for params in [COLPACK_N2048_Q52, INSECURE_COLPACK_N256] {
        for protocol in COLUMN {
            for log2_columns in [0, 6, 10, 14, 15, 16, 17, 20] {
                let shape = shape(1 << log2_columns, 9, 4096);
                let chosen = column_table(protocol, params, shape);
                assert!(chosen.sigmas() >= Widths::MIN_SIGMAS && chosen.log2_failure() < -80.0);
                widths.insert(chosen.widths().query);
                let fewer = chosen.widths().query - 1;
                let spec = column_spec(protocol);
                let narrow = Widths { query: fewer, ..chosen.widths() };
                if let Ok(narrower) = ColumnTable::with_widths(spec, params, shape, narrow) {
                    assert!(narrower.sigmas() < Widths::MIN_SIGMAS, "{fewer} bits would do");
                }
                let response = chosen.response_bits();
                let folds = chosen.external_products();
                let narrow = ColumnNoise::new(&params, shape.columns, fewer, folds, response);
                assert!(narrow.sigmas() < Widths::MIN_SIGMAS || fewer < 16);
            }
        }
    }
    println!("query words of {widths:?} bits");
    assert!(widths.len() > 4 && widths.iter().all(|&bits| bits < 32));
    // Sets without noise take any width.
    let plain = column_table(Protocol::Colpack, INSECURE_COLPACK_PLAIN, shape(8, 3, 5));
    assert_eq!(plain.sigmas(), f64::INFINITY);
    // Answers that are packed by evaluation keys, alike.
    let chosen = pack_table(Protocol::Hybrid, PACK_M31, shape(1 << 16, 1, 4096));
    assert!(chosen.sigmas() >= 12.0 && chosen.log2_failure() < -80.0);
    let (spec, bits) = (pack_spec(Protocol::Hybrid), chosen.query_bits() - 1);
    let narrower = PackTable::with_query_bits(spec, PACK_M31, chosen.shape(), bits);
    assert!(narrower.is_err() || narrower.is_ok_and(|table| table.sigmas() < 12.0));
}

/// 128 sqrt(2^26) times the error of a query is past the limit of decoding by far, whatever the width of its words.
#[test]
fn tables_that_are_too_noisy_are_refused() {
    let too_noisy = |made: Made, shape: TableShape, set: &str| match made {
        Err(ProtocolError::TooNoisy { log2_failure, columns, blocks, preset }) => {
            assert!(log2_failure > MAX_LOG2_FAILURE, "2^{log2_failure}");
            assert_eq!((columns, blocks, preset), (shape.columns, shape.blocks, set));
        }
        other => panic!("{other:?}"),
    };
    let pack = PACK.map(|protocol| [PACK_M31, VIPIR_N4096_3X29].map(|params| (protocol, params.name())));
    let column = COLUMN
        .map(|protocol| [COLPACK_N2048_Q52, INSECURE_COLPACK_N256].map(|params| (protocol, params.name())));
    for (protocol, set) in pack.into_iter().chain(column).flatten() {
        let most = shape(MAX_COLUMNS, 2, 16);
        too_noisy(new(protocol, set, most), most, set);
        too_noisy(with_query_bits(protocol, set, most, 32), most, set);
    }
    for (protocol, set) in column.into_iter().flatten() {
        for (columns, bits) in [(1 << 16, 16), (1, 8)] {
            let shape = shape(columns, 2, 16);
            too_noisy(with_query_bits(protocol, set, shape, bits), shape, set);
        }
    }
    // The second fold, over as many blocks or entries.
    for shape in [shape(8, MAX_COLUMNS, 1), shape(1 << 16, MAX_COLUMNS, 1)] {
        too_noisy(new(Protocol::ExppackD, PACK_M31.name(), shape), shape, PACK_M31.name());
    }
    // Narrow query words alone.
    let plane = shape(1 << 16, 1, 4096);
    too_noisy(with_query_bits(Protocol::Hybrid, PACK_M31.name(), plane, 16), plane, PACK_M31.name());

    let (wide, set) = (shape(1 << 26, 1, 4096), SIMPLEPIR_N1024_STD6_4_SEC121.name());
    let noisy = new(Protocol::Frodo, set, wide);
    assert!(noisy.as_ref().unwrap_err().to_string().contains("fewer columns"));
    too_noisy(noisy, wide, set);
}
