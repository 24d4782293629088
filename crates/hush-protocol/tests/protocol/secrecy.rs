//! Tests of what the secrecy of column packing rests on: every secret and every mask is used once, masks are nobody's
//! choice, and neither lengths nor results depend on the target.

use std::collections::BTreeSet;

use hush_he::{
    codec::{packed_bytes, unpack_wide},
    entities::PublicMatrix,
    params::{COLPACK_N2048_Q52, ColumnParams, INSECURE_COLPACK_N256, INSECURE_PACK_N256, RingContext},
};
use hush_math::{
    csprng::Csprng,
    poly::{Eval, Poly},
};
use hush_ops::reference::Reference;
use hush_protocol::{
    Protocol, Target,
    column_page::ColumnRing,
    column_table::ColumnTable,
    descriptor::{Descriptor, KeyLookup, Lookup},
    facts::HINT_FILE,
    keyword::{FilterKind, FilterParams, KeyDigest},
    table::TableShape,
    wire,
};
use hush_testkit::plain::Plain;
use prost::Message;
use serde_json::Value;

use crate::{
    descriptor::descriptor,
    support::{
        COLUMN, PACK, PUBLIC_SEED, Setup, column_table, filled, given, one, pack_table, shape, sizes, table,
    },
};

const SETS: [ColumnParams; 2] = [INSECURE_COLPACK_N256, COLPACK_N2048_Q52];

/// Returns the parts of a query as polynomials of fractions of their modulus: the first N words of the vector, the rotation
/// key, the conjugation key, the rows of the RGSW ciphertext. There is no room for anything else.
fn parts(table: &ColumnTable, query: &wire::Query) -> Vec<(&'static str, Vec<f64>)> {
    let wire::Query { first, second, packed, key_id } = query;
    assert!(second.is_empty() && key_id.is_empty());
    let (params, ring) = (table.params(), table.params().ring());
    let (degree, bits) = (ring.degree(), ring.kept_bits());
    let power_of_two = |bits: u32| 2f64.powi(bits as i32);
    let q = ring.kept_ring().rns().product() as f64;
    let residues = |dropped: u32| (bits - dropped, q / power_of_two(dropped));
    let mut keys = vec![
        ("rotation key", (params.rotation_bits(), power_of_two(params.rotation_bits()))),
        ("conjugation key", residues(params.conjugation_dropped_bits())),
    ];
    if table.folds() {
        keys.push(("bottom row", residues(ring.key_dropped_bits())));
        keys.push(("top row", residues(ring.key_dropped_bits())));
    }
    let words = unpack_wide(first, table.shape().columns, table.widths().query).unwrap();
    let words = words.take(degree).map(|word| word as f64 / power_of_two(table.widths().query));
    let mut parts = vec![("vector", words.collect())];
    let mut rest = &packed[..];
    for (name, (bits, modulus)) in keys {
        let (part, tail) = rest.split_at(packed_bytes(degree, bits));
        let fractions = unpack_wide(part, degree, bits).unwrap().map(|word| word as f64 / modulus);
        parts.push((name, fractions.collect()));
        rest = tail;
    }
    assert!(rest.is_empty());
    parts
}

/// Returns whether two polynomials of fractions look independent: neither their difference nor their sum modulo 1 is short.
/// Under one secret and one mask the difference is that of two messages, which have 28 bits and a little of 52.
fn independent(x: &[f64], y: &[f64]) -> bool {
    let long = |sign: f64| {
        let sums = x.iter().zip(y).map(|(x, y)| x + sign * y);
        sums.filter(|sum: &f64| (sum - sum.round()).abs() > 1.0 / 8.0).count()
    };
    // Three quarters of the coefficients are long on average.
    [-1.0, 1.0].into_iter().all(|sign| 20 * long(sign) > 11 * x.len())
}

/// Two queries for one target have nothing in common, and the parts of one have not either.
#[test]
fn parts_of_queries_are_independent() {
    for protocol in COLUMN {
        for params in SETS {
            let shape = shape(params.ring().degree(), 50, 100);
            let typed = column_table(protocol, params, shape);
            let asked = table(protocol, params.name(), shape);
            let client = asked.client(&given(&asked)).unwrap();
            let query = || parts(&typed, &client.query(one(3, 40), &mut Csprng::from_os()).0);
            let all: Vec<_> =
                (0..3).flat_map(|number| query().into_iter().map(move |p| (number, p))).collect();
            assert_eq!(all.len(), 3 * if protocol == Protocol::Colpack { 5 } else { 3 });
            for (index, (x_query, (x_name, x))) in all.iter().enumerate() {
                for (y_query, (y_name, y)) in &all[..index] {
                    let names = format!("{x_name} of query {x_query}, {y_name} of query {y_query}");
                    assert!(x != y && independent(x, y), "{protocol}, {}: {names}", params.name());
                }
            }
        }
    }
}

