//! Noise of the ring protocols: variances as formulas, step by step, and the failure probability that follows.
//!
//! The database is taken as uniform modulo t, which whitening ensures. Variances are averages over the coefficients,
//! in units of 1 modulo the modulus of the step. The formulas are those of `docs/explanation/protocols/onion.md`; tests of the
//! reference backend measure every one of them.

use hush_math::gadget::Gadget;

use super::ResponseBits;
use crate::params::{RingParams, RingSwitch, SecretDistribution, Tlwe, noise::log2_erfc};

/// The values that the noise of a parameter set depends on. They come from a preset ([`RingParams::noise_inputs`]), or
/// from a candidate of a search (`examples/search_ring/`). Protocols use presets only.
#[derive(Clone, Copy, Debug)]
pub struct RingNoiseInputs<'a> {
    /// Ring degree N.
    pub degree: usize,
    /// Product Q_1 of the kept primes.
    pub kept_product: f64,
    /// The dropped prime P, or 1.
    pub dropped_factor: u32,
    /// The bits of a symbol: log2 of the plaintext modulus.
    pub plaintext_bits: u32,
    /// The gadget of each level of the expansion, the first level first.
    pub levels: &'a [Gadget],
    /// The gadget of the key for s^2.
    pub square: Gadget,
    /// The gadget of external products, modulo Q_1.
    pub fold: Gadget,
    /// The gadget of the pair packing, modulo Q_1.
    pub pack: Gadget,
    /// The number of low bits that evaluation keys are sent without.
    pub key_dropped_bits: u32,
    /// The number of low bits that selectors are sent without.
    pub selector_dropped_bits: u32,
    /// The number of low bits that fold bits are sent without.
    pub query_dropped_bits: u32,
    /// The bits of the coefficients of an answer.
    pub response: ResponseBits,
    /// The shape of a query's TLWE words; `None` if queries are packed.
    pub tlwe: Option<Tlwe>,
    /// The distribution of the secrets.
    pub secret: SecretDistribution,
    /// The standard deviation of errors.
    pub error_std: f64,
}

/// Variances after each step of a look-up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RingNoise {
    /// The variance of a leaf of the expansion that becomes a selector, modulo Q_e.
    pub leaf: f64,
    /// The variance of a selector: the leaf after the drop.
    pub selector: f64,
    /// The variance of a top row of an RGSW ciphertext: its leaf after the drop.
    pub top: f64,
    /// The variance of a bottom row of an RGSW ciphertext after the drop: the error relative to `m g s`.
    pub bottom: f64,
    /// The variance after the first dimension.
    pub first: f64,
    /// The variance that one fold adds.
    pub fold: f64,
    /// The variance after all folds.
    pub folded: f64,
    /// The variance that pair packing adds.
    pub pack: f64,
    /// The whole variance, with the rounding of a in the response, in steps of the plaintext (LSB).
    pub response: f64,
    /// The largest error from rounding b in the response, in LSB.
    pub response_bound: f64,
}

impl RingNoise {
    /// Computes the noise of a look-up over `rows` rows (D0) and `folds` folds, packed as a pair.
    ///
    /// Source: OnionPIRv2 section 2.2, with the variance of every step in place of orders of growth.
    pub fn new(params: &RingParams, rows: usize, folds: usize) -> Self {
        Self::from_inputs(&params.noise_inputs(), rows, folds)
    }

