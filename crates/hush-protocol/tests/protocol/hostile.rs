//! Bytes that a client or a server should not have sent: parts of another length, coefficients beyond the modulus, anything.

use std::{iter, slice, sync::Arc};

use hush_he::{
    HeError,
    codec::packed_bytes,
    params::{
        ColumnParams, DEFAULT_LWE, INSECURE_COLPACK_N256, INSECURE_PACK_N256, INSECURE_RING_N256,
        INSECURE_RING_PLAIN, RingContext, RingParams,
    },
};
use hush_math::csprng::Csprng;
use hush_ops::reference::Reference;
use hush_protocol::{
    Protocol, ProtocolError,
    client::{Given, Hint, Pending},
    facts::HINT_FILE,
    lwe_page::{LweClient, LwePage, OverLwe},
    lwe_table::LweTable,
    page::{Files, Page},
    ring_keys::{RingKeys, open_upload, upload_bytes},
    simple::Simple,
    wire,
};

use crate::support::{COLUMN, PACK, PUBLIC_SEED, Setup, filled, one, shape, table};

fn setup(protocol: Protocol, set: &str, (columns, blocks, slot_bytes): (usize, usize, usize)) -> Setup {
    let shape = shape(columns, blocks, slot_bytes);
    Setup::new(Reference, table(protocol, set, shape), filled(shape, None))
}

/// Returns the query with something else in it.
fn with(query: &wire::Query, change: impl Fn(&mut wire::Query)) -> wire::Query {
    let mut query = query.clone();
    change(&mut query);
    query
}

/// An answer of another length is refused.
fn wrong_lengths_of_answers(setup: &Setup, query: &wire::Query, pending: &Pending) {
    let answer = setup.answer(slice::from_ref(query)).unwrap().remove(0);
    let longer = [&answer[..], &[0]].concat();
    for wrong in [&answer[..0], &answer[1..], &longer] {
        let expected = ProtocolError::Length { what: "answer", expected: answer.len(), actual: wrong.len() };
        assert_eq!(setup.recover(pending, wrong), Err(expected));
    }
}

#[test]
fn wrong_lengths_over_lwe_are_errors() {
    let setup = setup(Protocol::Simple, DEFAULT_LWE.name(), (20, 2, 2));
    let (query, pending) = setup.query(&one(0, 0));
    let short = with(&query, |query| query.first = query.first.slice(1..));
    let extra = with(&query, |query| query.second = vec![1].into());
    for bad in [short, extra] {
        let error = setup.answer(&[query.clone(), bad]).unwrap_err();
        assert!(matches!(error, ProtocolError::Length { .. }), "{error}");
    }
    wrong_lengths_of_answers(&setup, &query, &pending);
    let answer = setup.answer(&[query]).unwrap().remove(0);
    // A short hint, from the beginning and for the answer alone.
    let short: Hint = Arc::new(setup.files.get(HINT_FILE)[1..].to_vec());
    assert!(setup.table.client(&Given { hint: Some(short.clone()), ..Given::new(PUBLIC_SEED) }).is_err());
    assert!(setup.table.client(&Given::new(PUBLIC_SEED)).is_err());
    let table = LweTable::new(Simple::SPEC, DEFAULT_LWE, setup.table.facts().shape).unwrap();
    let [whole, short] =
        [setup.files.bytes(HINT_FILE).unwrap(), short].map(|hint| LweClient { hint, seed: PUBLIC_SEED });
    let (_, pending) = OverLwe::<Simple>::query(&table, &whole, &one(0, 0), &mut Csprng::from_os());
    assert!(OverLwe::<Simple>::recover(&table, &whole, &pending, &one(0, 0), &answer).is_ok());
    assert!(OverLwe::<Simple>::recover(&table, &short, &pending, &one(0, 0), &answer).is_err());
}

