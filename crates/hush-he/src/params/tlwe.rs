//! Queries of TLWE words, which private key switching turns into RLWE ciphertexts.

use super::{ErrorDistribution, LatticeProblem, RLWE_ERROR_STD, SecretDistribution};
use crate::entities::MatrixStructure;

/// Words `(a, b)` modulo `2^bits` under a ternary secret t of n entries, with errors of [`RLWE_ERROR_STD`]: `b = m + e - <a, t>`.
///
/// A word becomes RLWE by a key of n ciphertexts of `x t_i`, `x = round(Q_e / 2^bits)`: `sum_i a_i key_i + b x`, the digits a_i
/// being all of a word, so that nothing is rounded. Source: PPIR section 4, algorithms 1 and 2 (TFHE's PrivKS with several short
/// digits, on the torus).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tlwe {
    pub(super) n: usize,
    pub(super) bits: u32,
}

impl Tlwe {
    /// Entries of the secret.
    pub fn n(&self) -> usize {
        self.n
    }

    /// log2 of the modulus.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// A word below `2^bits`, centred.
    pub fn centred(&self, word: u32) -> i64 {
        let unused = u32::BITS - self.bits;
        i64::from((word << unused) as i32 >> unused)
    }

    /// What a word is worth modulo `product`: x.
    pub fn unit(&self, product: u128) -> u128 {
        (product + (1 << self.bits >> 1)) >> self.bits
    }

    /// What the key depends on.
    pub(super) fn key_context(&self) -> String {
        format!("private key switching from {} entries modulo 2^{}", self.n, self.bits)
    }

    /// The lattice problem of the words.
    pub(super) fn problem(&self) -> LatticeProblem {
        LatticeProblem {
            n: self.n,
            modulus: 1 << self.bits,
            secret: SecretDistribution::Ternary,
            error: ErrorDistribution::Gaussian(RLWE_ERROR_STD),
            structure: MatrixStructure::Plain,
            max_samples: None,
        }
    }
}
