//! Noise of column packing at full size: the default set at 2^16 columns, structured databases, through the codecs. Every byte is
//! decoded, and the error that each step adds is the one that `ColumnNoise` predicts.

mod column_setup;

use std::ops::Range;

use column_setup::{Setup, one};
use hush_cpu::Cpu;
use hush_he::{
    algorithms::{decrypt_response, encrypt_column_query, open_column_keys},
    codec::{packed_bytes, unpack_scaled, unpack_wide},
    entities::{OneTimeRingSecret, RingDecryptionKey},
    params::{COLPACK_N2048_Q52, ColumnNoise, ColumnParams, Widths},
};
use hush_math::{
    csprng::Csprng,
    poly::{Eval, Poly},
};
use hush_ops::{
    contract::{ColumnOps, LweBatch, LweOps, LweQueries, RlweBatch, key_words, rgsw_rows},
    reference::lift_words,
};
use hush_protocol::{
    Target, colpack_s,
    column_packing::{self, ColumnHost, Pending},
    column_table::ColumnTable,
    table::{Protocol, TableShape},
    wire,
};

const PARAMS: ColumnParams = COLPACK_N2048_Q52;
const DEGREE: usize = 2048;
/// Bits to which the phase of a response is decoded: all that it has.
const PHASE_BITS: u32 = 18;
/// How far a standard deviation may be off its formula.
const OFF: f64 = 1.15;
/// As [`OFF`] for the fold of equal rows by a few queries: the rows have one error in common, which is a sample a query.
const OFF_EQUAL_ROWS: f64 = 2.0;

/// What an entry of 2,048 rows holds.
#[derive(Clone, Copy, Debug)]
enum Content {
    Random,
    /// Every byte -128: what the formulas take for the worst.
    Lowest,
    EqualRows,
    /// One byte in 1,009 is -128.
    Sparse,
}

impl Content {
    fn fill(self, columns: usize, out: &mut [u8]) {
        let rng = &mut Csprng::insecure_from_seed(5);
        match self {
            Self::Random => rng.fill_bytes(out),
            Self::Lowest => out.fill(0x80),
            Self::EqualRows => {
                let (first, rest) = out.split_at_mut(columns);
                rng.fill_bytes(first);
                rest.chunks_exact_mut(columns).for_each(|row| row.copy_from_slice(first));
            }
            Self::Sparse => out.iter_mut().step_by(1009).for_each(|byte| *byte = 0x80),
        }
    }

    fn rows_differ(self) -> bool {
        matches!(self, Self::Random | Self::Sparse)
    }
}

/// A table with an entry of one plaintext for each content.
fn setup(columns: usize, contents: &[Content]) -> Setup<Cpu> {
    let shape = TableShape { columns, blocks: contents.len(), slot_bytes: DEGREE };
    let table = ColumnTable::new(Protocol::Colpack, PARAMS, shape).unwrap();
    let mut matrix = vec![0; table.rows() * columns];
    for (content, entry) in contents.iter().zip(matrix.chunks_exact_mut(DEGREE * columns)) {
        content.fill(columns, entry);
    }
    Setup::new(Cpu::new(2).unwrap(), table, matrix)
}

/// One-hot vectors and sums of 256 slots in turn, for every block in turn.
fn targets(table: &ColumnTable, count: usize) -> Vec<Target> {
    let TableShape { columns, blocks, .. } = table.shape();
    let target = |index: usize| match index / blocks % 2 {
        0 => one(columns / count * index, index % blocks),
        _ => Target {
            columns: (0..columns).step_by(columns / 256).map(|column| (column as u32, 1)).collect(),
            block: index % blocks,
        },
    };
    (0..count).map(target).collect()
}

/// A query with what its client could know beyond what it keeps.
struct Client {
    target: Target,
    query: wire::Query,
    pending: Pending,
    key: RingDecryptionKey,
    /// The slots that the vector adds up, in all rows of the table.
    expected: Vec<u8>,
}

