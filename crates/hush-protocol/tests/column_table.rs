//! Tables of column packing: where slots lie, which power of X selects an entry, every size, and which tables are refused.

use std::collections::BTreeSet;

use hush_he::params::{
    COLPACK_N2048_Q52, ColumnNoise, ColumnParams, INSECURE_COLPACK_N256, INSECURE_COLPACK_PLAIN,
    MAX_LOG2_FAILURE, Widths,
};
use hush_math::csprng::Csprng;
use hush_protocol::{
    ProtocolError, Target,
    column_packing::{self, ColumnScheme},
    column_table::ColumnTable,
    table::{
        MAX_COLUMNS, MAX_KEPT_BYTES, MAX_ROWS, MAX_SLOT_BYTES, Protocol, Scheme, TableParams, TableShape,
    },
    wire::QuerySizes,
};

const PROTOCOLS: [Protocol; 2] = [Protocol::ColpackS, Protocol::Colpack];
/// N = 2048, 52 bits: the set that is not for tests.
const Q52: ColumnParams = COLPACK_N2048_Q52;

fn shape(columns: usize, blocks: usize, slot_bytes: usize) -> TableShape {
    TableShape { columns, blocks, slot_bytes }
}

fn table(protocol: Protocol, params: ColumnParams, shape: TableShape) -> ColumnTable {
    ColumnTable::new(protocol, params, shape).unwrap()
}

/// What is out of range, and its value.
fn refused(table: Result<ColumnTable, ProtocolError>) -> (&'static str, u64) {
    match table {
        Err(ProtocolError::Limit { what, actual, .. }) => (what, actual),
        other => panic!("{other:?} is no limit"),
    }
}

#[test]
fn shapes_out_of_range_are_refused() {
    for protocol in PROTOCOLS {
        for params in [Q52, INSECURE_COLPACK_N256, INSECURE_COLPACK_PLAIN] {
            let refuse = |columns, blocks, slot_bytes| {
                refused(ColumnTable::new(protocol, params, shape(columns, blocks, slot_bytes)))
            };
            assert_eq!(refuse(0, 3, 5), ("columns", 0));
            assert_eq!(refuse(MAX_COLUMNS + 1, 3, 5), ("columns", MAX_COLUMNS as u64 + 1));
            assert_eq!(refuse(usize::MAX, 3, 5), ("columns", u64::MAX));
            assert_eq!(refuse(8, 3, 0), ("slot bytes", 0));
            assert_eq!(refuse(8, 1, MAX_SLOT_BYTES + 1), ("slot bytes", MAX_SLOT_BYTES as u64 + 1));
            assert_eq!(refuse(8, 3, usize::MAX), ("slot bytes", u64::MAX));
            assert_eq!(refuse(8, 0, 5), ("blocks", 0));
            let most = MAX_ROWS / 5;
            assert_eq!(refuse(8, most + 1, 5), ("blocks", most as u64 + 1));
            assert_eq!(refuse(8, usize::MAX, 5), ("blocks", u64::MAX));
            for bits in [0, 33, u32::MAX] {
                let table = ColumnTable::with_query_bits(protocol, params, shape(8, 3, 5), bits);
                assert_eq!(refused(table), ("bits of a query word", u64::from(bits)));
            }
            ColumnTable::with_query_bits(protocol, params, shape(8, 3, 5), 32).unwrap();
        }
    }
}

/// As many entries as there are powers of X, 2N, and one more: the message says what to do about it. Where nothing is folded,
/// there may be more.
#[test]
fn more_entries_than_powers_of_x_are_refused() {
    for params in [Q52, INSECURE_COLPACK_N256, INSECURE_COLPACK_PLAIN] {
        let degree = params.ring().degree();
        let full = table(Protocol::Colpack, params, shape(8, 2 * degree, degree));
        assert_eq!(full.pack_shape().entries(), 2 * degree);
        let more = |protocol| ColumnTable::new(protocol, params, shape(8, 2 * degree + 1, degree));
        let error = more(Protocol::Colpack).unwrap_err();
        assert!(error.to_string().contains("use more columns"), "{error}");
        assert_eq!(refused(Err(error)).1, 2 * degree as u64 + 1);
        assert_eq!(more(Protocol::ColpackS).unwrap().pack_shape().entries(), 2 * degree + 1);
        // Lanes: as many blocks as fit beside each other count once.
        let short = table(Protocol::Colpack, params, shape(8, 2 * degree * 4, degree / 4));
        assert_eq!((short.lanes(), short.pack_shape().entries()), (4, 2 * degree));
        let more = ColumnTable::new(Protocol::Colpack, params, shape(8, 2 * degree * 4 + 1, degree / 4));
        assert_eq!(refused(more).1, 2 * degree as u64 + 1);
    }
}