#[test]
fn hostile_bytes_are_errors() {
    for protocol in PACK {
        let setup = setup(protocol, INSECURE_PACK_N256.name(), (30, 4, 20));
        let (query, pending) = setup.query(&one(3, 2));
        let broken = |change: &dyn Fn(&mut wire::Query)| {
            let batch = [setup.query(&one(0, 0)).0, with(&query, change)];
            assert_eq!(setup.open(&batch), setup.answer(&batch).map(drop));
            setup.answer(&batch).unwrap_err()
        };
        assert!(matches!(broken(&|q| q.first = vec![0; 3].into()), ProtocolError::Length { .. }));
        assert!(matches!(broken(&|q| q.second = vec![0; 99].into()), ProtocolError::Length { .. }));
        assert!(matches!(broken(&|q| q.packed = vec![0; 3].into()), ProtocolError::Query { index: 1, .. }));
        let full = vec![0xff; query.packed.len()];
        assert!(matches!(broken(&|q| q.packed = full.clone().into()), ProtocolError::Query { index: 1, .. }));
        wrong_lengths_of_answers(&setup, &query, &pending);
        let answer = setup.answer(slice::from_ref(&query)).unwrap().remove(0);
        // Any bytes decode to some slot.
        let noise: Vec<u8> = (0..answer.len()).map(|i| (i * 89) as u8).collect();
        assert_eq!(setup.recover(&pending, &noise).unwrap().len(), 20);
        let keys = Some(Arc::new(RingKeys::from_seed(INSECURE_PACK_N256.ring(), &[1; 32])));
        let other = setup.table.client(&Given { keys, ..Given::new(PUBLIC_SEED) }).unwrap();
        assert!(matches!(other.recover(&pending, &answer), Err(ProtocolError::Keys(_))));
    }
}

#[test]
fn hostile_queries_over_rings_are_refused_before_anything_is_computed() {
    let setup = setup(Protocol::Onion, INSECURE_RING_N256.name(), (4, 3, 704));
    let (good, pending) = setup.query(&one(1, 1));
    let packed = &good.packed[..];
    let mut out_of_range = packed.to_vec();
    out_of_range[32..].fill(0xff);
    let longer = [packed, &[0]].concat();
    for bad in [&packed[..packed.len() - 1], &longer, &[], &packed[..31], &out_of_range] {
        let bad = with(&good, |query| query.packed = bad.to_vec().into());
        let refused = setup.answer(&[good.clone(), bad.clone()]).unwrap_err();
        assert!(matches!(refused, ProtocolError::Query { index: 1, .. }), "{refused}");
        assert_eq!(setup.open(&[good.clone(), bad]), Err(refused));
    }
    // Any other bytes are a query; what they decrypt to is the client's business.
    let noise = [&[0; 40], &packed[40..]].concat();
    let noise = with(&good, |query| query.packed = noise.clone().into());
    assert_eq!(setup.answer(&[noise]).unwrap()[0].len(), setup.table.facts().answer_bytes);
    wrong_lengths_of_answers(&setup, &good, &pending);
}

#[test]
fn hostile_keys_are_refused() {
    let context = RingContext::new(INSECURE_RING_N256);
    let keys = RingKeys::from_seed(&INSECURE_RING_N256, &[1; 32]);
    assert_eq!(keys.upload().len(), upload_bytes(&INSECURE_RING_N256));
    assert!(open_upload(&context, keys.upload()).is_ok());
    let mut out_of_range = keys.upload().to_vec();
    let end = out_of_range.len();
    out_of_range[end - 64..].fill(0xff);
    let mut other_field = keys.upload().to_vec();
    other_field[0] = 0x10;
    let other_preset = RingKeys::from_seed(&INSECURE_RING_PLAIN, &[1; 32]);
    let mut renamed = keys.upload().to_vec();
    let name = renamed.windows(4).position(|bytes| bytes == b"N256").unwrap();
    renamed[name] = b'M';
    for bad in [&keys.upload()[1..], &[], &out_of_range, &other_field, other_preset.upload(), &renamed] {
        assert!(open_upload(&context, bad).is_err());
    }
}

#[test]
fn keys_follow_from_their_seed_alone() {
    let id = |params: &RingParams, seed| RingKeys::from_seed(params, &[seed; 32]).id();
    assert_eq!(id(&INSECURE_RING_N256, 1), id(&INSECURE_RING_N256, 1));
    assert_ne!(id(&INSECURE_RING_N256, 1), id(&INSECURE_RING_N256, 2));
}