impl Client {
    /// Encrypts twice with the same randomness: as clients do, and to see the secret.
    fn new(setup: &Setup<Cpu>, target: Target, seed: u64) -> Self {
        let (table, scheme) = (&setup.table, &setup.scheme);
        let rng = &mut Csprng::insecure_from_seed(seed);
        let (query, pending) = column_packing::query(table, scheme, target.clone(), rng);
        let rng = &mut Csprng::insecure_from_seed(seed);
        let secret = OneTimeRingSecret::sample(&PARAMS, rng);
        let (entry, _) = table.place(target.block);
        let (matrix, power) = (table.matrix(), table.exponent(entry));
        let vector = (&matrix, &target.columns[..]);
        let (_, keys, key) =
            encrypt_column_query(&PARAMS, scheme.context(), scheme.masks(), secret, vector, power, rng);
        assert_eq!(keys, query.packed);
        let blocks = 0..table.shape().blocks;
        let slot = |block| setup.expected(&Target { columns: target.columns.clone(), block });
        let expected = blocks.flat_map(slot).collect();
        Self { target, query, pending, key, expected }
    }

    /// Coefficients of the secret.
    fn secret(&self, setup: &Setup<Cpu>) -> Vec<i32> {
        let ring = setup.scheme.context().kept();
        let s = ring.inverse(Poly::clone(&self.key.secret().eval(ring)));
        (0..DEGREE).map(|i| ring.rns().lift_centred(|limb| s.limb(limb)[i]) as i32).collect()
    }

    /// Rows of the block that is asked for.
    fn rows(&self) -> Range<usize> {
        self.target.block * DEGREE..(self.target.block + 1) * DEGREE
    }

    /// Errors of phases, in LSB, of the given rows.
    fn errors(&self, rows: Range<usize>, phases: impl IntoIterator<Item = f64>) -> Vec<f64> {
        let expected = self.expected[rows].iter().map(|&byte| f64::from(byte));
        phases.into_iter().zip(expected).map(|(phase, byte)| centred(phase - byte)).collect()
    }
}

/// A number modulo 256, from -128 to 128.
fn centred(x: f64) -> f64 {
    (x + 128.0).rem_euclid(256.0) - 128.0
}

/// (1) The words of all rows, query after query.
fn fold(setup: &Setup<Cpu>, clients: &[Client]) -> LweBatch {
    let (cols, bits) = (setup.table.shape().columns, setup.table.query_bits());
    let vectors = clients.iter().map(|client| unpack_scaled(&client.query.first, cols, bits).unwrap());
    setup.backend.lwe_fold(&setup.db, &LweQueries { cols, words: vectors.flatten().collect() }).unwrap()
}

/// What the server makes of a batch.
struct Steps {
    folded: LweBatch,
    packed: LweBatch,
    chosen: Vec<RlweBatch>,
    answers: Vec<Vec<u8>>,
}

impl Steps {
    fn new(setup: &Setup<Cpu>, clients: &[Client]) -> Self {
        let (cpu, ring, scheme) = (&setup.backend, &setup.ring, &setup.scheme);
        let queries: Vec<_> = clients.iter().map(|client| client.query.clone()).collect();
        let keys = queries.iter().map(|query| {
            open_column_keys(&PARAMS, scheme.context(), scheme.masks(), true, &query.packed).unwrap()
        });
        let keys: Vec<_> = keys.collect();
        let folded = fold(setup, clients);
        let rotations: Vec<_> = keys.iter().map(|keys| &keys.rotation[..]).collect();
        let conjugations: Vec<_> = keys.iter().map(|keys| &keys.conjugation).collect();
        let words = key_words(&rotations);
        let packed =
            cpu.pack_columns(ring, &setup.columns, &setup.chain, folded.clone(), &words, &conjugations);
        let packed = packed.unwrap();
        let powers: Vec<_> = keys.iter().map(|keys| rgsw_rows(keys.power.as_ref())).collect();
        let powers: Vec<_> = powers.iter().collect();
        let chosen = cpu.rgsw_power_fold(ring, &setup.chain, &packed, &powers).unwrap();
        Self { folded, packed, chosen, answers: setup.answer(&queries).unwrap() }
    }
}

