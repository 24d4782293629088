//! A candidate: its noise, its sizes, and its time by a model.

use hush_he::{
    codec::packed_bytes,
    params::{
        QUERY_SEED_BYTES, RLWE_ERROR_STD, ResponseBits, RingNoise, RingNoiseInputs, RingParams,
        SecretDistribution,
    },
};
use hush_math::gadget::Gadget;

use crate::moduli::{Moduli, bits_of};

/// Folds for which noise, queries and expansion are computed.
pub(crate) const FOLDS: usize = 12;
/// log2 of the failure probability of an answer of two planes: the house limit of -64 and a margin.
const MAX_LOG2_FAILURE: f64 = -69.0;
/// Standard deviations between the error after all folds and Delta / 2.
const MIN_SIGMAS: f64 = 12.0;
/// Model: nanoseconds of a transform per butterfly, with its share of digits and products around it.
const BUTTERFLY_NS: f64 = 0.22;
/// Model: bytes a nanosecond of the first dimension's scan, on one core.
const SCAN_RATE: f64 = 14.0;
/// Model: bytes of records in the table.
const PAYLOAD: f64 = (1u64 << 30) as f64;

/// A parameter set, and the rows of the table.
#[derive(Clone)]
pub(crate) struct Set {
    pub(crate) moduli: Moduli,
    pub(crate) rows: usize,
    pub(crate) plaintext_bits: u32,
    pub(crate) levels: Vec<Gadget>,
    pub(crate) square: Gadget,
    pub(crate) fold: Gadget,
    pub(crate) pack: Gadget,
    pub(crate) key_dropped_bits: u32,
    pub(crate) query_dropped_bits: u32,
    pub(crate) response: ResponseBits,
}

impl Set {
    pub(crate) fn of_preset(p: &RingParams) -> Self {
        let dropped = Some(p.dropped_factor()).filter(|&p| p > 1);
        Self {
            moduli: Moduli { degree: p.degree(), kept: p.kept_primes().to_vec(), dropped },
            rows: 256,
            plaintext_bits: p.plaintext_bits(),
            levels: p.levels().to_vec(),
            square: p.square_gadget(),
            fold: p.fold_gadget(),
            pack: p.pack_gadget(),
            key_dropped_bits: p.key_dropped_bits(),
            query_dropped_bits: p.query_dropped_bits(),
            response: p.response_bits(),
        }
    }

    pub(crate) fn noise(&self) -> RingNoise {
        let inputs = RingNoiseInputs {
            degree: self.moduli.degree,
            kept_product: self.moduli.kept_product() as f64,
            dropped_factor: self.moduli.dropped.unwrap_or(1),
            plaintext_bits: self.plaintext_bits,
            levels: &self.levels,
            square: self.square,
            fold: self.fold,
            pack: self.pack,
            key_dropped_bits: self.key_dropped_bits,
            selector_dropped_bits: self.query_dropped_bits,
            query_dropped_bits: self.query_dropped_bits,
            response: self.response,
            tlwe: None,
            secret: SecretDistribution::Ternary,
            error_std: RLWE_ERROR_STD,
        };
        RingNoise::from_inputs(&inputs, self.rows, FOLDS)
    }

    /// Standard deviations between the error after all folds and Delta / 2.
    pub(crate) fn sigmas(&self, noise: &RingNoise) -> f64 {
        self.moduli.kept_product() as f64 / 2f64.powi(self.plaintext_bits as i32 + 1) / noise.folded.sqrt()
    }

    pub(crate) fn leaves(&self) -> usize {
        self.rows + FOLDS * self.fold.digits
    }

    /// Returns the bytes of keys, as `RingParams::key_words_bytes` does.
    pub(crate) fn key_bytes(&self) -> usize {
        let poly = |product| packed_bytes(self.moduli.degree, bits_of(product) - self.key_dropped_bits);
        let switched: usize = self.levels.iter().chain([&self.square]).map(|gadget| gadget.digits).sum();
        switched * poly(self.moduli.full_product()) + 4 * self.pack.digits * poly(self.moduli.kept_product())
    }

