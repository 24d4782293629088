//! LWE encryption of a vector under a fresh secret.

use std::{hint::black_box, mem};

use hush_math::{
    constant_time::equal_mask,
    csprng::Csprng,
    samplers::{GaussianTable, sample_ternary},
};

use zeroize::Zeroizing;

use crate::{
    entities::{LweDecryptionKey, MatrixStructure, OneTimeLweSecret, PublicMatrix},
    params::{ErrorDistribution, LweParams},
};

/// Bits by which a message is scaled: Delta = 2^24.
const DELTA_BITS: u32 = 24;
/// The columns that are processed while they are in the L1 cache; at least the widest window of a key filter.
const BLOCK: usize = 1024;

/// The most entries of a message that is no window: of a few slots, which can be neighbours by chance.
const FEW: usize = 4;

/// Encrypts the vector that is `coeff` at each `(column, coeff)` of `message` and 0 elsewhere. Returns
/// `b = -A s + e + Delta * message mod 2^32`, `a.cols()` words, and the key that decrypts the answer.
///
/// Constant time in secret, error and message values: every column is visited for every entry of the message.
/// Source: SimplePIR (Henzinger et al.) section 4; FrodoPIR; sign convention `phase = b + <a, s>`.
///
/// # Panics
/// If a column of `message` is not below `a.cols()`, or the dimension of A is not that of `params`.
pub fn encrypt_lwe(
    params: &LweParams,
    a: &PublicMatrix,
    secret: OneTimeLweSecret,
    message: &[(u32, u8)],
    rng: &mut Csprng,
) -> (Vec<u32>, LweDecryptionKey) {
    PreparedLwe::new(params, a, secret, rng).encrypt(message)
}

/// An encryption of zero, `-A s + e`, made before the message is known. Good for one message: the words are wiped when dropped,
/// because anyone who has them reads the message from the query.
///
/// Source: FrodoPIR (Davidson, Pestana, Celi) section 4, client preprocessing; ChalametPIR appendix C.4.
pub struct PreparedLwe {
    words: Zeroizing<Vec<u32>>,
    key: LweDecryptionKey,
}

impl PreparedLwe {
    /// Encrypts zero under `secret`, with a word for every column of `a`.
    ///
    /// # Panics
    /// If the dimension of A is not that of `params`.
    pub fn new(params: &LweParams, a: &PublicMatrix, secret: OneTimeLweSecret, rng: &mut Csprng) -> Self {
        let words = Zeroizing::new(encrypt_zero(params, a, &secret, rng));
        Self { words, key: secret.into_decryption_key() }
    }

    /// Returns the key that decrypts the answer.
    pub fn key(&self) -> &LweDecryptionKey {
        &self.key
    }

    /// Adds `Delta * message`, as [`encrypt_lwe`] does. Returns the words of the query, and the key that decrypts the answer.
    ///
    /// # Panics
    /// If a column of `message` is not below the number of words.
    pub fn encrypt(mut self, message: &[(u32, u8)]) -> (Vec<u32>, LweDecryptionKey) {
        let mut words = mem::take(&mut *self.words);
        add_message(&mut words, message);
        (words, self.key)
    }
}

/// Encrypts vectors under one secret, as [`encrypt_lwe`] does, each with a matrix of its own domain. Together they
/// are the one use of the secret. Source: SimplePIR section 5 (DoublePIR); VIPIR section 3.4 (double-packing).
///
/// # Panics
/// If [`encrypt_lwe`] panics, or if two matrices have one domain: the difference of their vectors would leak.
pub(super) fn encrypt_lwe_vectors<const COUNT: usize>(
    params: &LweParams,
    secret: &OneTimeLweSecret,
    vectors: [(&PublicMatrix, &[(u32, u8)]); COUNT],
    rng: &mut Csprng,
) -> [Vec<u32>; COUNT] {
    for (index, (a, _)) in vectors.iter().enumerate() {
        assert!(
            vectors[..index].iter().all(|(other, _)| other.shape().domain() != a.shape().domain()),
            "independent matrices"
        );
    }
    vectors.map(|(a, message)| {
        let mut b = encrypt_zero(params, a, secret, rng);
        add_message(&mut b, message);
        b
    })
}

