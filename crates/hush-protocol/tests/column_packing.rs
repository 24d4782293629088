//! Column packing on the backends of this crate: every index of small tables, sums of slots, hostile bytes.

mod column_setup;

use column_setup::{Setup, one, random};
use hush_he::{
    HeError,
    codec::packed_bytes,
    params::{ColumnParams, INSECURE_COLPACK_N256, INSECURE_COLPACK_PLAIN},
};
use hush_math::csprng::Csprng;
use hush_ops::{contract::ColumnOps, plain::Plain, reference::Reference, tiling::TiledDb};
use hush_protocol::{
    ProtocolError, Target,
    column_packing::{self, ColumnHost},
    column_table::ColumnTable,
    table::{Protocol, TableShape},
    wire,
};

const PROTOCOLS: [Protocol; 2] = [Protocol::ColpackS, Protocol::Colpack];

/// A table of random bytes, or all of one value.
fn setup<B: ColumnOps>(
    backend: B,
    protocol: Protocol,
    params: ColumnParams,
    (columns, blocks, slot_bytes): (usize, usize, usize),
    fill: Option<u8>,
) -> Setup<B> {
    let table = ColumnTable::new(protocol, params, TableShape { columns, blocks, slot_bytes }).unwrap();
    let count = table.rows() * columns;
    Setup::new(backend, table, fill.map_or_else(|| random(count), |byte| vec![byte; count]))
}

/// Looks all targets up in one batch.
fn check<B: ColumnOps>(setup: &Setup<B>, targets: &[Target]) {
    let (queries, pending): (Vec<_>, Vec<_>) = targets.iter().map(|target| setup.query(target)).unzip();
    let answers = setup.answer(&queries).unwrap();
    assert_eq!(answers.len(), targets.len());
    for ((target, pending), answer) in targets.iter().zip(&pending).zip(&answers) {
        assert_eq!(setup.recover(pending, answer).unwrap(), setup.expected(target), "{:?}", setup.table);
    }
}

/// Columns, blocks and slot bytes for N = 64: one entry, 2, 3, 4, 5 and 7 of them, more than N, as many as powers of X; lanes,
/// two and three planes; a last entry that is not full.
const SHAPES: [(usize, usize, usize); 12] = [
    (1, 1, 1),
    (5, 70, 3),
    (3, 4, 40),
    (4, 5, 20),
    (3, 7, 64),
    (2, 1, 65),
    (3, 5, 130),
    (4, 2, 128),
    (4, 3, 100),
    (2, 70, 64),
    (1, 128, 33),
    (130, 9, 1),
];

#[test]
fn every_index_without_encryption() {
    for protocol in PROTOCOLS {
        for (columns, blocks, slot_bytes) in SHAPES {
            let params = INSECURE_COLPACK_PLAIN;
            let setup = setup(Plain, protocol, params, (columns, blocks, slot_bytes), None);
            let all = (0..blocks * columns).map(|index| one(index % columns, index / columns));
            check(&setup, &all.collect::<Vec<_>>());
            let vector = (0..columns as u32).map(|column| (column, (column * 77 + 1) as u8)).collect();
            check(&setup, &[Target { columns: vector, block: blocks - 1 }]);
        }
    }
}

/// N = 256: two lanes and five entries; two planes and three entries; one entry; four entries, the last not full.
#[test]
fn encrypted_tables_of_every_kind() {
    for protocol in PROTOCOLS {
        for (columns, blocks, slot_bytes) in [(30, 9, 100), (17, 3, 300), (40, 5, 2), (300, 10, 85)] {
            for fill in [None, Some(0x80), Some(0xff)] {
                let params = INSECURE_COLPACK_N256;
                let setup = setup(Reference, protocol, params, (columns, blocks, slot_bytes), fill);
                let even = (0..columns as u32).step_by(2).map(|column| (column, 1)).collect();
                let all = (0..columns as u32).map(|column| (column, (column * 77 + 1) as u8)).collect();
                let sums = [
                    Target { columns: even, block: blocks - 1 },
                    Target { columns: all, block: 0 },
                    Target { columns: Vec::new(), block: 1 },
                ];
                let ones = [one(0, 0), one(columns - 1, blocks / 2), one(columns / 2, blocks - 1)];
                check(&setup, &[&ones[..], &sums[..]].concat());
            }
        }
    }
}

