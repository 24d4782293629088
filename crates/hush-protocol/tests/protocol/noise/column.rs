//! Noise of column packing: structured databases, through the codecs. Every byte is decoded, and the error that each step adds is
//! the one that `ColumnNoise` predicts. The default set at 2^16 columns and at 2^12, and 16 entries of a small one.

#![allow(clippy::print_stdout)]

use std::ops::Range;

use hush_cpu::Cpu;
use hush_he::params::{COLPACK_N2048_Q52, ColumnNoise, ColumnParams, INSECURE_COLPACK_N256, Widths};
use hush_math::csprng::Csprng;
use hush_protocol::{Protocol, Target, table::TableShape};

use super::{
    centred,
    measure::{Client, Errors, Measured, Steps, difference, fold, fold_phase},
    std,
};
use crate::support::{Setup, Stored, column_table, one, shape, table};

/// N of the default set.
const DEGREE: usize = 2048;
/// How far a standard deviation may be off its formula.
const OFF: f64 = 1.15;
/// The bound of [`OFF`] for the fold of equal rows by a few queries: the rows have one error in common, which is a
/// sample a query.
const OFF_EQUAL_ROWS: f64 = 2.0;

/// The content of an entry of N rows.
#[derive(Clone, Copy, Debug)]
enum Content {
    Random,
    /// Every byte -128: what the formulas take for the worst.
    Lowest,
    EqualRows,
    /// Zeros, but for one byte in 1,009, which is -128.
    Sparse,
}

