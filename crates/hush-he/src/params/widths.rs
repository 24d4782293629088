//! The widths at which words travel: the narrowest that the noise allows.

use super::{lwe::LweParams, noise::LweNoise};

/// Bits of the words of a query, a hint and an answer on the wire (1..=32 each; hints 16 or more).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Widths {
    /// Bits of a query word.
    pub query: u32,
    /// Bits of a hint word.
    pub hint: u32,
    /// Bits of an answer word.
    pub answer: u32,
}

/// What a choice of widths is to be cheap for: words of each kind that travel, the hint's spread over the look-ups
/// of an epoch.
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
    /// Whole words.
    pub const FULL: Widths = Widths { query: 32, hint: 32, answer: 32 };
    /// Standard deviations of the error that every default keeps below the limit of decoding.
    pub const MIN_SIGMAS: f64 = 12.0;

    /// The widths with the least traffic that keep [`Widths::MIN_SIGMAS`] over `cols` columns (D0); whole words
    /// if none does, or if the set is one that travels whole. `hint_candidates` are the hint widths that the
    /// protocol can take.
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
    use crate::params::DEFAULT_LWE;

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
