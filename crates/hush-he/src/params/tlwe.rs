//! TLWE queries: words that private key switching turns into RLWE ciphertexts.

use hush_math::{gadget::Gadget, ring::Ring};

use super::{ErrorDistribution, LatticeProblem, SecretDistribution};
use crate::entities::MatrixStructure;

/// The shape of TLWE words `(a, b)` modulo `2^bits` under a secret t of n entries: `b = m + e - <a, t>`. Secret and errors have
/// the distributions of the ring set.
///
/// A key of `n digits` ciphertexts of `x_k t_i`, `x_k = round(Q_e g_k / 2^bits)`, turns a word into an RLWE ciphertext:
/// `sum a_ik key_ik + sum b_k x_k`. The digits hold all bits of a word, so nothing is rounded. Source: PPIR section 3.1,
/// algorithms 1 and 2 (TFHE's PrivKS).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tlwe {
    pub(super) n: usize,
    pub(super) bits: u32,
    /// The digits of a word: a divisor of `bits`.
    pub(super) digits: usize,
}

impl Tlwe {
    /// Returns the number of entries of the secret.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Returns log2 of the modulus.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns the number of ciphertexts of a key: `n digits`, the digits of an entry side by side.
    pub fn key_rows(&self) -> usize {
        self.n * self.digits
    }

    /// Returns the gadget by which a word is split into digits.
    pub fn gadget(&self) -> Gadget {
        Gadget::new(self.bits / self.digits as u32, self.digits, 0)
    }

    /// Returns the balanced digits of a word below `2^bits`, the lowest first; they add up to the word modulo `2^bits`.
    pub fn digits(&self, word: u32) -> impl Iterator<Item = i64> {
        let gadget = self.gadget();
        let unused = u32::BITS - self.bits;
        let centred = i128::from((word << unused) as i32 >> unused);
        (0..self.digits).map(move |k| i64::from(gadget.digit(centred, k)))
    }

    /// Returns x_k modulo `product`: the value of one unit of digit k.
    pub fn unit(&self, product: u128, k: usize) -> u128 {
        ((product << self.gadget().log2_factor(k)) + (1 << self.bits >> 1)) >> self.bits
    }

    /// Returns the value of a word modulo a prime of `ring`: the sum of its digits times their units.
    pub fn constant(&self, ring: &Ring, word: u32, limb: usize) -> u32 {
        let p = ring.moduli()[limb];
        let rns = ring.rns();
        (0..).zip(self.digits(word)).fold(0, |sum, (k, digit)| {
            let unit = rns.reduce(self.unit(rns.product(), k), limb);
            p.add(sum, p.mul(unit, p.reduce_signed(digit)))
        })
    }

    /// Returns the part of [`super::RingParams::key_context`] that describes this key.
    pub(super) fn key_context(&self) -> String {
        format!(
            "private key switching from {} entries modulo 2^{} by {} digits",
            self.n, self.bits, self.digits
        )
    }

    /// Returns the lattice problem of the words of a query.
    pub(super) fn problem(&self, secret: SecretDistribution, error_std: f64) -> LatticeProblem {
        LatticeProblem {
            n: self.n,
            modulus: 1 << self.bits,
            secret,
            error: ErrorDistribution::Gaussian(error_std),
            structure: MatrixStructure::Plain,
            max_samples: None,
        }
    }
}