const SMALL: ColumnParams = INSECURE_COLPACK_N256;

/// Five entries of two blocks, 100 rows each: folds in `colpack`.
fn small(protocol: Protocol) -> Setup {
    setup(protocol, SMALL.name(), (30, 9, 100))
}

#[test]
fn parts_of_another_length_are_errors() {
    for protocol in COLUMN {
        let setup = small(protocol);
        let (query, pending) = setup.query(&one(3, 2));
        let sizes = setup.table.facts().query;
        let broken = |what: &str, length: usize, change: &dyn Fn(&mut wire::Query)| {
            let refused = setup.answer(&[setup.query(&one(0, 0)).0, with(&query, change)]).err();
            let named = matches!(refused, Some(ProtocolError::Length { actual, .. }) if actual == length);
            assert!(named, "{what} of {length} bytes: {refused:?}");
        };
        for length in [0, 3, sizes.first - 1, sizes.first + 1] {
            broken("vector", length, &|query| query.first = vec![0; length].into());
        }
        // The keys of the other protocol of the two are longer or shorter by the RGSW ciphertext.
        let other = SMALL.key_bytes(protocol == Protocol::ColpackS);
        for length in [0, 3, sizes.packed - 1, sizes.packed + 1, other] {
            broken("keys", length, &|query| query.packed = vec![0; length].into());
        }
        broken("second vector", 1, &|query| query.second = vec![0].into());
        broken("name of keys", 32, &|query| query.key_id = vec![0; 32].into());
        wrong_lengths_of_answers(&setup, &query, &pending);
    }
}

/// Returns where the words of `bits` bits of a key begin in the keys of a query, for all keys that are numbers modulo Q: the
/// conjugation key and, where there are folds, the two rows of the RGSW ciphertext.
fn residues(setup: &Setup) -> Vec<(usize, u32)> {
    let (degree, modulus_bits) = (SMALL.ring().degree(), SMALL.ring().kept_bits());
    let conjugation = modulus_bits - SMALL.conjugation_dropped_bits();
    let row = modulus_bits - SMALL.ring().key_dropped_bits();
    let mut start = packed_bytes(degree, SMALL.rotation_bits());
    let rows = if setup.table.facts().protocol == Protocol::Colpack { 2 } else { 0 };
    let mut residues = Vec::new();
    for bits in iter::once(conjugation).chain(iter::repeat_n(row, rows)) {
        residues.push((start, bits));
        start += packed_bytes(degree, bits);
    }
    assert_eq!(start, setup.table.facts().query.packed);
    residues
}

/// Returns the query with ones in all bits of coefficient `index`, in the key that begins at `start`.
fn spoilt(query: &wire::Query, (start, bits): (usize, u32), index: usize) -> wire::Query {
    let mut packed = query.packed.to_vec();
    for bit in index * bits as usize..(index + 1) * bits as usize {
        packed[start + bit / 8] |= 1 << (bit % 8);
    }
    wire::Query { packed: packed.into(), ..query.clone() }
}

/// The first query with a coefficient of Q or more is named, before anything is computed: where queries are read there is no
/// database yet.
#[test]
fn coefficients_beyond_the_modulus_are_named_first() {
    for protocol in COLUMN {
        let setup = small(protocol);
        let (query, _) = setup.query(&one(3, 2));
        assert_eq!(setup.open(slice::from_ref(&query)), Ok(()));
        for key in residues(&setup) {
            for index in [0, 1, 100, 255] {
                let bad = spoilt(&query, key, index);
                for (position, batch) in [
                    (0, vec![&bad, &query]),
                    (1, vec![&query, &bad]),
                    (2, vec![&query, &query, &bad, &query, &spoilt(&query, key, 0)]),
                ] {
                    let batch: Vec<_> = batch.into_iter().cloned().collect();
                    let source = HeError::Coefficient { index };
                    let refused = ProtocolError::Query { index: position, source };
                    assert_eq!(setup.open(&batch), Err(refused.clone()));
                    assert_eq!(setup.answer(&batch), Err(refused));
                }
            }
        }
    }
}

