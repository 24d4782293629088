//! An RLWE parameter set of the protocols over rings.
//!
//! * [`context`]: a set with its rings. [`presets`]: the sets by name.
//! * [`noise`]: the noise of an answer. [`switch`]: how an answer leaves a large ring for a small one.

pub(super) mod context;
pub(super) mod noise;
pub(super) mod presets;
pub(super) mod switch;

use std::ops::Range;

use hush_math::{gadget::Gadget, ring::Ring};

use super::{ErrorDistribution, LatticeProblem, RingNoiseInputs, RingSwitch, SecretDistribution, Tlwe};
use crate::{codec::packed_bytes, entities::MatrixStructure};

/// The bytes of the seed of a query's mask: enough that no two queries of a client share a mask.
pub const QUERY_SEED_BYTES: usize = 16;

/// The bytes of the seed of all masks of evaluation keys.
pub const RING_SEED_BYTES: usize = 32;

/// The largest number of TLWE words in a query.
const MAX_TLWE_LEAVES: usize = 1 << 12;

/// The standard deviation of RLWE errors in all sets except those that reproduce a paper's.
pub const RLWE_ERROR_STD: f64 = 3.2;

/// The bits of a coefficient of an answer, after its modulus was switched to powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseBits {
    /// The bits of the half that is multiplied by the secret.
    pub a: u32,
    /// The bits of the half that carries the message.
    pub b: u32,
}

/// An RLWE set: ring degree N, small secrets and errors.
///
/// A query is expanded modulo Q_e, the product of the kept primes and the dropped one. Then the prime P is dropped, and
/// everything else happens modulo Q_1, the product of the kept primes (`docs/explanation/protocols/onion.md`).
///
/// The only way to obtain a set is to take a preset ([`super::ParameterSet::named`]), so a set that a peer names is always
/// one that this program knows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RingParams {
    pub(super) name: &'static str,
    pub(super) security_bits: f64,
    pub(super) degree: usize,
    pub(super) kept: &'static [u32],
    pub(super) dropped: Option<u32>,
    pub(super) plaintext_bits: u32,
    /// The gadget of each level of the expansion, the first level first.
    pub(super) levels: &'static [Gadget],
    pub(super) square: Gadget,
    pub(super) fold: Gadget,
    pub(super) pack: Gadget,
    pub(super) key_dropped_bits: u32,
    pub(super) selector_dropped_bits: u32,
    pub(super) query_dropped_bits: u32,
    pub(super) response: ResponseBits,
    /// The ring switch of answers of short records; `None` if they are not switched.
    pub(super) switch: Option<RingSwitch>,
    /// The shape of a query's TLWE words, for private key switching; `None` if queries are packed.
    pub(super) tlwe: Option<Tlwe>,
    /// Whether queries travel as both halves in whole words, as in a paper, instead of a seed and the needed coefficients of b.
    pub(super) whole_query: bool,
    /// The distribution of the secrets. With [`SecretDistribution::Zero`] errors are zero too: only for tests without encryption.
    pub(super) secret: SecretDistribution,
    /// The standard deviation of errors.
    pub(super) error_std: f64,
}

impl RingParams {
    /// Returns the name of the preset.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the security in bits (lattice-estimator, MATZOV; see SECURITY.md).
    pub fn security_bits(&self) -> f64 {
        self.security_bits
    }

    /// Returns whether secrets and errors are zero: only for tests without encryption.
    pub fn is_plain(&self) -> bool {
        self.secret == SecretDistribution::Zero
    }

    /// Returns the distribution of the secrets.
    pub fn secret(&self) -> SecretDistribution {
        self.secret
    }

    /// Returns the standard deviation of the errors of queries and evaluation keys.
    pub fn error_std(&self) -> f64 {
        self.error_std
    }

    /// Returns the ring degree N.
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// Returns the number of kept primes.
    pub fn kept_limbs(&self) -> usize {
        self.kept.len()
    }