/// Errors in LSB after each step, of one look-up.
struct Errors {
    /// Of all rows.
    fold: Vec<f64>,
    /// Of all rows.
    packing: Vec<f64>,
    /// Of the rows that are asked for, as are those below.
    folds: Vec<f64>,
    response: Vec<f64>,
    /// What rounding b added to the response.
    rounded_b: Vec<f64>,
}

impl Errors {
    fn new(setup: &Setup<Cpu>, client: &Client, steps: &Steps, index: usize) -> Self {
        let (all, rows) = (0..setup.table.rows(), client.rows());
        let words = |batch: &LweBatch| batch.words[index * batch.rows..][..batch.rows].to_vec();
        let (folded, secret) = (words(&steps.folded), client.secret(setup));
        let fold = all.clone().map(|row| fold_phase(setup, &secret, row, folded[row]));
        let ring = setup.scheme.context().kept();
        let packed = words(&steps.packed);
        let plaintexts =
            packed.chunks_exact(DEGREE).zip(setup.polys.masks.chunks_exact(ring.limbs() * DEGREE));
        let packing = plaintexts.flat_map(|(words, mask)| {
            let b = ring.forward(lift_words(ring, words));
            phases(setup, client, &[mask, b.words()].concat())
        });
        let chosen = steps.chosen[index].ciphertext(0);
        let (response, b) = response(setup, client, &steps.answers[index]);
        let exact = coefficients(setup, &chosen[chosen.len() / 2..]);
        Self {
            fold: client.errors(all.clone(), fold),
            packing: client.errors(all, packing),
            folds: client.errors(rows.clone(), phases(setup, client, chosen)),
            response: client.errors(rows, response),
            rounded_b: difference(&b, &exact).into_iter().map(centred).collect(),
        }
    }
}

/// The phase of a row's folded word.
fn fold_phase(setup: &Setup<Cpu>, secret: &[i32], row: usize, word: u32) -> f64 {
    let hint = &setup.hint[row * DEGREE..(row + 1) * DEGREE];
    let products = hint.iter().zip(secret).map(|(&h, &s)| h.wrapping_mul(s as u32));
    f64::from(products.fold(word, u32::wrapping_add)) / 2f64.powi(24)
}

/// The coefficients of a polynomial modulo Q in LSB, Q / 256.
fn coefficients(setup: &Setup<Cpu>, words: &[u32]) -> Vec<f64> {
    let ring = setup.scheme.context().kept();
    let poly = ring.inverse(Poly::<Eval>::from_words(words.to_vec(), DEGREE));
    let lsb = ring.rns().product() as f64 / 256.0;
    (0..DEGREE).map(|i| ring.rns().lift(|limb| poly.limb(limb)[i]) as f64 / lsb).collect()
}

/// The phase of a ciphertext `a, b` modulo Q.
fn phases(setup: &Setup<Cpu>, client: &Client, ciphertext: &[u32]) -> Vec<f64> {
    let ring = setup.scheme.context().kept();
    let (a, b) = ciphertext.split_at(ciphertext.len() / 2);
    let poly = |words: &[u32]| Poly::<Eval>::from_words(words.to_vec(), DEGREE);
    let mut phase = poly(b);
    ring.mul_add(&mut phase, &poly(a), &client.key.secret().eval(ring));
    coefficients(setup, phase.words())
}

/// The phase of an answer of one plaintext, and its b.
fn response(setup: &Setup<Cpu>, client: &Client, answer: &[u8]) -> (Vec<f64>, Vec<f64>) {
    let bits = PARAMS.ring().response_bits();
    let words = |bytes: &[u8], bits| -> Vec<u64> {
        unpack_wide(bytes, DEGREE, bits).unwrap().map(|word| word as u64).collect()
    };
    let (a, b) = answer.split_at(packed_bytes(DEGREE, bits.a));
    let (a, b) = (words(a, bits.a), words(b, bits.b));
    let phases = decrypt_response(setup.scheme.context(), client.key.secret(), &a, &b, PHASE_BITS);
    let lsb = |bits: u32| 2f64.powi(bits as i32 - 8);
    let phases = phases.iter().map(|&phase| f64::from(phase) / lsb(PHASE_BITS));
    (phases.collect(), b.into_iter().map(|b| b as f64 / lsb(bits.b)).collect())
}