    /// Returns the bytes of a query, as `RingParams::query_bytes` does.
    pub(crate) fn query_bytes(&self) -> usize {
        let bits = bits_of(self.moduli.full_product()) - self.query_dropped_bits;
        let words = |leaves: usize| packed_bytes(leaves * (self.moduli.degree >> self.levels.len()), bits);
        QUERY_SEED_BYTES + words(self.rows) + words(self.leaves() - self.rows)
    }

    /// Returns the bytes of a packed pair for a byte of its records.
    pub(crate) fn overhead(&self) -> f64 {
        f64::from(self.response.a + 2 * self.response.b) / f64::from(2 * self.plaintext_bits)
    }

    /// Transforms of one limb that expanding a query takes: the tree, the bottom rows, the drop.
    pub(crate) fn expand_transforms(&self) -> usize {
        let (limbs, kept, levels) = (self.moduli.limbs(), self.moduli.kept.len(), self.levels.len());
        let mut tree = 0;
        for (level, gadget) in self.levels.iter().enumerate() {
            let nodes = self.leaves().div_ceil(1 << (levels - level));
            tree += nodes * limbs * (1 + gadget.digits);
        }
        let tops = FOLDS * self.fold.digits;
        let bottom = tops * limbs * (1 + self.square.digits);
        let drop = self.moduli.dropped.map_or(0, |_| 2 * (self.rows + 2 * tops) * (1 + kept));
        tree + bottom + drop
    }

    /// Transforms of one limb that folding the entries of the table takes.
    pub(crate) fn fold_transforms(&self) -> f64 {
        let plaintext_bytes = (self.moduli.degree * self.plaintext_bits as usize / 8) as f64;
        let products = PAYLOAD / plaintext_bytes / self.rows as f64;
        products * (2 * self.moduli.kept.len() * (1 + self.fold.digits)) as f64
    }

    /// Returns the bytes that are scanned for a byte of records.
    fn expansion(&self) -> f64 {
        32.0 * self.moduli.kept.len() as f64 / f64::from(self.plaintext_bits)
    }

    /// Modelled milliseconds of one answer on one core: scan, expand, fold.
    pub(crate) fn millis(&self) -> [f64; 3] {
        let n = self.moduli.degree;
        let transform = BUTTERFLY_NS * (n / 2 * n.ilog2() as usize) as f64;
        let scan = PAYLOAD * self.expansion() / SCAN_RATE;
        [scan, self.expand_transforms() as f64 * transform, self.fold_transforms() * transform]
            .map(|ns| ns / 1e6)
    }

    pub(crate) fn cost(&self) -> f64 {
        self.millis().iter().sum()
    }

    /// Bits of the widest symbol that decodes: `first` is the variance of the first dimension for t = 1, `fold` that
    /// of a fold.
    pub(crate) fn widest_plaintext(&self, first: f64, fold: f64) -> Option<u32> {
        (4..=32).rev().find(|&bits| {
            let folded = first * 4f64.powi(bits as i32) + FOLDS as f64 * fold;
            self.moduli.kept_product() as f64 / 2f64.powi(bits as i32 + 1) >= MIN_SIGMAS * folded.sqrt()
        })
    }

    /// Returns the response of the fewest bits that keeps the failure probability.
    pub(crate) fn choose_response(&mut self) -> bool {
        let mut best = None;
        for b in self.plaintext_bits + 1..=self.plaintext_bits + 4 {
            for a in self.plaintext_bits + 7..=self.plaintext_bits + 12 {
                self.response = ResponseBits { a, b };
                if self.noise().log2_failure(2 * self.moduli.degree) <= MAX_LOG2_FAILURE {
                    best = best.into_iter().chain([(a + 2 * b, a, b)]).min();
                    break;
                }
            }
        }
        let Some((_, a, b)) = best else { return false };
        self.response = ResponseBits { a, b };
        true
    }
}