/// The test above would tell: the same secret and mask with other errors, or with other messages.
#[test]
fn dependent_parts_are_told() {
    let rng = &mut Csprng::insecure_from_seed(3);
    let fraction = |word: u32| f64::from(word) / 2f64.powi(32);
    let x: Vec<f64> = (0..256).map(|_| fraction(rng.next_u32())).collect();
    let near: Vec<f64> = x.iter().map(|x| (x + fraction(rng.next_u32()) / 64.0).fract()).collect();
    let opposite: Vec<f64> = near.iter().map(|x| 1.0 - x).collect();
    assert!(!independent(&x, &near) && !independent(&x, &opposite));
}

fn masks_of(params: &ColumnParams) -> [Poly<Eval>; 4] {
    let ring = ColumnRing::new(params, PUBLIC_SEED);
    let masks = ring.masks();
    [masks.rotation(), masks.conjugation(), &masks.power()[0], &masks.power()[1]].map(Poly::clone)
}

/// Masks follow from the parameter set and the seed alone, and differ pairwise, as polynomials and in every form.
#[test]
fn masks_are_derived_and_independent() {
    for params in SETS {
        let context = RingContext::new(*params.ring());
        let ring = context.kept();
        let masks = masks_of(&params);
        assert_eq!(masks, masks_of(&params));
        let q = ring.rns().product() as f64;
        let fractions = masks.clone().map(|mask| -> Vec<f64> {
            let poly = ring.inverse(mask);
            (0..ring.degree()).map(|i| ring.rns().lift(|limb| poly.limb(limb)[i]) as f64 / q).collect()
        });
        for (index, x) in fractions.iter().enumerate() {
            assert!(fractions[..index].iter().all(|y| independent(x, y)), "{}: mask {index}", params.name());
        }
    }
    assert_ne!(masks_of(&SETS[0])[0].words()[..16], masks_of(&SETS[1])[0].words()[..16]);
}

/// The LWE words and the keys are samples of one secret: the masks of the keys are none of the elements of A.
#[test]
fn masks_are_no_elements_of_the_public_matrix() {
    for params in SETS {
        let context = RingContext::new(*params.ring());
        let (ring, degree) = (context.kept(), context.kept().degree());
        let table = column_table(Protocol::Colpack, params, shape(4 * degree, 1, 100));
        let matrix = PublicMatrix::new(PUBLIC_SEED, table.matrix());
        let coefficients = masks_of(&params).map(|mask| ring.inverse(mask).words().to_vec());
        for block in 0..4 {
            let mut alpha = vec![0; degree];
            matrix.ring_block_into(block, &mut alpha);
            for words in masks_of(&params).iter().map(Poly::words).chain(coefficients.iter().map(|c| &c[..]))
            {
                for (p, limb) in ring.moduli().iter().zip(words.chunks_exact(degree)) {
                    // Reduced, or cut to the bits of the prime as masks are.
                    let cut = u32::MAX >> (32 - p.bits());
                    let pairs = alpha.iter().zip(limb);
                    let same = pairs
                        .filter(|&(&a, &word)| word == p.reduce(u64::from(a)) || word == a & cut)
                        .count();
                    assert!(same < 3, "{}: {same} of {degree} coefficients of block {block}", params.name());
                }
            }
        }
    }
}

/// The names of all fields, nested ones with a dot.
fn fields(value: &Value, prefix: &str, out: &mut BTreeSet<String>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        out.insert(format!("{prefix}{name}"));
        fields(value, &format!("{prefix}{name}."), out);
    }
}