/// Every block of an encrypted table, whatever its entry and lane.
#[test]
fn every_block_of_an_encrypted_table() {
    for protocol in PROTOCOLS {
        for shape in [(20, 19, 60), (20, 5, 512)] {
            let setup = setup(Reference, protocol, INSECURE_COLPACK_N256, shape, None);
            check(&setup, &(0..shape.1).map(|block| one(block, block)).collect::<Vec<_>>());
        }
    }
}

/// Five entries of two blocks, 100 rows each: folds in `colpack`.
fn small(protocol: Protocol) -> Setup<Reference> {
    setup(Reference, protocol, INSECURE_COLPACK_N256, (30, 9, 100), None)
}

#[test]
fn parts_of_another_length_are_errors() {
    for protocol in PROTOCOLS {
        let setup = small(protocol);
        let (query, pending) = setup.query(&one(3, 2));
        let sizes = setup.table.query_bytes();
        let broken = |what: &str, length: usize, change: &dyn Fn(&mut wire::Query)| {
            let mut query = query.clone();
            change(&mut query);
            let refused = setup.answer(&[setup.query(&one(0, 0)).0, query]).err();
            let named = matches!(refused, Some(ProtocolError::Length { actual, .. }) if actual == length);
            assert!(named, "{what} of {length} bytes: {refused:?}");
        };
        for length in [0, 3, sizes.first - 1, sizes.first + 1] {
            broken("vector", length, &|query| query.first = vec![0; length].into());
        }
        // The keys of the other protocol of the two are longer or shorter by the RGSW ciphertext.
        let other = INSECURE_COLPACK_N256.key_bytes(protocol == Protocol::ColpackS);
        for length in [0, 3, sizes.packed - 1, sizes.packed + 1, other] {
            broken("keys", length, &|query| query.packed = vec![0; length].into());
        }
        broken("second vector", 1, &|query| query.second = vec![0].into());
        broken("name of keys", 32, &|query| query.key_id = vec![0; 32].into());

        let answer = setup.answer(std::slice::from_ref(&query)).unwrap().remove(0);
        let longer = [&answer[..], &[0]].concat();
        for wrong in [&answer[..0], &answer[1..], &longer] {
            let refused = setup.recover(&pending, wrong).unwrap_err();
            let expected =
                ProtocolError::Length { what: "answer", expected: answer.len(), actual: wrong.len() };
            assert_eq!(refused, expected);
        }
    }
}

/// Where the words of `bits` bits of a key begin in the keys of a query, for all keys that are numbers modulo Q: the
/// conjugation key and, where there are folds, the two rows of the RGSW ciphertext.
fn residues(setup: &Setup<Reference>) -> Vec<(usize, u32)> {
    let (params, degree) = (setup.table.params(), setup.table.params().ring().degree());
    let modulus_bits = params.ring().kept_bits();
    let conjugation = modulus_bits - params.conjugation_dropped_bits();
    let row = modulus_bits - params.ring().key_dropped_bits();
    let mut start = packed_bytes(degree, params.rotation_bits());
    let rows = if setup.table.folds() { 2 } else { 0 };
    let mut residues = Vec::new();
    for bits in std::iter::once(conjugation).chain(std::iter::repeat_n(row, rows)) {
        residues.push((start, bits));
        start += packed_bytes(degree, bits);
    }
    assert_eq!(start, setup.table.query_bytes().packed);
    residues
}

/// The query with ones in all bits of coefficient `index`, in the key that begins at `start`.
fn spoilt(query: &wire::Query, (start, bits): (usize, u32), index: usize) -> wire::Query {
    let mut packed = query.packed.to_vec();
    for bit in index * bits as usize..(index + 1) * bits as usize {
        packed[start + bit / 8] |= 1 << (bit % 8);
    }
    wire::Query { packed: packed.into(), ..query.clone() }
}