    /// Computes the noise as [`RingNoise::new`] does, for a set that need not be a preset.
    pub fn from_inputs(set: &RingNoiseInputs, rows: usize, folds: usize) -> Self {
        let n = set.degree as f64;
        let secret = set.secret.mean_square();
        let per_secret = n * secret;
        // The coefficients of s^2 come in equal pairs: E|s(zeta)|^4 = 2 (E|s(zeta)|^2)^2.
        let per_square = 2.0 * per_secret.powi(2);
        let error = set.error_std.powi(2);
        let key_error = error + rounding(set.key_dropped_bits);
        let dropped = f64::from(set.dropped_factor).powi(2);
        let rescaled = |variance: f64| match set.dropped_factor {
            1 => variance,
            _ => variance / dropped + (1.0 + per_secret) / 12.0,
        };
        // Every level doubles the error of a kept leaf and adds a key switch. The server divides the query by 2^h.
        let leaf = |dropped_bits: u32| {
            let fresh = (error + rounding(dropped_bits)) / 4f64.powi(set.levels.len() as i32);
            set.levels.iter().fold(fresh, |leaf, gadget: &Gadget| {
                2.0 * leaf + key_switch(*gadget, n, key_error, per_secret)
            })
        };
        let (leaf, row, below) = match set.tlwe {
            None => {
                let row = leaf(set.query_dropped_bits);
                let below = row * per_secret + key_switch(set.square, n, key_error, per_square);
                (leaf(set.selector_dropped_bits), row, below)
            }
            // All coefficients have the key's errors times digits. One coefficient also has the word's own error, the rounding of
            // the message, and the digits times the rounding of their units.
            Some(tlwe) => {
                let full = set.kept_product * f64::from(set.dropped_factor);
                let entries = tlwe.n as f64;
                let gadget = tlwe.gadget();
                let unit = |k: usize| full * 2f64.powi(gadget.log2_factor(k) as i32 - tlwe.bits as i32);
                let inexact: f64 = (0..gadget.digits).map(|k| (unit(k).round() - unit(k)).powi(2)).sum();
                let switched = entries * gadget.digits as f64 * digit(gadget) * key_error;
                let units = (entries * secret + 1.0) * digit(gadget) * inexact;
                let own = unit(0).powi(2) * (error + 1.0 / 12.0) + units;
                (switched + own / n, switched + own / n, switched + own * secret)
            }
        };
        let selector = rescaled(leaf);
        let top = rescaled(row);
        let bottom = rescaled(below);
        let symbol = 4f64.powi(set.plaintext_bits as i32) / 12.0;
        let first = rows as f64 * n * symbol * selector;
        let digits = set.fold.digits as f64 * n * digit(set.fold);
        let fold = digits * (bottom + top) + (1.0 + per_secret) * rounding(set.fold.dropped);
        let folded = first + folds as f64 * fold;
        // Two key switches share the half a, and each adds its error to both halves b.
        let pack = 2.0 * set.pack.digits as f64 * n * digit(set.pack) * key_error
            + per_secret * rounding(set.pack.dropped);
        let delta = set.kept_product / 2f64.powi(set.plaintext_bits as i32);
        let lsb = |width: u32| 2f64.powi(set.plaintext_bits as i32 - width as i32);
        let response = (folded + pack) / delta.powi(2) + per_secret / 12.0 * lsb(set.response.a).powi(2);
        Self {
            leaf,
            selector,
            top,
            bottom,
            first,
            fold,
            folded,
            pack,
            response,
            response_bound: lsb(set.response.b) / 2.0,
        }
    }

    /// Computes the noise of an answer that is switched to the small ring: only the fields of the response differ.
    pub fn ring_switched(self, params: &RingParams, switch: &RingSwitch) -> Self {
        let set = params.noise_inputs();
        let gadget = switch.gadget();
        let n = set.degree as f64;
        let small = switch.degree() as f64;
        let t = 2f64.powi(set.plaintext_bits as i32);
        // N / degree polynomials are switched; then `rank` secrets are multiplied by the rounded halves a. All terms are in LSB.
        let secret = set.secret.mean_square();
        let switched = key_switch(gadget, n, set.error_std.powi(2), n * secret);
        let rescaled = (1.0 + n * secret) / 12.0;
        let lsb = |width: u32| t / 2f64.powi(width as i32);
        let rounded = switch.rank() as f64 * small * secret / 12.0;
        let response = self.folded / (set.kept_product / t).powi(2)
            + (switched + rescaled) / (switch.modulus() as f64 / t).powi(2)
            + rounded * lsb(switch.response_bits().a).powi(2);
        Self { response, response_bound: lsb(switch.response_bits().b) / 2.0, ..self }
    }

    /// Returns the number of standard deviations between the error and the limit of decoding.
    pub fn sigmas(&self) -> f64 {
        (0.5 - self.response_bound) / self.response.sqrt()
    }

    /// Returns log2 of the probability (union bound) that any of `symbols` decoded symbols is wrong.
    pub fn log2_failure(&self, symbols: usize) -> f64 {
        if self.response_bound >= 0.5 {
            return 0.0;
        }
        (log2_erfc(self.sigmas() / 2f64.sqrt()) + (symbols as f64).log2()).min(0.0)
    }
}

/// Returns the variance of a key switch over a gadget: digits times the key's errors, and the rounded low bits times the old
/// secret, whose squared coefficients sum to `old`.
fn key_switch(gadget: Gadget, n: f64, key_error: f64, old: f64) -> f64 {
    gadget.digits as f64 * n * digit(gadget) * key_error + old * rounding(gadget.dropped)
}

/// Returns the variance of a balanced digit.
fn digit(gadget: Gadget) -> f64 {
    4f64.powi(gadget.width as i32) / 12.0
}

/// Returns the variance of rounding the low `bits` bits away.
fn rounding(bits: u32) -> f64 {
    if bits == 0 { 0.0 } else { 4f64.powi(bits as i32) / 12.0 }
}
