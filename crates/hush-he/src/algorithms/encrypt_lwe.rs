//! Encryption of a vector under a fresh secret.

use hush_math::{
    csprng::Csprng,
    samplers::{GaussianTable, sample_ternary},
};

use crate::{
    entities::{LweDecryptionKey, MatrixStructure, OneTimeLweSecret, PublicMatrix},
    params::{ErrorDistribution, LweParams},
};

/// Bits by which a message is scaled: Delta = 2^24.
const DELTA_BITS: u32 = 24;
/// Columns that are encrypted while they sit in the L1 cache.
const COLUMN_BLOCK: usize = 4096;

/// Encrypts the vector that is `coeff` at each `(column, coeff)` of `message` and 0 elsewhere:
/// `b = -A s + e + Delta * message mod 2^32`, `a.cols()` words.
///
/// Constant time in secret, error and message values: every column is visited for every entry of the message.
/// Source: SimplePIR (Henzinger et al.) section 4; FrodoPIR; sign convention `phase = b + <a, s>`.
///
/// # Panics
/// If a column of `message` is not below `a.cols()`, or A is not of `params`.
pub fn encrypt_lwe(
    params: &LweParams,
    a: &PublicMatrix,
    secret: OneTimeLweSecret,
    message: &[(u32, u8)],
    rng: &mut Csprng,
) -> (Vec<u32>, LweDecryptionKey) {
    assert_eq!(a.n(), params.n());
    assert!(message.iter().all(|&(column, _)| (column as usize) < a.cols()));
    let mut b = mask(a, &secret);
    match params.error() {
        ErrorDistribution::None => {}
        ErrorDistribution::Gaussian(std) => GaussianTable::new(std).add_to(rng, &mut b),
        ErrorDistribution::Ternary => {
            let mut error = zeroize::Zeroizing::new(vec![0; b.len()]);
            sample_ternary(rng, &mut error);
            b.iter_mut().zip(error.iter()).for_each(|(b, e)| *b = b.wrapping_add(*e));
        }
    }
    for (index, block) in b.chunks_mut(COLUMN_BLOCK).enumerate() {
        let first = (index * COLUMN_BLOCK) as u32;
        for &(column, coeff) in message {
            let scaled = u32::from(coeff) << DELTA_BITS;
            for (offset, word) in block.iter_mut().enumerate() {
                let difference = (first + offset as u32) ^ column;
                // All ones where the difference is 0: no branch and no address depends on the column.
                let equal = (((difference | difference.wrapping_neg()) >> 31) ^ 1).wrapping_neg();
                *word = word.wrapping_add(scaled & equal);
            }
        }
    }
    (b, secret.into_decryption_key())
}

/// `-A s`.
fn mask(a: &PublicMatrix, secret: &OneTimeLweSecret) -> Vec<u32> {
    let mut out = vec![0u32; a.cols()];
    match a.structure() {
        MatrixStructure::Plain => {
            let mut row = vec![0; a.n()];
            for (column, word) in out.iter_mut().enumerate() {
                a.row_into(column, &mut row);
                *word = inner_product(&row, secret.words()).wrapping_neg();
            }
        }
        MatrixStructure::Ring { .. } => super::ring_mask::ring_mask_into(a, secret.words(), &mut out),
    }
    out
}

/// `<x, y> mod 2^32`.
pub(super) fn inner_product(x: &[u32], y: &[u32]) -> u32 {
    x.iter().zip(y).fold(0u32, |sum, (x, y)| sum.wrapping_add(x.wrapping_mul(*y)))
}