    /// Returns the kept primes.
    pub fn kept_primes(&self) -> &'static [u32] {
        self.kept
    }

    /// Returns the dropped prime P, or 1.
    pub fn dropped_factor(&self) -> u32 {
        self.dropped.unwrap_or(1)
    }

    /// Returns R modulo Q_e: the kept primes, then the dropped one.
    pub fn full_ring(&self) -> Ring {
        Ring::new(self.degree, &[self.kept, self.dropped.as_slice()].concat())
    }

    /// Returns R modulo Q_1.
    pub fn kept_ring(&self) -> Ring {
        Ring::new(self.degree, self.kept)
    }

    /// Returns log2 of the plaintext modulus t = 2^k: the bits of a symbol.
    pub fn plaintext_bits(&self) -> u32 {
        self.plaintext_bits
    }

    /// Returns the bytes of a plaintext: N symbols.
    pub fn plaintext_bytes(&self) -> usize {
        self.degree * self.plaintext_bits as usize / 8
    }

    /// Returns the gadget of each level of the expansion tree. At most log2 N.
    pub fn levels(&self) -> &'static [Gadget] {
        self.levels
    }

    /// Returns the largest number of leaves of the expansion tree, or of TLWE words in a query.
    pub fn max_leaves(&self) -> usize {
        if self.tlwe.is_some() { MAX_TLWE_LEAVES } else { 1 << self.levels.len() }
    }

    /// Returns the exponent k of the automorphism X -> X^k at `level`: N / 2^level + 1. Source: OnionPIRv2 algorithm 2, extended
    /// to fewer leaves than N (`docs/explanation/protocols/onion.md`).
    pub fn level_exponent(&self, level: usize) -> usize {
        (self.degree >> level) + 1
    }

    /// Returns the gadget of the key for s^2.
    pub fn square_gadget(&self) -> Gadget {
        self.square
    }

    /// Returns the gadget of external products, modulo Q_1.
    pub fn fold_gadget(&self) -> Gadget {
        self.fold
    }

    /// Returns whether two plaintexts share an answer of three polynomials.
    pub fn packs_pairs(&self) -> bool {
        self.pack.digits > 0
    }

    /// Returns the gadget of the pair packing, modulo Q_1; [`Gadget::NONE`] if there is none.
    pub fn pack_gadget(&self) -> Gadget {
        self.pack
    }

    /// Returns the number of low bits that evaluation keys are sent without.
    pub fn key_dropped_bits(&self) -> u32 {
        self.key_dropped_bits
    }

    /// Returns the number of low bits that the selectors of a query are sent without.
    pub fn selector_dropped_bits(&self) -> u32 {
        self.selector_dropped_bits
    }

    /// Returns the number of low bits that the fold bits of a query are sent without.
    pub fn query_dropped_bits(&self) -> u32 {
        self.query_dropped_bits
    }

    /// Returns how answers of short records are switched to a small ring; `None` if they are not.
    pub fn switch(&self) -> Option<&RingSwitch> {
        self.switch.as_ref()
    }

    /// Returns the bits of the coefficients of an answer.
    pub fn response_bits(&self) -> ResponseBits {
        self.response
    }

    /// Returns the shape of a query's TLWE words; `None` if queries are packed.
    pub fn tlwe(&self) -> Option<&Tlwe> {
        self.tlwe.as_ref()
    }

    /// Returns the string from which, with a seed, secrets and evaluation keys are derived. It holds everything that they
    /// depend on, and nothing else. If a set changes under its old name, or the order of the rows changes, the string must
    /// change, so that masks and errors are not reused.
    pub fn key_context(&self) -> String {
        const ROWS: u32 = 1;
        let gadget = |gadget: &Gadget| format!("{},{},{}", gadget.width, gadget.digits, gadget.dropped);
        let levels: Vec<String> = self.levels.iter().map(gadget).collect();
        let switch = self.switch.map_or_else(String::new, |switch| format!("; {}", switch.key_context()));
        let tlwe = self.tlwe.map_or_else(String::new, |tlwe| format!("; {}", tlwe.key_context()));
        format!(
            "{}; degree {}; kept {:?}; dropped {}; levels {}; square {}; pack {}; key bits dropped {}; error {}; {} secrets; \
             order of rows {ROWS}{switch}{tlwe}",
            self.name,
            self.degree,
            self.kept,
            self.dropped_factor(),
            levels.join(" "),
            gadget(&self.square),
            gadget(&self.pack),
            self.key_dropped_bits,
            self.error_std,
            self.secret.name(),
        )
    }

    /// Returns the bits of Q_e.
    pub fn full_bits(&self) -> u32 {
        product_bits(self.kept.iter().chain(&self.dropped))
    }

    /// Returns the bits of Q_1.
    pub fn kept_bits(&self) -> u32 {
        product_bits(self.kept)
    }

    /// Returns the values that the noise depends on.
    pub fn noise_inputs(&self) -> RingNoiseInputs<'_> {
        RingNoiseInputs {
            degree: self.degree,
            kept_product: self.kept.iter().map(|&p| f64::from(p)).product(),
            dropped_factor: self.dropped_factor(),
            plaintext_bits: self.plaintext_bits,
            levels: self.levels,
            square: self.square,
            fold: self.fold,
            pack: self.pack,
            key_dropped_bits: self.key_dropped_bits,
            selector_dropped_bits: self.selector_dropped_bits,
            query_dropped_bits: self.query_dropped_bits,
            response: self.response,
            tlwe: self.tlwe,
            secret: self.secret,
            error_std: self.error_std,
        }
    }

    /// Returns whether queries travel as both halves in whole words, as in the set's paper.
    pub fn whole_query(&self) -> bool {
        self.whole_query
    }

    /// Returns the exact bytes of a query over `rows` rows and `folds` folds: the seed, the words of the selectors, then those
    /// of the fold bits; or both halves of a whole query.
    pub fn query_bytes(&self, rows: usize, folds: usize) -> usize {
        if let Some(tlwe) = self.tlwe {
            return QUERY_SEED_BYTES + packed_bytes(self.leaves(rows, folds), tlwe.bits);
        }
        if self.whole_query {
            return 2 * size_of::<u32>() * self.degree * (self.kept.len() + self.dropped.iter().len());
        }
        let words = |leaves, dropped| packed_bytes(self.query_words(leaves), self.full_bits() - dropped);
        let bits = words(folds * self.fold.digits, self.query_dropped_bits);
        QUERY_SEED_BYTES + words(rows, self.selector_dropped_bits) + bits
    }

    /// Returns the exact bytes of the halves of the evaluation keys that carry messages.
    pub fn key_words_bytes(&self) -> usize {
        let poly = |bits: u32| packed_bytes(self.degree, bits - self.key_dropped_bits);
        let private = self.tlwe.map_or(0, |tlwe| 2 * tlwe.key_rows());
        let switched: usize = self.levels.iter().chain([&self.square]).map(|gadget| gadget.digits).sum();
        let switched = switched + private;
        let packed = 4 * self.pack.digits * poly(self.kept_bits());
        switched * poly(self.full_bits())
            + packed
            + self.switch.map_or(0, |switch| switch.key_words_bytes(self.degree))
    }

    /// Returns the leaves of a query over `rows` rows and `folds` folds: a selector for each row, a word for each fold digit.
    pub fn leaves(&self, rows: usize, folds: usize) -> usize {
        rows + folds * self.fold.digits
    }

    /// Returns the number of coefficients of b that travel in a query of `leaves` leaves.
    ///
    /// With h levels, leaf v depends on the coefficients reverse(v) + m 2^h of the query: the first carries the message, and
    /// the others must be zero messages. The tree separates all other coefficients from these, whatever their values, so they
    /// are not sent.
    pub fn query_words(&self, leaves: usize) -> usize {
        leaves * (self.degree >> self.levels.len())
    }

    /// Returns the positions of the coefficients of b that travel for `leaves`, those of the first leaf first. Source:
    /// OnionPIRv2 sections 3.3 and 3.5 (bit-reversed packing).
    pub fn query_positions(&self, leaves: Range<usize>) -> impl Iterator<Item = usize> {
        let levels = self.levels.len() as u32;
        let degree = self.degree;
        leaves.flat_map(move |leaf| {
            let first = if levels == 0 { 0 } else { leaf.reverse_bits() >> (usize::BITS - levels) };
            (first..degree).step_by(1 << levels)
        })
    }
}