/// Returns `-A s + e`.
fn encrypt_zero(
    params: &LweParams,
    a: &PublicMatrix,
    secret: &OneTimeLweSecret,
    rng: &mut Csprng,
) -> Vec<u32> {
    assert_eq!(a.n(), params.n());
    let mut b = mask(a, secret);
    match params.error() {
        ErrorDistribution::None => {}
        ErrorDistribution::Gaussian(std) => GaussianTable::new(std).add_to(rng, &mut b),
        ErrorDistribution::Ternary => {
            let mut error = Zeroizing::new(vec![0; b.len()]);
            sample_ternary(rng, &mut error);
            b.iter_mut().zip(error.iter()).for_each(|(b, e)| *b = b.wrapping_add(*e));
        }
    }
    b
}

/// Adds `Delta * message` to `b`.
fn add_message(b: &mut [u32], message: &[(u32, u8)]) {
    let is_below = message.iter().map(|&(column, _)| (column as usize) < b.len()).fold(true, |a, b| a & b);
    assert!(is_below, "columns below {}", b.len());
    // The branch leaks nothing: the table alone determines whether so long a message is a window.
    let gap = |pair: &[(u32, u8)]| pair[1].0 ^ pair[0].0.wrapping_add(1);
    if (FEW + 1..=BLOCK).contains(&message.len()) && message.windows(2).map(gap).fold(0, |a, b| a | b) == 0 {
        return add_window(b, message);
    }
    for (index, block) in b.chunks_mut(BLOCK).enumerate() {
        for &(column, coeff) in message {
            let first = (index * BLOCK) as u32;
            for (offset, word) in block.iter_mut().enumerate() {
                *word = word.wrapping_add(scaled(coeff) & equal_mask(first + offset as u32, column));
            }
        }
    }
}

/// Adds a window of consecutive columns. It lies in at most two consecutive blocks, whose words are computed first. Every
/// block of `b` then adds them under a mask, so that a long window costs no more passes over `b` than a short one.
fn add_window(b: &mut [u32], window: &[(u32, u8)]) {
    let start = window[0].0;
    let mut words = Zeroizing::new([0u32; 2 * BLOCK]);
    for (position, &(_, coeff)) in (0u32..).zip(window) {
        let place = start % BLOCK as u32 + position;
        let value = black_box(scaled(coeff));
        for (offset, word) in (0u32..).zip(words.iter_mut()) {
            *word = word.wrapping_add(value & equal_mask(offset, place));
        }
    }
    let (head, tail) = words.split_at(BLOCK);
    for (index, block) in (0u32..).zip(b.chunks_mut(BLOCK)) {
        let in_head = black_box(equal_mask(index, start / BLOCK as u32));
        let in_tail = black_box(equal_mask(index, start / BLOCK as u32 + 1));
        for ((word, &head), &tail) in block.iter_mut().zip(head).zip(tail) {
            *word = word.wrapping_add((head & in_head) | (tail & in_tail));
        }
    }
}

/// Returns `Delta * coeff`.
fn scaled(coeff: u8) -> u32 {
    u32::from(coeff) << DELTA_BITS
}

/// Computes `-A s`.
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

/// Returns `<x, y> mod 2^32`.
pub(super) fn inner_product(x: &[u32], y: &[u32]) -> u32 {
    x.iter().zip(y).fold(0u32, |sum, (x, y)| sum.wrapping_add(x.wrapping_mul(*y)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_land_on_their_columns() {
        let window = |start: u32, length: u32| (0..length).map(|i| (start + i, (i * 7 + 1) as u8)).collect();
        let messages: [Vec<(u32, u8)>; 8] = [
            vec![],
            vec![(0, 1)],
            vec![(5, 200), (4099, 3), (17, 1)],
            window(0, 256),
            window(1000, 256),
            window(1024, 1024),
            window(4100 - 256, 256),
            window(2047, 2),
        ];
        for message in messages {
            let mut expected: Vec<u32> = (0..4100u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
            let mut b = expected.clone();
            for &(column, coeff) in &message {
                expected[column as usize] = expected[column as usize].wrapping_add(u32::from(coeff) << 24);
            }
            add_message(&mut b, &message);
            assert_eq!(b, expected);
        }
    }
}