/// A table says nothing from which masks, the public matrix or a secret could be made: its only seed is that of the key hash.
#[test]
fn descriptors_have_no_room_for_masks() {
    let index = "version epoch protocol preset records columns blocks word_bits lookup lookup.by database \
                 slot slot.fingerprint_bytes slot.length_bytes slot.max_value_bytes";
    let key = "lookup.filter lookup.seed lookup.thresholds lookup.block_seeds";
    let keyed = Lookup::Key(KeyLookup {
        filter: FilterKind::Band256,
        seed: [1; 32],
        thresholds: vec![0; 3],
        block_seeds: vec![0; 3],
    });
    for (lookup, expected) in [(Lookup::Index, index.to_string()), (keyed, format!("{index} {key}"))] {
        let descriptor = descriptor(Protocol::Colpack, COLPACK_N2048_Q52.name(), 20, lookup);
        let value: Value = serde_json::from_slice(&descriptor.to_json()).unwrap();
        let mut names = BTreeSet::new();
        fields(&value, "", &mut names);
        assert_eq!(names, expected.split_whitespace().map(String::from).collect());
        // A descriptor to which a server adds something is refused.
        let mut text = String::from_utf8(descriptor.to_json()).unwrap();
        assert_eq!(Descriptor::from_json(text.as_bytes()).unwrap(), descriptor);
        text.truncate(text.len() - 1);
        for name in ["mask", "masks", "mask_seed", "seed", "matrix_seed"] {
            let added = format!(r#"{text},"{name}":"{}"}}"#, "00".repeat(32));
            assert!(Descriptor::from_json(added.as_bytes()).is_err(), "{name}");
        }
    }
}

/// Keys of a table that holds none of them: what a client asks for if a key is absent.
fn absent_keys(shape: TableShape) -> Vec<Target> {
    let filter = FilterParams { kind: FilterKind::Band64, slots: shape.columns };
    let targets = (0..6).map(|number: u32| {
        let digest = KeyDigest::new(&[7; 32], &number.to_le_bytes()).unwrap();
        Target { columns: filter.support(&digest, 3), block: digest.first_block(shape.blocks) }
    });
    targets.collect()
}

/// Returns a table of random bytes and targets of all kinds: every block, sums of every size, absent keys.
fn targets(protocol: Protocol, slot_bytes: usize) -> (Setup, Vec<Target>) {
    let shape = shape(90, 9, slot_bytes);
    let table = table(protocol, INSECURE_COLPACK_N256.name(), shape);
    let setup = Setup::new(Reference, table, filled(shape, None));
    let mut targets: Vec<_> = (0..9).map(|block| one(10 * block, block)).collect();
    targets.extend([0, 2, 45, 90].map(|count| Target {
        columns: (0..count as u32).map(|column| (column, 255 - column as u8)).collect(),
        block: count / 10 % 9,
    }));
    targets.extend(absent_keys(shape));
    (setup, targets)
}

/// Queries, requests and answers have one length, which is the table's.
#[test]
fn lengths_do_not_depend_on_the_target() {
    for protocol in COLUMN {
        let (setup, targets) = targets(protocol, 120);
        let (queries, pending) = setup.queries(&targets);
        let requests = queries.iter().map(|query| {
            assert_eq!(sizes(query), setup.table.facts().query);
            assert_eq!([query.second.len(), query.key_id.len()], [0, 0]);
            query.encoded_len()
        });
        assert_eq!(requests.collect::<BTreeSet<_>>().len(), 1);
        setup.check_answers(&targets, &pending, &setup.answer(&queries).unwrap());
    }
}

/// `colpack-s`: an answer holds a word for every row, its own for every query, and the masks are one file for all clients.
#[test]
fn all_rows_come_whatever_is_asked_for() {
    for slot_bytes in [120, 300] {
        let (setup, targets) = targets(Protocol::ColpackS, slot_bytes);
        let table = column_table(Protocol::ColpackS, INSECURE_COLPACK_N256, setup.table.facts().shape);
        let widths = table.widths();
        assert_eq!(table.answer_bytes(), packed_bytes(table.rows(), widths.answer));
        let mask = packed_bytes(256, widths.hint);
        let masks: BTreeSet<_> = setup.files.get(HINT_FILE).chunks(mask).collect();
        assert_eq!(masks.len(), table.pack_shape().plaintexts());
        assert_eq!(setup.table.facts().hint_bytes, (masks.len() * mask) as u64);
        let answers = setup.answer(&setup.queries(&targets).0).unwrap();
        let bodies = answers.iter().flat_map(|answer| answer.chunks_exact(64));
        assert!(answers.iter().all(|answer| answer.len() == table.answer_bytes()));
        assert_eq!(bodies.clone().collect::<BTreeSet<_>>().len(), bodies.count(), "queries share no words");
    }
}

/// With evaluation keys: two queries for one target have nothing in common.
#[test]
fn queries_are_fresh() {
    for protocol in PACK {
        let shape = shape(30, 4, 20);
        let setup = Setup::new(Plain, table(protocol, INSECURE_PACK_N256.name(), shape), filled(shape, None));
        let [(x, _), (y, _)] = [(); 2].map(|()| setup.query(&one(3, 2)));
        assert!(x.first != y.first && x.packed != y.packed);
        assert!(x.second.is_empty() || x.second != y.second);
        // Both vectors are under one secret, so their matrices must not have a row in common.
        let table = pack_table(protocol, INSECURE_PACK_N256, shape);
        assert_ne!(table.first_matrix().domain(), table.second_matrix().domain());
    }
}