fn product_bits<'a>(primes: impl IntoIterator<Item = &'a u32>) -> u32 {
    let product: u128 = primes.into_iter().map(|&p| u128::from(p)).product();
    u128::BITS - product.leading_zeros()
}

impl RingParams {
    /// Returns the lattice problem of queries and evaluation keys modulo Q_e, the largest modulus of samples under a secret;
    /// `None` without encryption.
    pub fn problem(&self) -> Option<LatticeProblem> {
        let primes = self.kept.iter().chain(&self.dropped);
        let problem = LatticeProblem {
            n: self.degree,
            modulus: primes.map(|&prime| u128::from(prime)).product(),
            secret: self.secret,
            error: ErrorDistribution::Gaussian(self.error_std),
            structure: MatrixStructure::Ring { degree: self.degree },
            max_samples: None,
        };
        (!self.is_plain()).then_some(problem)
    }

    /// Returns the lattice problems of queries and keys, of the small ring, and of TLWE words, as far as the set has them.
    /// Empty without encryption.
    pub(super) fn problems(&self) -> Vec<LatticeProblem> {
        let Some(own) = self.problem() else { return Vec::new() };
        let switch = self.switch.map(|switch| switch.problem(self.secret, self.error_std));
        [Some(own), switch, self.tlwe.map(|tlwe| tlwe.problem(self.secret, self.error_std))]
            .into_iter()
            .flatten()
            .collect()
    }
}
