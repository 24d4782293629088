//! Noise of the ring protocols: variances as formulas, step by step, and the failure probability that follows.
//!
//! The database is taken as uniform modulo t, which whitening makes it. Variances are averages over the coefficients,
//! in units of 1 modulo the modulus of the step. The formulas are those of `docs/protocols/onion.md`; tests of the
//! reference backend measure every one of them.

use hush_math::gadget::Gadget;

use super::{RingParams, noise::log2_erfc, ring::RLWE_ERROR_STD};

/// Variance of a coefficient of a ternary secret.
const SECRET_VARIANCE: f64 = 2.0 / 3.0;

/// Variances after each step of a look-up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RingNoise {
    /// A leaf of the expansion, modulo Q_e.
    pub leaf: f64,
    /// A selector, and a top row of an RGSW ciphertext: the leaf after the drop.
    pub selector: f64,
    /// A bottom row of an RGSW ciphertext after the drop: error relative to `m g s`.
    pub bottom: f64,
    /// After the first dimension.
    pub first: f64,
    /// What one fold adds.
    pub fold: f64,
    /// After all folds.
    pub folded: f64,
    /// What pair packing adds.
    pub pack: f64,
    /// All of it with the rounding of a in the response, in steps of the plaintext (LSB).
    pub response: f64,
    /// Largest error from rounding b in the response, in LSB.
    pub response_bound: f64,
}

impl RingNoise {
    /// The noise of a look-up over `rows` rows (D0) and `folds` folds, packed as a pair.
    pub fn new(params: &RingParams, rows: usize, folds: usize) -> Self {
        let n = params.degree() as f64;
        let per_secret = n * SECRET_VARIANCE;
        let per_square = per_secret.powi(2);
        let error = RLWE_ERROR_STD.powi(2);
        let key_error = error + rounding(params.key_dropped_bits());
        let dropped = f64::from(params.dropped_factor()).powi(2);
        let rescaled = |variance: f64| match params.dropped {
            None => variance,
            Some(_) => variance / dropped + (1.0 + per_secret) / 12.0,
        };
        // Every level doubles what it is given where it keeps it, and adds a key switch.
        let fresh = error + rounding(params.query_dropped_bits());
        let levels = params.levels().iter();
        let leaf =
            levels.fold(fresh, |leaf, gadget| 2.0 * leaf + key_switch(*gadget, n, key_error, per_secret));
        let selector = rescaled(leaf);
        let bottom =
            rescaled(leaf * per_secret + key_switch(params.square_gadget(), n, key_error, per_square));
        let symbol = 4f64.powi(params.plaintext_bits() as i32) / 12.0;
        let first = rows as f64 * n * symbol * selector;
        let gadget = params.fold_gadget();
        let digits = gadget.digits as f64 * n * digit(gadget);
        let fold = digits * (bottom + selector) + (1.0 + per_secret) * rounding(gadget.dropped);
        let folded = first + folds as f64 * fold;
        let pack_gadget = params.pack_gadget();
        // Two key switches share the a half, and each brings its error into both b halves.
        let pack = 2.0 * pack_gadget.digits as f64 * n * digit(pack_gadget) * key_error
            + per_secret * rounding(pack_gadget.dropped);
        let delta = (params.kept_primes().iter().map(|&p| f64::from(p)).product::<f64>())
            / 2f64.powi(params.plaintext_bits() as i32);
        let bits = params.response_bits();
        let lsb = |width: u32| 2f64.powi(params.plaintext_bits() as i32 - width as i32);
        let response = (folded + pack) / delta.powi(2) + per_secret / 12.0 * lsb(bits.a).powi(2);
        Self {
            leaf,
            selector,
            bottom,
            first,
            fold,
            folded,
            pack,
            response,
            response_bound: lsb(bits.b) / 2.0,
        }
    }

    /// Standard deviations between the error and the limit of decoding.
    pub fn sigmas(&self) -> f64 {
        (0.5 - self.response_bound) / self.response.sqrt()
    }

    /// log2 of the probability (union bound) that any of `symbols` decoded symbols is wrong.
    pub fn log2_failure(&self, symbols: usize) -> f64 {
        if self.response_bound >= 0.5 {
            return 0.0;
        }
        (log2_erfc(self.sigmas() / 2f64.sqrt()) + (symbols as f64).log2()).min(0.0)
    }
}

/// Variance of a key switch over a gadget: digits times the key's errors, and the rounded low bits times the old
/// secret, the sum of whose squares is `old`.
fn key_switch(gadget: Gadget, n: f64, key_error: f64, old: f64) -> f64 {
    gadget.digits as f64 * n * digit(gadget) * key_error + old * rounding(gadget.dropped)
}

/// Variance of a balanced digit.
fn digit(gadget: Gadget) -> f64 {
    4f64.powi(gadget.width as i32) / 12.0
}

/// Variance of rounding the low `bits` bits away.
fn rounding(bits: u32) -> f64 {
    if bits == 0 { 0.0 } else { 4f64.powi(bits as i32) / 12.0 }
}