/// The first query with a coefficient of Q or more is named, before anything is computed: on a database of another shape, where
/// the fold is an error, a bad query is still named.
#[test]
fn coefficients_beyond_the_modulus_are_named_first() {
    for protocol in PROTOCOLS {
        let setup = small(protocol);
        let db = TiledDb::from_matrix(8, 8, &[0; 64]);
        let no_folds = ColumnHost { db: &db, ..setup.host() };
        let (query, _) = setup.query(&one(3, 2));
        let fold = column_packing::answer(&no_folds, std::slice::from_ref(&query)).unwrap_err();
        assert!(matches!(fold, ProtocolError::Ops(_)), "{fold}");
        for key in residues(&setup) {
            for index in [0, 1, 100, 255] {
                let bad = spoilt(&query, key, index);
                for (position, batch) in [
                    (0, vec![&bad, &query]),
                    (1, vec![&query, &bad]),
                    (2, vec![&query, &query, &bad, &query, &spoilt(&query, key, 0)]),
                ] {
                    let batch: Vec<_> = batch.into_iter().cloned().collect();
                    let refused = column_packing::answer(&no_folds, &batch).unwrap_err();
                    let source = HeError::Coefficient { index };
                    assert_eq!(refused, ProtocolError::Query { index: position, source });
                }
            }
        }
    }
}

/// The largest coefficient that stands for a number below Q is taken, the next one is not.
#[test]
fn the_modulus_is_the_limit_of_coefficients() {
    for protocol in PROTOCOLS {
        let setup = small(protocol);
        let (query, _) = setup.query(&one(3, 2));
        let rns = setup.scheme.context().kept().rns();
        for (start, bits) in residues(&setup) {
            let dropped = rns.bits() - bits;
            let largest = (rns.product() - 1 + (1 << dropped) / 2) >> dropped;
            let with = |coefficient: u128| {
                let mut packed = query.packed.to_vec();
                // A whole number of bytes at the start of a key, of which none is longer than eight.
                let mut word = u64::from_le_bytes(*packed[start..].first_chunk().unwrap());
                word = word >> bits << bits | coefficient as u64;
                packed[start..start + 8].copy_from_slice(&word.to_le_bytes());
                setup.answer(&[wire::Query { packed: packed.into(), ..query.clone() }])
            };
            assert_eq!(with(largest).unwrap()[0].len(), setup.table.answer_bytes());
            let source = HeError::Coefficient { index: 0 };
            assert_eq!(with(largest + 1).unwrap_err(), ProtocolError::Query { index: 0, source });
        }
    }
}

/// Vectors and rotation keys are fractions: any bytes are some. So are the bytes of an answer.
#[test]
fn any_fractions_are_answered_and_any_answer_is_decoded() {
    for protocol in PROTOCOLS {
        let setup = small(protocol);
        let (query, pending) = setup.query(&one(3, 2));
        let rotation = packed_bytes(256, setup.table.params().rotation_bits());
        let rng = &mut Csprng::insecure_from_seed(4);
        for fill in [Some(0), Some(0xff), None, None] {
            let mut bytes = |mut out: Vec<u8>| {
                match fill {
                    Some(byte) => out.fill(byte),
                    None => rng.fill_bytes(&mut out),
                }
                out
            };
            let first = bytes(query.first.to_vec());
            let packed = [bytes(vec![0; rotation]), query.packed[rotation..].to_vec()].concat();
            let hostile = wire::Query { first: first.into(), packed: packed.into(), ..query.clone() };
            let answers = setup.answer(&[hostile, query.clone()]).unwrap();
            assert!(answers.iter().all(|answer| answer.len() == setup.table.answer_bytes()));
            // One query of a batch does not spoil another.
            assert_eq!(setup.recover(&pending, &answers[1]).unwrap(), setup.expected(&one(3, 2)));
            let answer = bytes(vec![0; setup.table.answer_bytes()]);
            assert_eq!(setup.recover(&pending, &answer).unwrap().len(), 100);
        }
    }
}