fn std(errors: &[f64]) -> f64 {
    (errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64).sqrt()
}

fn difference(x: &[f64], y: &[f64]) -> Vec<f64> {
    x.iter().zip(y).map(|(x, y)| x - y).collect()
}

/// The standard deviation that a step adds is that of its formula.
fn adds(name: &str, step: &str, errors: &[f64], predicted: f64, off: f64) {
    let std = std(errors);
    let text = format!("{name}: {step} adds {std:.5} LSB (predicted {predicted:.5})");
    println!("{text}");
    assert!((1.0 / off..off).contains(&(std / predicted)), "{text}");
}

/// What there is after a step is 12 standard deviations below the limit of decoding.
fn keeps_the_margin(name: &str, step: &str, errors: &[f64], limit: f64) {
    let sigmas = limit / std(errors);
    let text = format!("{name}: after {step} {sigmas:.1} sigma, {:.2} bits", sigmas.log2());
    println!("{text}");
    assert!(sigmas >= Widths::MIN_SIGMAS, "{text}");
}

/// Looks up `count` targets and measures every step, by content.
fn check(setup: &Setup<Cpu>, contents: &[Content], count: usize) {
    let columns = setup.table.shape().columns;
    let clients = (300u64..).zip(targets(&setup.table, count));
    let clients: Vec<_> = clients.map(|(seed, target)| Client::new(setup, target, seed)).collect();
    let steps = Steps::new(setup, &clients);
    for (client, answer) in clients.iter().zip(&steps.answers) {
        assert_eq!(setup.recover(&client.pending, answer).unwrap(), client.expected[client.rows()]);
    }
    let errors = clients.iter().enumerate().map(|(index, client)| Errors::new(setup, client, &steps, index));
    let errors: Vec<_> = errors.collect();
    let noise = setup.table.noise();
    for (entry, content) in contents.iter().enumerate() {
        let rows = entry * DEGREE..(entry + 1) * DEGREE;
        let bytes = &setup.matrix[rows.start * columns..rows.end * columns];
        let chosen = clients.iter().zip(&errors).filter(|(client, _)| client.target.block == entry);
        let chosen: Vec<_> = chosen.map(|(_, errors)| errors).collect();
        let name = format!("{content:?}, D0 = {columns}, {} bits", setup.table.query_bits());
        check_rows(&name, *content, bytes, &noise, &errors, rows.clone());
        check_entry(&name, &noise, &chosen, rows);
    }
}

/// The steps in which all queries fold and pack these rows.
fn check_rows(
    name: &str,
    content: Content,
    bytes: &[u8],
    noise: &ColumnNoise,
    errors: &[Errors],
    rows: Range<usize>,
) {
    let all = |errors_of: &dyn Fn(&Errors) -> Vec<f64>| -> Vec<f64> {
        errors.iter().flat_map(|errors| errors_of(errors)[rows.clone()].to_vec()).collect()
    };
    let fold = all(&|errors| errors.fold.clone());
    let packed = all(&|errors| errors.packing.clone());
    let off = if content.rows_differ() { OFF } else { OFF_EQUAL_ROWS };
    adds(name, "fold", &fold, noise.lwe.std() * rms(bytes), off);
    keeps_the_margin(name, "fold", &fold, 0.5);
    adds(name, "packing", &difference(&packed, &fold), noise.packing, OFF);
    keeps_the_margin(name, "packing", &packed, 0.5);
}