/// Pack columns of more than a TiB.
#[test]
fn pack_columns_that_are_too_long_are_refused() {
    let bytes_a_row = 4 * 2048;
    // Slots of a MiB in few entries.
    let blocks = (MAX_KEPT_BYTES as usize / bytes_a_row) >> 20;
    let longest = table(Protocol::Colpack, Q52, shape(8, blocks, 1 << 20));
    assert_eq!(longest.columns_tiling().bytes() as u64, MAX_KEPT_BYTES);
    for protocol in PROTOCOLS {
        let error = ColumnTable::new(protocol, Q52, shape(8, blocks + 1, 1 << 20)).unwrap_err();
        assert!(error.to_string().contains("use more columns"), "{error}");
        let (what, bytes) = refused(Err(error));
        assert!(what.starts_with("bytes of the pack columns"), "{what}");
        assert_eq!(bytes, MAX_KEPT_BYTES + (bytes_a_row << 20) as u64);
    }
}

/// `colpack-s` answers with every plaintext: 256 MiB is the limit, where `colpack` would answer with one entry.
#[test]
fn answers_that_are_too_long_are_refused() {
    let plaintext = 2048 * 30 / 8;
    let planes = 512;
    let entries = (256 << 20) / (plaintext * planes);
    let shape = |entries| shape(8, entries, planes * 2048);
    let longest = table(Protocol::ColpackS, Q52, shape(entries));
    assert_eq!(longest.answer_bytes(), entries * planes * plaintext);
    let error = ColumnTable::new(Protocol::ColpackS, Q52, shape(entries + 1)).unwrap_err();
    assert!(error.to_string().contains("use colpack"), "{error}");
    let (what, bytes) = refused(Err(error));
    assert!(what.starts_with("bytes of an answer"), "{what}");
    assert_eq!(bytes, ((entries + 1) * planes * plaintext) as u64);
    assert_eq!(table(Protocol::Colpack, Q52, shape(entries + 1)).answer_bytes(), planes * plaintext);
}

/// The fewest bits that keep 12 sigma: one less does not.
#[test]
fn query_words_are_as_short_as_the_noise_allows() {
    let mut widths = BTreeSet::new();
    for params in [Q52, INSECURE_COLPACK_N256] {
        for protocol in PROTOCOLS {
            for log2_columns in [0, 6, 10, 14, 15, 16, 17, 20] {
                let shape = shape(1 << log2_columns, 9, 4096);
                let chosen = table(protocol, params, shape);
                assert!(chosen.sigmas() >= Widths::MIN_SIGMAS && chosen.log2_failure() < -80.0);
                widths.insert(chosen.query_bits());
                let fewer = chosen.query_bits() - 1;
                if let Ok(narrower) = ColumnTable::with_query_bits(protocol, params, shape, fewer) {
                    assert!(narrower.sigmas() < Widths::MIN_SIGMAS, "{fewer} bits would do");
                }
                let narrow = ColumnNoise::new(&params, shape.columns, fewer, chosen.external_products());
                assert!(narrow.sigmas() < Widths::MIN_SIGMAS || fewer < 16);
            }
        }
    }
    println!("query words of {widths:?} bits");
    assert!(widths.len() > 4 && widths.iter().all(|&bits| bits < 32));
    // Sets without noise take any width.
    assert_eq!(table(Protocol::Colpack, INSECURE_COLPACK_PLAIN, shape(8, 3, 5)).sigmas(), f64::INFINITY);
}

/// 128 sqrt(2^26) times the error of a query is past the limit of decoding, whatever the width of its words.
#[test]
fn tables_that_are_too_noisy_are_refused() {
    for protocol in PROTOCOLS {
        for params in [Q52, INSECURE_COLPACK_N256] {
            let too_noisy = |columns, bits: Option<u32>| {
                let shape = shape(columns, 2, 16);
                let table = match bits {
                    Some(bits) => ColumnTable::with_query_bits(protocol, params, shape, bits),
                    None => ColumnTable::new(protocol, params, shape),
                };
                match table {
                    Err(ProtocolError::TooNoisy { log2_failure, columns: actual, blocks, preset }) => {
                        assert!(log2_failure > MAX_LOG2_FAILURE, "2^{log2_failure}");
                        assert_eq!((actual, blocks, preset), (columns, 2, params.name()));
                    }
                    other => panic!("{protocol}: {other:?}"),
                }
            };
            too_noisy(MAX_COLUMNS, None);
            too_noisy(MAX_COLUMNS, Some(32));
            too_noisy(1 << 16, Some(16));
            too_noisy(1, Some(8));
        }
    }
}

/// Short slots share a plaintext; the last entry holds the blocks that are left.
#[test]
fn short_slots_lie_in_lanes() {
    for protocol in PROTOCOLS {
        // 256 / 60 = 4 lanes: 11 blocks are two entries and three lanes of a third.
        let table = table(protocol, INSECURE_COLPACK_N256, shape(8, 11, 60));
        let places: Vec<_> = (0..11).map(|block| table.place(block)).collect();
        assert_eq!(places[..5], [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)]);
        assert_eq!((places[10], table.lanes(), table.rows()), ((2, 2), 4, 660));
        let packed = table.pack_shape();
        assert_eq!((packed.entries(), packed.planes(), packed.plaintexts()), (3, 1, 3));
        assert_eq!((packed.plaintext_rows(0), packed.plaintext_rows(2)), (0..240, 480..660));
        for (block, (entry, lane)) in places.into_iter().enumerate() {
            assert_eq!(packed.plaintext_rows(entry).start + 60 * lane, 60 * block);
        }
    }
}