impl Content {
    fn fill(self, columns: usize, seed: u64, out: &mut [u8]) {
        let rng = &mut Csprng::insecure_from_seed(seed);
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

/// Returns a table with an entry of one plaintext for each content.
fn setup(params: ColumnParams, columns: usize, contents: &[Content]) -> Measured {
    let degree = params.ring().degree();
    let table = column_table(Protocol::Colpack, params, shape(columns, contents.len(), degree));
    let mut matrix = vec![0; table.rows() * columns];
    let entries = matrix.chunks_exact_mut(degree * columns);
    for ((seed, content), entry) in (5..).zip(contents).zip(entries) {
        content.fill(columns, seed, entry);
    }
    Measured::new(table, matrix, None)
}

/// Returns one-hot vectors and sums of 256 slots in turn, for every block in turn.
fn targets(TableShape { columns, blocks, .. }: TableShape, count: usize) -> Vec<Target> {
    let targets = (0..count).map(|index| match index / blocks % 2 {
        0 => one(columns / count * index, index % blocks),
        _ => Target {
            columns: (0..columns).step_by(columns / 256).map(|column| (column as u32, 1)).collect(),
            block: index % blocks,
        },
    });
    targets.collect()
}

/// The standard deviation that a step adds is that of its formula.
fn adds(name: &str, step: &str, errors: &[f64], predicted: f64, off: f64) {
    let std = std(errors);
    let text = format!("{name}: {step} adds {std:.5} LSB (predicted {predicted:.5})");
    println!("{text}");
    assert!((1.0 / off..off).contains(&(std / predicted)), "{text}");
}

/// Asserts that the errors after a step are 12 standard deviations below the limit of decoding.
fn keeps_the_margin(name: &str, step: &str, errors: &[f64], limit: f64) {
    let sigmas = limit / std(errors);
    let text = format!("{name}: after {step} {sigmas:.1} sigma, {:.2} bits", sigmas.log2());
    println!("{text}");
    assert!(sigmas >= Widths::MIN_SIGMAS, "{text}");
}

/// Looks up `count` targets and measures every step, by content.
fn check(setup: &Measured, contents: &[Content], count: usize) {
    let columns = setup.table.shape().columns;
    let clients = (300u64..).zip(targets(setup.table.shape(), count));
    let clients: Vec<_> = clients.map(|(seed, target)| Client::new(setup, target, seed)).collect();
    let steps = Steps::new(setup, &clients);
    for (client, answer) in clients.iter().zip(&steps.answers) {
        assert_eq!(
            setup.setup.recover(&client.pending, answer).unwrap(),
            client.expected[client.rows.clone()]
        );
    }
    let errors = clients.iter().enumerate().map(|(index, client)| Errors::new(setup, client, &steps, index));
    let errors: Vec<_> = errors.collect();
    let (noise, degree) = (setup.table.noise(), setup.table.shape().slot_bytes);
    for (entry, content) in contents.iter().enumerate() {
        let rows = entry * degree..(entry + 1) * degree;
        let bytes = &setup.setup.matrix[rows.start * columns..rows.end * columns];
        let chosen = clients.iter().zip(&errors).filter(|(client, _)| client.target.block == entry);
        let chosen: Vec<_> = chosen.map(|(_, errors)| errors).collect();
        let name = format!("{content:?}, D0 = {columns}, {} bits", setup.table.widths().query);
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
fn check_equal_rows(setup: &Measured, contents: &[Content], count: usize) {
    let columns = setup.table.shape().columns;
    let targets = (0..count).map(|index| one(columns / count * index, 0));
    let clients: Vec<_> = (900u64..).zip(targets).map(|(seed, t)| Client::new(setup, t, seed)).collect();
    let folded = fold(setup, &clients);
    for (entry, content) in contents.iter().enumerate().filter(|(_, content)| !content.rows_differ()) {
        let row = entry * setup.table.shape().slot_bytes;
        let queries = clients.iter().zip(folded.words.chunks_exact(folded.rows));
        let errors = queries.map(|(client, words)| {
            let phase = fold_phase(setup, &client.secret(setup), row, words[row]);
            centred(phase - f64::from(client.expected[row]))
        });
        let predicted =
            setup.table.noise().lwe.std() * rms(&setup.setup.matrix[row * columns..(row + 1) * columns]);
        adds(&format!("{content:?}, {count} queries"), "fold", &errors.collect::<Vec<_>>(), predicted, OFF);
    }
}

/// Returns the root mean square of bytes, over that of the worst database, which has -128 everywhere.
fn rms(bytes: &[u8]) -> f64 {
    let squares: f64 = bytes.iter().map(|&byte| f64::from(byte as i8).powi(2)).sum();
    (squares / bytes.len() as f64).sqrt() / 128.0
}

/// `colpack-s` answers with the same packed ciphertexts, rounded as they are.
fn check_unfolded(Measured { setup, .. }: Measured, count: usize) {
    let shape = setup.table.facts().shape;
    let table = table(Protocol::ColpackS, setup.table.facts().preset, shape);
    let cpu = Cpu::new(2).unwrap();
    let files = Stored::build(&cpu, &table, &setup.matrix, Some(setup.files.hints[0].clone()));
    let setup = Setup::of_files(cpu, table, setup.matrix, files);
    setup.check(&targets(shape, count));
}

/// Whole plaintexts of the default set at 2^16 columns, random ones and the worst.
#[test]
fn at_two_to_the_16_columns() {
    let contents = [Content::Random, Content::Lowest];
    check(&setup(COLPACK_N2048_Q52, 1 << 16, &contents), &contents, 12);
}

/// Databases with structure, which the hint and so the digits of the chain inherit; three entries of four.
#[test]
fn structured_databases() {
    let contents = [Content::EqualRows, Content::Sparse, Content::Lowest];
    let setup = setup(COLPACK_N2048_Q52, 1 << 12, &contents);
    check(&setup, &contents, 9);
    check_equal_rows(&setup, &contents, 256);
    check_unfolded(setup, 6);
}

/// Fifteen external products. Entries of one content differ: where a table repeats, terms of its spectrum are zeros, and as many
/// products add nothing.
#[test]
fn sixteen_entries() {
    let contents = [Content::Random, Content::Sparse, Content::EqualRows, Content::Random].repeat(4);
    let setup = setup(INSECURE_COLPACK_N256, 1 << 10, &contents);
    assert_eq!(setup.table.external_products(), 15);
    check(&setup, &contents, 128);
    check_unfolded(setup, 32);
}

/// Measures the noise of packing for hints that no table has, of the default set.
#[test]
fn sparse_and_structured_hints() {
    let rng = &mut Csprng::insecure_from_seed(8);
    let mut row = vec![0; DEGREE];
    rng.fill_u32(&mut row);
    let mut one_row = vec![0; DEGREE * DEGREE];
    let mut one_word = one_row.clone();
    one_row[700 * DEGREE..701 * DEGREE].copy_from_slice(&row);
    one_word[700 * DEGREE + 900] = row[0];
    // The digits of a row and of a word are random from the second step of the chain on, as the masks are.
    for (name, hint) in [("one row", one_row), ("one word", one_word)] {
        let (added, predicted) = packing_of(hint);
        adds(name, "packing", &added, predicted, OFF);
    }
    // Rows that are multiples of one by X^i are one ciphertext over the ring, of which there is nothing to switch; by X^5i, which
    // is the image of one, half of the chain.
    for (step, part) in [(1, 0.0), (5, 0.5f64.sqrt())] {
        let (added, predicted) = packing_of(rotations(&row, step));
        let std = std(&added);
        println!("rotations by {step}: packing adds {std:.5} LSB (predicted {:.5})", part * predicted);
        assert!(std <= OFF * part * predicted + 1e-6 && std >= part * predicted / OFF, "{step}: {std}");
    }
}

/// Rows that are negacyclic rotations of one, by `step` places more from row to row.
fn rotations(row: &[u32], step: usize) -> Vec<u32> {
    let mut words = Vec::with_capacity(DEGREE * DEGREE);
    for i in 0..DEGREE {
        for j in 0..DEGREE {
            let from = (2 * DEGREE * step + j - i * step) % (2 * DEGREE);
            words.push(if from < DEGREE { row[from] } else { row[from - DEGREE].wrapping_neg() });
        }
    }
    words
}

/// Returns the errors that packing adds to the phases of a plaintext with this hint, and their predicted deviation.
fn packing_of(hint: Vec<u32>) -> (Vec<f64>, f64) {
    let table = column_table(Protocol::Colpack, COLPACK_N2048_Q52, shape(1, 1, DEGREE));
    let setup = Measured::new(table, vec![0; DEGREE], Some(hint));
    let clients: Vec<_> = (0..3).map(|seed| Client::new(&setup, one(0, 0), seed)).collect();
    let steps = Steps::new(&setup, &clients);
    let added = clients.iter().enumerate().flat_map(|(index, client)| {
        let errors = Errors::new(&setup, client, &steps, index);
        difference(&errors.packing, &errors.fold).into_iter().map(centred)
    });
    (added.collect(), table.noise().packing)
}
