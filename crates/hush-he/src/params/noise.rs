//! Noise of an LWE look-up: standard deviations as formulas, the failure probability that follows, and the narrowest
//! widths of words on the wire that the noise allows.
//!
//! The unit is one step of the message space (Delta = 2^24), called LSB; decoding a byte fails when the error
//! reaches 0.5 LSB. The formulas assume the worst database: every byte is -128.

use super::lwe::{LweParams, MESSAGE_BITS};

/// The largest failure probability, as log2: an honest answer decodes wrongly at most this often. An answer is all that one
/// look-up decodes. Tables that would fail more often are refused. Over 2^20 look-ups, the probability of any failure is 2^-44.
pub const MAX_LOG2_FAILURE: f64 = -64.0;

/// Returns the standard deviation of rounding a word modulo 2^32 to its top `bits` bits, in units of 1.
pub fn rounding_std(bits: u32) -> f64 {
    if bits >= 32 { 0.0 } else { 2f64.powi(32 - bits as i32) / 12f64.sqrt() }
}

/// The error of one decoded byte, by source, each a standard deviation in LSB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LweNoise {
    /// The query's error after the fold: `sqrt(sigma^2 + query rounding^2) * 128 * sqrt(D0)`.
    pub fold: f64,
    /// The rounding of the hint times the secret: `hint rounding * secret std * sqrt(n)`.
    pub hint: f64,
    /// The rounding of the answer itself.
    pub answer: f64,
}

impl LweNoise {
    /// Computes the noise of a look-up over `cols` columns (D0) with words that travel at `widths`.
    ///
    /// Source: SimplePIR section 4, VIPIR appendix D.2 (rounded words); standard deviations in place of tail bounds.
    pub fn new(params: &LweParams, cols: usize, widths: Widths) -> Self {
        let lsb = 2f64.powi(32 - MESSAGE_BITS as i32);
        let query = quadrature([params.error_std(), rounding_std(widths.query)]);
        let fold = query * 128.0 * (cols as f64).sqrt() / lsb;
        let hint = rounding_std(widths.hint) * params.secret_std() * (params.n() as f64).sqrt() / lsb;
        Self { fold, hint, answer: rounding_std(widths.answer) / lsb }
    }

    /// Returns the standard deviation of the whole error, in LSB.
    pub fn std(&self) -> f64 {
        quadrature([self.fold, self.hint, self.answer])
    }

    /// Returns the number of standard deviations in the limit of 0.5 LSB.
    pub fn sigmas(&self) -> f64 {
        0.5 / self.std()
    }

    /// Returns log2 of the probability (union bound) that any of `values` decoded bytes is wrong.
    pub fn log2_failure(&self, values: usize) -> f64 {
        if self.std() == 0.0 {
            return f64::NEG_INFINITY;
        }
        (log2_erfc(self.sigmas() / 2f64.sqrt()) + (values as f64).log2()).min(0.0)
    }
}

/// Returns the standard deviation of a sum of independent errors. It does not call `hypot`, of which glibc 2.35 has a new symbol
/// version: the program would not start with an older glibc. `hypot` guards against overflow, which squares here never reach.
pub(super) fn quadrature<const N: usize>(stds: [f64; N]) -> f64 {
    stds.iter().map(|std| std * std).sum::<f64>().sqrt()
}

/// Returns at least log2 erfc(x) for x >= 0, and at most 0: the logarithm of the upper bound `exp(-x^2) / (x sqrt(pi))`.
pub(super) fn log2_erfc(x: f64) -> f64 {
    let ln = -x * x - (x * std::f64::consts::PI.sqrt()).ln();
    (ln / std::f64::consts::LN_2).min(0.0)
}

/// The bits of the words of a query, a hint and an answer on the wire (1..=32 each; hints 16 or more).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Widths {
    /// Bits of a query word.
    pub query: u32,
    /// Bits of a hint word.
    pub hint: u32,
    /// Bits of an answer word.
    pub answer: u32,
}

/// The traffic that [`Widths::choose`] minimises: the number of words of each kind that a look-up takes. The words of the
/// hint are spread over the look-ups of an epoch.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    /// Words of a query.
    pub query: f64,
    /// Words of the hint for each look-up.
    pub hint: f64,
    /// Words of an answer.
    pub answer: f64,
}

impl Widths {
    /// The widths at which every word travels whole: 32 bits.
    pub const FULL: Widths = Widths { query: 32, hint: 32, answer: 32 };
    /// The distance from the error to the limit of decoding that every default keeps, in standard deviations.
    pub const MIN_SIGMAS: f64 = 12.0;

    /// Returns the widths with the least traffic that keep [`Widths::MIN_SIGMAS`] over `cols` columns (D0). Returns
    /// [`Widths::FULL`] if none does, or if the set always has full words. `hint_candidates` are the hint widths that the
    /// protocol supports.
    pub fn choose(lwe: &LweParams, cols: usize, traffic: Traffic, hint_candidates: &[u32]) -> Widths {
        if lwe.full_words() {
            return Widths::FULL;
        }
        let cost = |w: &Widths| {
            traffic.query * f64::from(w.query)
                + traffic.hint * f64::from(w.hint)
                + traffic.answer * f64::from(w.answer)
        };
        let mut best = Widths::FULL;
        for &hint in hint_candidates {
            for query in 24..=32 {
                for answer in 10..=32 {
                    let widths = Widths { query, hint, answer };
                    let enough = LweNoise::new(lwe, cols, widths).sigmas() >= Widths::MIN_SIGMAS;
                    if enough && cost(&widths) < cost(&best) {
                        best = widths;
                    }
                }
            }
        }
        best
    }
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

    #[test]
    fn the_default_keeps_twelve_sigma_and_saves_bytes() {
        for (log_cols, hint) in [(10, 100.0), (16, 30_000.0), (20, 10.0)] {
            let cols = 1 << log_cols;
            let traffic = Traffic { query: cols as f64, hint, answer: 1000.0 };
            let widths = Widths::choose(&DEFAULT_LWE, cols, traffic, &[16, 18, 20, 24, 32]);
            let noise = LweNoise::new(&DEFAULT_LWE, cols, widths);
            assert!(noise.sigmas() >= 12.0 && noise.log2_failure(1 << 16) < -80.0);
            assert!(widths.query < 31 && widths.hint <= 24 && widths.answer <= 16, "{widths:?}");
        }
    }
}