/// The steps by which the queries for this entry come to it.
fn check_entry(name: &str, noise: &ColumnNoise, errors: &[&Errors], rows: Range<usize>) {
    let all = |errors_of: &dyn Fn(&Errors) -> Vec<f64>| -> Vec<f64> {
        errors.iter().flat_map(|errors| errors_of(errors)).collect()
    };
    let folds = all(&|errors| errors.folds.clone());
    let added = all(&|errors| difference(&errors.folds, &errors.packing[rows.clone()]));
    adds(name, "folds", &added, noise.folds, OFF);
    keeps_the_margin(name, "folds", &folds, 0.5);
    let rounded_b = all(&|errors| errors.rounded_b.clone());
    assert!(rounded_b.iter().all(|error| error.abs() <= noise.response_bound * 1.000_1));
    let without_b = difference(&all(&|errors| errors.response.clone()), &rounded_b);
    adds(name, "response", &difference(&without_b, &folds), noise.response, OFF);
    keeps_the_margin(name, "response", &without_b, 0.5 - noise.response_bound);
}

/// The fold of equal rows, by many queries: one row of each entry.
fn check_equal_rows(setup: &Setup<Cpu>, contents: &[Content], count: usize) {
    let columns = setup.table.shape().columns;
    let targets = (0..count).map(|index| one(columns / count * index, 0));
    let clients: Vec<_> = (900u64..).zip(targets).map(|(seed, t)| Client::new(setup, t, seed)).collect();
    let folded = fold(setup, &clients);
    for (entry, content) in contents.iter().enumerate().filter(|(_, content)| !content.rows_differ()) {
        let row = entry * DEGREE;
        let error = |(client, words): (&Client, &[u32])| {
            fold_phase(setup, &client.secret(setup), row, words[row]) - f64::from(client.expected[row])
        };
        let errors = clients.iter().zip(folded.words.chunks_exact(folded.rows)).map(error).map(centred);
        let predicted =
            setup.table.noise().lwe.std() * rms(&setup.matrix[row * columns..(row + 1) * columns]);
        adds(&format!("{content:?}, {count} queries"), "fold", &errors.collect::<Vec<_>>(), predicted, OFF);
    }
}

/// The root mean square of bytes, over that of the worst database, which has -128 everywhere.
fn rms(bytes: &[u8]) -> f64 {
    let squares: f64 = bytes.iter().map(|&byte| f64::from(byte as i8).powi(2)).sum();
    (squares / bytes.len() as f64).sqrt() / 128.0
}

/// `colpack-s` answers with the same packed ciphertexts, rounded as they are.
fn check_unfolded(setup: &Setup<Cpu>, count: usize) {
    let table = ColumnTable::new(Protocol::ColpackS, PARAMS, setup.table.shape()).unwrap();
    let masks = colpack_s::switched_masks(&setup.backend, &setup.ring, &table, &setup.polys.masks).unwrap();
    let host = ColumnHost { table: &table, masks: &masks, ..setup.host() };
    let (targets, rng) = (targets(&table, count), &mut Csprng::insecure_from_seed(6));
    let queries =
        targets.iter().map(|target| column_packing::query(&table, &setup.scheme, target.clone(), rng));
    let (queries, pending): (Vec<_>, Vec<_>) = queries.unzip();
    let answers = column_packing::answer(&host, &queries).unwrap();
    for ((target, pending), answer) in targets.iter().zip(&pending).zip(&answers) {
        let slot = column_packing::recover(&table, &setup.scheme, pending, answer).unwrap();
        assert_eq!(*slot, setup.expected(target));
    }
}

/// Whole plaintexts of the default set at 2^16 columns, random ones and the worst.
#[test]
fn at_two_to_the_16_columns() {
    let contents = [Content::Random, Content::Lowest];
    check(&setup(1 << 16, &contents), &contents, 12);
}

/// Databases with structure, which the hint and so the digits of the chain inherit; three entries of four.
#[test]
fn structured_databases() {
    let contents = [Content::EqualRows, Content::Sparse, Content::Lowest];
    let setup = setup(1 << 12, &contents);
    check(&setup, &contents, 9);
    check_equal_rows(&setup, &contents, 256);
    check_unfolded(&setup, 6);
}