/// A slot of exactly a plaintext, and one byte more: planes. No plaintext is without rows, which could not be packed.
#[test]
fn long_slots_lie_in_planes() {
    for (slot_bytes, lanes, planes) in [(128, 2, 1), (129, 1, 1), (256, 1, 1), (257, 1, 2), (600, 1, 3)] {
        let colpack_s = table(Protocol::ColpackS, INSECURE_COLPACK_N256, shape(8, 5, slot_bytes));
        let packed = colpack_s.pack_shape();
        assert_eq!((colpack_s.lanes(), packed.planes()), (lanes, planes), "slots of {slot_bytes}");
        assert_eq!(packed.entries(), 5usize.div_ceil(lanes));
        assert!((0..packed.plaintexts()).all(|column| !packed.plaintext_rows(column).is_empty()));
        let colpack = table(Protocol::Colpack, INSECURE_COLPACK_N256, shape(8, 5, slot_bytes));
        assert_eq!(
            [colpack_s.answer_plaintexts(), colpack.answer_plaintexts()],
            [packed.plaintexts(), planes]
        );
    }
}

/// Entry i of T, a power of two, is selected by `X^(2N i / T)`: all different, none beyond 2N.
#[test]
fn every_entry_has_its_power_of_x() {
    for params in [Q52, INSECURE_COLPACK_N256, INSECURE_COLPACK_PLAIN] {
        let degree = params.ring().degree();
        for (entries, rounded) in [(2, 2), (3, 4), (4, 4), (5, 8), (17, 32), (degree + 1, 2 * degree)] {
            let shape = shape(8, entries, degree);
            let colpack = table(Protocol::Colpack, params, shape);
            assert_eq!((colpack.folds(), colpack.external_products()), (true, rounded - 1));
            let powers: Vec<_> = (0..entries).map(|entry| colpack.exponent(entry).unwrap()).collect();
            let expected: Vec<_> = (0..entries).map(|entry| entry * (2 * degree / rounded)).collect();
            assert_eq!(powers, expected);
            assert!(powers.iter().all(|&power| power < 2 * degree));
            let colpack_s = table(Protocol::ColpackS, params, shape);
            assert_eq!((colpack_s.folds(), colpack_s.external_products()), (false, 0));
            assert!((0..entries).all(|entry| colpack_s.exponent(entry).is_none()));
        }
        // One entry is not folded.
        let single = table(Protocol::Colpack, params, shape(8, 4, degree / 4));
        assert_eq!((single.folds(), single.external_products(), single.exponent(0)), (false, 0, None));
    }
}

/// The formulas are those of real queries, for words that end in the middle of a byte as well; and by hand for one of them.
#[test]
fn sizes_are_those_of_the_codecs() {
    for params in [INSECURE_COLPACK_N256, Q52] {
        let scheme = ColumnScheme::new(&params);
        for protocol in PROTOCOLS {
            for (columns, blocks, slot_bytes) in [(1, 1, 1), (77, 9, 100), (1000, 3, 5000), (4097, 1, 256)] {
                let table = table(protocol, params, shape(columns, blocks, slot_bytes));
                let target = Target { columns: vec![(0, 1)], block: blocks - 1 };
                let (query, pending) = column_packing::query(&table, &scheme, target, &mut Csprng::from_os());
                let [first, second, packed, key_id] =
                    [&query.first, &query.second, &query.packed, &query.key_id].map(|part| part.len());
                assert_eq!(table.query_bytes(), QuerySizes { first, second, packed, key_id });
                let answer = vec![0; table.answer_bytes()];
                let slot = column_packing::recover(&table, &scheme, &pending, &answer).unwrap();
                assert_eq!(slot.len(), slot_bytes);
            }
        }
    }
    let table = table(Protocol::Colpack, Q52, shape(1001, 9, 4096));
    let keys = 2048 * (46 + 42 + 2 * 46) / 8;
    let vector = (1001 * table.query_bits() as usize).div_ceil(8);
    assert_eq!(table.query_bytes(), QuerySizes { first: vector, packed: keys, ..QuerySizes::default() });
    assert_eq!(table.answer_bytes(), 2 * 2048 * (18 + 12) / 8);
    // A digit and a mask for 18 plaintexts, two limbs each.
    assert_eq!(table.chain_words(), 2 * 18 * 2 * 2048);
}

/// Nothing is downloaded, nothing uploaded beforehand.
#[test]
fn there_is_no_hint_and_there_are_no_evaluation_keys() {
    for protocol in PROTOCOLS {
        assert!(!protocol.has_evaluation_keys());
        let params = TableParams::new(Scheme::Column(protocol, Q52), shape(1000, 9, 4096)).unwrap();
        assert_eq!((params.hint_bytes(), params.key_bytes(), params.query_bytes().key_id), (0, 0, 0));
        assert!(params.is_secure() && params.protocol() == protocol && params.preset() == Q52.name());
        assert_eq!(params.encoded_bytes(), 9 * 4096 * 1000usize.next_multiple_of(64));
    }
}
