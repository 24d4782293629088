//! Noise of an LWE look-up: standard deviations as formulas, and the failure probability that follows.
//!
//! The unit is one step of the message space (Delta = 2^24), called LSB; decoding a byte fails when the error
//! reaches 0.5 LSB. The database is taken as adversarial: every byte -128.

use super::{
    Widths,
    lwe::{LweParams, MESSAGE_BITS},
};

/// The limit of the failure probability, as log2: an honest answer decodes wrongly at most this often. An answer is all that one
/// look-up decodes. Tables that would fail more often are refused. After 2^20 look-ups one has failed with probability 2^-44.
pub const MAX_LOG2_FAILURE: f64 = -64.0;

/// Standard deviation of rounding a word modulo 2^32 to its top `bits` bits, in units of 1.
pub fn rounding_std(bits: u32) -> f64 {
    if bits >= 32 { 0.0 } else { 2f64.powi(32 - bits as i32) / 12f64.sqrt() }
}

/// The error of one decoded byte, by source, each a standard deviation in LSB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LweNoise {
    /// `sqrt(sigma^2 + query rounding^2) * 128 * sqrt(D0)`: the query's error through the fold.
    pub fold: f64,
    /// `hint rounding * secret std * sqrt(n)`: the rounded hint times the secret.
    pub hint: f64,
    /// The rounding of the answer itself.
    pub answer: f64,
}

impl LweNoise {
    /// Noise of a look-up over `cols` columns (D0) with words that travel at `widths`.
    ///
    /// Source: SimplePIR section 4, VIPIR appendix D.2 (rounded words); standard deviations in place of tail bounds.
    pub fn new(params: &LweParams, cols: usize, widths: Widths) -> Self {
        let lsb = 2f64.powi(32 - MESSAGE_BITS as i32);
        let query = quadrature([params.error_std(), rounding_std(widths.query)]);
        let fold = query * 128.0 * (cols as f64).sqrt() / lsb;
        let hint = rounding_std(widths.hint) * params.secret_std() * (params.n() as f64).sqrt() / lsb;
        Self { fold, hint, answer: rounding_std(widths.answer) / lsb }
    }

    /// Standard deviation of the whole error, in LSB.
    pub fn std(&self) -> f64 {
        quadrature([self.fold, self.hint, self.answer])
    }

    /// The limit of 0.5 LSB in standard deviations.
    pub fn sigmas(&self) -> f64 {
        0.5 / self.std()
    }

    /// log2 of the probability (union bound) that any of `values` decoded bytes is wrong.
    pub fn log2_failure(&self, values: usize) -> f64 {
        if self.std() == 0.0 {
            return f64::NEG_INFINITY;
        }
        (log2_erfc(self.sigmas() / 2f64.sqrt()) + (values as f64).log2()).min(0.0)
    }
}

/// Standard deviation of a sum of independent errors. Not by `hypot`: glibc has a new version of that name since 2.35, which alone
/// would keep the program from machines with an older one. Squares are far from the ends of the range that it guards.
pub(super) fn quadrature<const N: usize>(stds: [f64; N]) -> f64 {
    stds.iter().map(|std| std * std).sum::<f64>().sqrt()
}

/// log2 erfc(x) for x >= 0, by the bound `exp(-x^2) / (x sqrt(pi))`, which is above it, and at most 0.
pub(super) fn log2_erfc(x: f64) -> f64 {
    let ln = -x * x - (x * std::f64::consts::PI.sqrt()).ln();
    (ln / std::f64::consts::LN_2).min(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{DEFAULT_LWE, ParameterSet};

    #[test]
    fn the_papers_sets_decrypt() {
        for (name, cols) in [("FRODOPIR_N1774_TERNARY", 1 << 20), ("SIMPLEPIR_N1024_STD6_4_SEC121", 1 << 16)]
        {
            let p = LweParams::named(name).unwrap();
            assert!(LweNoise::new(&p, cols, Widths::FULL).log2_failure(4096) < MAX_LOG2_FAILURE, "{name}");
        }
        let wide = LweNoise::new(&DEFAULT_LWE, 1 << 30, Widths::FULL);
        assert!(wide.log2_failure(1) > MAX_LOG2_FAILURE, "a billion columns must be refused");
    }

    #[test]
    fn erfc_bound_matches_known_values() {
        // erfc(2) = 0.004678, erfc(5) = 1.537e-12
        assert!((log2_erfc(2.0) - 0.004678f64.log2()).abs() < 0.2);
        assert!((log2_erfc(5.0) - 1.537e-12f64.log2()).abs() < 0.05);
    }
}
