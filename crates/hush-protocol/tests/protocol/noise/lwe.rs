//! Measured noise against its formula, with random and structured databases, at full LWE dimension.

#![allow(clippy::print_stdout)]

use hush_he::{
    algorithms::{encrypt_lwe, phase},
    codec::{pack_rounded, unpack_scaled},
    entities::{MatrixDomain, OneTimeLweSecret, PublicMatrix},
    params::{DEFAULT_LWE, FRODOPIR_N1774_TERNARY, LweParams, Widths, noise::LweNoise},
};
use hush_math::csprng::Csprng;
use hush_ops::{
    contract::{LweOps, LweQueries},
    reference::Reference,
    tiling::TiledDb,
};

use crate::support::PUBLIC_SEED;

const LSB: f64 = (1 << 24) as f64;

/// Standard deviation of the phase's error in LSB over `keys` secrets and all rows, with words at `widths`, of a segment that is
/// asked with queries of `wraps` times as many columns.
fn measured(lwe: &LweParams, widths: Widths, cols: usize, wraps: usize, matrix: &[u8], keys: usize) -> f64 {
    let rng = &mut Csprng::insecure_from_seed(11);
    let rows = matrix.len() / cols;
    let db = TiledDb::from_matrix(rows, cols, matrix);
    let shape = lwe.matrix_shape(MatrixDomain::First, wraps * cols);
    let [asked, a] = [shape, shape.wrapped(cols)].map(|shape| PublicMatrix::new(PUBLIC_SEED, shape));
    let through = |words: &[u32], bits| unpack_scaled(&pack_rounded(words, bits), words.len(), bits).unwrap();
    let hint = through(&Reference.lwe_hint(&db, &a, 0..rows).unwrap(), widths.hint);
    let (mut sum, mut count) = (0.0, 0.0);
    for _ in 0..keys {
        let message = [(3, 1), (asked.cols() as u32 - 1, 1)];
        let (words, key) = encrypt_lwe(lwe, &asked, OneTimeLweSecret::sample(lwe, rng), &message, rng);
        let queries = LweQueries { cols: asked.cols(), words: through(&words, widths.query) };
        let queries = queries.wrapped(cols).unwrap();
        let answer = through(&Reference.lwe_fold(&db, &queries).unwrap().words, widths.answer);
        for (row, &word) in answer.iter().enumerate() {
            let exact = (matrix[row * cols + 3].wrapping_add(matrix[row * cols + cols - 1])) as u32;
            let phase = phase(word, &hint[row * lwe.n()..][..lwe.n()], &key);
            let error = phase.wrapping_sub(exact << 24) as i32;
            sum += (f64::from(error) / LSB).powi(2);
            count += 1.0;
        }
    }
    (sum / count).sqrt()
}

#[test]
fn noise_is_as_predicted() {
    let (cols, rows) = (2048, 48);
    let random = {
        let mut bytes = vec![0; cols * rows];
        Csprng::insecure_from_seed(12).fill_bytes(&mut bytes);
        bytes
    };
    let patterns = [
        ("random", random.clone()),
        ("all -128", vec![0x80; cols * rows]),
        ("all 127", vec![0x7f; cols * rows]),
        ("identical rows", random[..cols].repeat(rows)),
        ("sparse", random.iter().map(|&b| if b < 4 { b } else { 0 }).collect()),
    ];
    for (lwe, hint) in [(DEFAULT_LWE, 16), (FRODOPIR_N1774_TERNARY, 18)] {
        for widths in [Widths::FULL, Widths { query: 26, hint, answer: 12 }] {
            let predicted = LweNoise::new(&lwe, cols, widths);
            for (name, matrix) in &patterns {
                // Where rows are equal they share one error: the keys are the samples.
                let measured = measured(&lwe, widths, cols, 1, matrix, 24);
                let margin = (0.5 / measured).log2();
                assert!(
                    measured <= 1.5 * predicted.std(),
                    "{} {name}: measured {measured:.5}, predicted at most {:.5}",
                    lwe.name(),
                    predicted.std()
                );
                assert!(margin > 3.0, "{} {name}: {margin:.1} bits of margin", lwe.name());
                assert!(predicted.sigmas() >= 12.0, "{}: {:.1} sigma", lwe.name(), predicted.sigmas());
                if *name == "all -128" && widths == Widths::FULL {
                    // The bound is met, so it is no overestimate: rows share one error, hence the width.
                    assert!(
                        measured >= 0.4 * predicted.std(),
                        "{name}: {measured:.6} of {:.6}",
                        predicted.std()
                    );
                }
            }
            // The terms of rounding alone, on an empty table.
            let rounding = measured_rounding(&lwe, widths, cols);
            let expected = predicted.hint.hypot(predicted.answer);
            assert!((rounding - expected).abs() <= 0.15 * expected + 1e-9, "{rounding} against {expected}");
        }
    }
}

/// A segment of D of D0 columns has the noise of D0 columns: fewer words, each with the errors of several.
#[test]
fn noise_of_wrapped_queries_is_that_of_all_columns() {
    let (lwe, widths) = (DEFAULT_LWE, Widths { query: 26, hint: 17, answer: 12 });
    for (cols, wraps) in [(2048, 2), (1024, 6), (256, 32)] {
        let predicted = LweNoise::new(&lwe, cols * wraps, widths);
        let mut random = vec![0; cols * 32];
        Csprng::insecure_from_seed(13).fill_bytes(&mut random);
        for (name, matrix, least) in [("random", random, 0.2), ("all -128", vec![0x80; cols * 32], 0.4)] {
            let measured = measured(&lwe, widths, cols, wraps, &matrix, 24);
            let ratio = measured / predicted.std();
            let text = format!(
                "{cols} x {wraps}, {name}: {ratio:.2} of the noise that is predicted, {:.1} sigma",
                0.5 / measured
            );
            println!("{text}");
            assert!((least..1.5).contains(&ratio) && 0.5 / measured >= Widths::MIN_SIGMAS, "{text}");
        }
    }
}

/// Rounding a query must not have a mean: over a wide row of equal bytes it would add up to a wrong answer.
#[test]
fn query_rounding_has_no_bias_on_wide_structured_tables() {
    let (lwe, cols) = (DEFAULT_LWE, 1 << 18);
    let widths = Widths { query: 28, hint: 32, answer: 32 };
    let predicted = LweNoise::new(&lwe, cols, widths);
    for byte in [0x80, 100] {
        // Nor in a segment of few columns, each the sum of many words.
        for wraps in [1, 64] {
            let measured = measured(&lwe, widths, cols / wraps, wraps, &vec![byte; cols / wraps], 12);
            assert!(measured <= 2.0 * predicted.std(), "{measured:.4} against {:.4}", predicted.std());
        }
    }
}

/// With a table of single ones the fold adds next to nothing: what is left is the rounding of hint and answer.
fn measured_rounding(lwe: &LweParams, widths: Widths, cols: usize) -> f64 {
    let rows = 64;
    let mut matrix = vec![0; cols * rows];
    for row in 0..rows {
        matrix[row * cols + 10 * row + 7] = 1;
    }
    let measured = measured(lwe, Widths { query: 32, ..widths }, cols, 1, &matrix, 12);
    let fold = lwe.error_std() / LSB;
    (measured * measured - fold * fold).max(0.0).sqrt()
}