/// The largest coefficient that stands for a number below Q is taken, the next one is not.
#[test]
fn the_modulus_is_the_limit_of_coefficients() {
    for protocol in COLUMN {
        let setup = small(protocol);
        let (query, _) = setup.query(&one(3, 2));
        let ring = SMALL.ring().kept_ring();
        let rns = ring.rns();
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
            assert_eq!(with(largest).unwrap()[0].len(), setup.table.facts().answer_bytes);
            let source = HeError::Coefficient { index: 0 };
            assert_eq!(with(largest + 1).unwrap_err(), ProtocolError::Query { index: 0, source });
        }
    }
}

/// Returns the bits behind the last word of a query's first vector.
fn padding_bits(setup: &Setup) -> usize {
    let facts = setup.table.facts();
    8 * facts.query.first - facts.shape.columns * facts.word_bits.unwrap()[0] as usize
}

#[test]
fn bits_behind_the_last_word_are_refused() {
    let mut refused = 0;
    for (protocol, set) in PACK.map(|protocol| (protocol, INSECURE_PACK_N256.name())).into_iter().chain([
        (Protocol::Simple, DEFAULT_LWE.name()),
        (Protocol::ColpackS, SMALL.name()),
        (Protocol::Colpack, SMALL.name()),
    ]) {
        let setup = setup(protocol, set, (31, 4, 20));
        let (query, _) = setup.query(&one(3, 2));
        for bit in 8 - padding_bits(&setup)..8 {
            let bad = with(&query, |query| {
                let mut first = query.first.to_vec();
                *first.last_mut().unwrap() |= 1 << bit;
                query.first = first.into();
            });
            // The queries of others in the batch are not to blame.
            let expected = ProtocolError::Query { index: 1, source: HeError::PackedPadding };
            assert_eq!(setup.answer(&[query.clone(), bad]), Err(expected), "{protocol}");
            refused += 1;
        }
    }
    assert!(refused > 0, "every set has words that fill their bytes");
}

/// Vectors and rotation keys are fractions: any bytes are some. So are the bytes of an answer.
#[test]
fn any_fractions_are_answered_and_any_answer_is_decoded() {
    for protocol in COLUMN {
        let setup = small(protocol);
        let (query, pending) = setup.query(&one(3, 2));
        let (rotation, answer_bytes) =
            (packed_bytes(256, SMALL.rotation_bits()), setup.table.facts().answer_bytes);
        // The words of all 900 rows, in `colpack-s`, do not fill their bytes.
        let unused = if protocol == Protocol::ColpackS {
            8 * answer_bytes - 900 * setup.table.facts().word_bits.unwrap()[2] as usize
        } else {
            0
        };
        let rng = &mut Csprng::insecure_from_seed(4);
        for fill in [Some(0), Some(0xff), None, None] {
            let mut bytes = |mut out: Vec<u8>| {
                match fill {
                    Some(byte) => out.fill(byte),
                    None => rng.fill_bytes(&mut out),
                }
                out
            };
            let mut first = bytes(query.first.to_vec());
            *first.last_mut().unwrap() &= u8::MAX >> padding_bits(&setup);
            let packed = [bytes(vec![0; rotation]), query.packed[rotation..].to_vec()].concat();
            let hostile = wire::Query { first: first.into(), packed: packed.into(), ..query.clone() };
            let answers = setup.answer(&[hostile, query.clone()]).unwrap();
            assert!(answers.iter().all(|answer| answer.len() == answer_bytes));
            // One query of a batch does not spoil another.
            assert_eq!(setup.recover(&pending, &answers[1]).unwrap(), setup.expected(&one(3, 2)));
            let mut answer = bytes(vec![0; answer_bytes]);
            *answer.last_mut().unwrap() &= u8::MAX >> unused;
            assert_eq!(setup.recover(&pending, &answer).unwrap().len(), 100);
        }
    }
}
