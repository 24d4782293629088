//! Parameter sets of column packing.

use hush_math::gadget::Gadget;

use super::{
    LweNoise, LweParams, RLWE_ERROR_STD, RingParams, Widths,
    distributions::{ErrorDistribution, SecretDistribution},
    lwe::MESSAGE_BITS,
    noise::{log2_erfc, quadrature},
    presets::{DEFAULT_LWE, INSECURE_PLAIN},
    ring::{ResponseBits, presets::INSECURE_RING_PLAIN},
};
use crate::{codec::packed_bytes, entities::MatrixStructure};

/// An LWE set for the table and an RLWE set, both under *one* secret: the LWE secret is the coefficients of the ring secret s,
/// so n = N. The secret is drawn for one query, and the keys that pack the answer travel with the query. Source: InsPIRe
/// (InspiRING).
///
/// The only way to obtain a set is to take a preset ([`super::ParameterSet::named`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnParams {
    lwe: LweParams,
    ring: RingParams,
    rotation_bits: u32,
    conjugation_dropped_bits: u32,
}

/// Every preset. The first is the default.
pub const COLUMN_PRESETS: [ColumnParams; 3] =
    [COLPACK_N2048_Q52, INSECURE_COLPACK_N256, INSECURE_COLPACK_PLAIN];

/// The default: N = n = 2048, Q of 52 bits, ternary secret, errors 3.2: 131.3 bits (lattice-estimator, commit 27a581bb, MATZOV,
/// dual hybrid attack; primal attacks need 131.5). The LWE samples modulo 2^32 are under the same secret and are part of the
/// estimate; alone they would have 219 bits.
pub const COLPACK_N2048_Q52: ColumnParams = ColumnParams {
    lwe: LweParams {
        name: "LWE_N2048_STD3_2_RING2048",
        security_bits: 131.3,
        n: 2048,
        structure: MatrixStructure::Ring { degree: 2048 },
        ..DEFAULT_LWE
    },
    ring: RingParams {
        name: "COLPACK_N2048_Q52",
        security_bits: 131.3,
        degree: 2048,
        kept: &[67_104_769, 67_084_289],
        dropped: None,
        plaintext_bits: MESSAGE_BITS,
        levels: &[],
        square: Gadget::NONE,
        fold: ONE_DIGIT,
        pack: Gadget::NONE,
        key_dropped_bits: 6,
        selector_dropped_bits: 0,
        query_dropped_bits: 0,
        response: ResponseBits { a: 18, b: 12 },
        switch: None,
        tlwe: None,
        whole_query: false,
        secret: SecretDistribution::Ternary,
        error_std: RLWE_ERROR_STD,
    },
    rotation_bits: 46,
    conjugation_dropped_bits: 10,
};

/// [`COLPACK_N2048_Q52`] in a ring that is much too small: quick tests with real noise.
pub const INSECURE_COLPACK_N256: ColumnParams = ColumnParams {
    lwe: LweParams {
        name: "INSECURE_LWE_N256",
        security_bits: 0.0,
        n: 256,
        secret: SecretDistribution::Ternary,
        error: ErrorDistribution::Gaussian(RLWE_ERROR_STD),
        structure: MatrixStructure::Ring { degree: 256 },
        full_words: false,
    },
    ring: RingParams {
        name: "INSECURE_COLPACK_N256",
        security_bits: 0.0,
        degree: 256,
        ..COLPACK_N2048_Q52.ring
    },
    ..COLPACK_N2048_Q52
};

/// No secret, no error: queries are messages in the clear. Tests of layouts only.
pub const INSECURE_COLPACK_PLAIN: ColumnParams = ColumnParams {
    lwe: LweParams {
        name: "INSECURE_LWE_N64_PLAIN",
        n: INSECURE_RING_PLAIN.degree,
        structure: MatrixStructure::Ring { degree: INSECURE_RING_PLAIN.degree },
        ..INSECURE_PLAIN
    },
    ring: RingParams {
        name: "INSECURE_COLPACK_PLAIN",
        degree: INSECURE_RING_PLAIN.degree,
        secret: SecretDistribution::Zero,
        ..INSECURE_COLPACK_N256.ring
    },
    ..INSECURE_COLPACK_N256
};

/// A gadget of one digit of 24 bits: the part of a coefficient modulo Q that is left when its low 28 bits are rounded
/// away.
const ONE_DIGIT: Gadget = Gadget::new(24, 1, 28);

impl ColumnParams {
    /// Returns the name of the preset.
    pub fn name(&self) -> &'static str {
        self.ring.name
    }

    /// Returns the LWE set. Its dimension n is the ring degree N.
    pub fn lwe(&self) -> &LweParams {
        &self.lwe
    }

    /// Returns the RLWE set. Packing and folds share its one-digit gadget [`RingParams::fold_gadget`];
    /// [`RingParams::key_dropped_bits`] applies to the RGSW ciphertext.
    pub fn ring(&self) -> &RingParams {
        &self.ring
    }

    /// Returns the security in bits: that of the weaker of the two sets.
    pub fn security_bits(&self) -> f64 {
        self.lwe.security_bits.min(self.ring.security_bits)
    }

    /// Returns the bits of a coefficient of the rotation key on the wire, where it is a fraction of Q.
    pub fn rotation_bits(&self) -> u32 {
        self.rotation_bits
    }

    /// Returns the number of low bits that the conjugation key is sent without.
    pub fn conjugation_dropped_bits(&self) -> u32 {
        self.conjugation_dropped_bits
    }

    /// Returns the exact bytes of the keys that travel with a query; `folds`: whether an RGSW ciphertext is among them.
    pub fn key_bytes(&self, folds: bool) -> usize {
        let poly = |bits| packed_bytes(self.ring.degree, bits);
        let bits = self.ring.kept_bits();
        let rgsw = 2 * self.ring.fold.digits * poly(bits - self.ring.key_dropped_bits);
        poly(self.rotation_bits) + poly(bits - self.conjugation_dropped_bits) + if folds { rgsw } else { 0 }
    }
}

/// The noise of a byte after a fold over LWE and column packing. Each part is a standard deviation in steps of a byte
/// (LSB). The formulas are those of `docs/explanation/protocols/colpack.md`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnNoise {
    /// The noise of the fold over LWE. Lifting the hint adds none.
    pub lwe: LweNoise,
    /// The noise that packing adds.
    pub packing: f64,
    /// The noise that the external products add.
    pub folds: f64,
    /// The noise of rounding a in the response.
    pub response: f64,
    /// The largest error from rounding b in the response.
    pub response_bound: f64,
}

impl ColumnNoise {
    /// Computes the noise of a look-up over `cols` columns (D0) with query words of `query_bits` bits, after `folds` external
    /// products, with ciphertexts of `response` bits.
    ///
    /// Source: InsPIRe for the chain and the power fold, with the formulas for one digit and for rounded keys.
    pub fn new(
        params: &ColumnParams,
        cols: usize,
        query_bits: u32,
        folds: usize,
        response: ResponseBits,
    ) -> Self {
        let ring = &params.ring;
        let gadget = params.ring.fold;
        let n = ring.degree as f64;
        let secret = n * SECRET_VARIANCE;
        let digit = 4f64.powi(gadget.width as i32) / 12.0;
        let rounding = |bits: u32| 4f64.powi(bits as i32) / 12.0;
        let key = |dropped: u32| RLWE_ERROR_STD.powi(2) + if dropped == 0 { 0.0 } else { rounding(dropped) };
        let q = ring.noise_inputs().kept_product;
        let lsb = |variance: f64| variance.sqrt() / q * 2f64.powi(MESSAGE_BITS as i32);
        // N - 2 key switches, counted as N, of one digit a coefficient. Each adds the part that the digit rounds away times the
        // secret, and the digits times the key's errors.
        let rotation_dropped = ring.kept_bits() - params.rotation_bits;
        let switches = n * (secret * rounding(gadget.dropped) + n * digit * key(rotation_dropped));
        // The last key switch is by the conjugation key.
        let conjugation = n * digit * key(params.conjugation_dropped_bits);
        let fold = 2.0 * n * digit * key(ring.key_dropped_bits) + (1.0 + secret) * rounding(gadget.dropped);
        let step = |bits: u32| 2f64.powi(MESSAGE_BITS as i32 - bits as i32);
        Self {
            lwe: LweNoise::new(&params.lwe, cols, Widths { query: query_bits, ..Widths::FULL }),
            packing: lsb(switches + conjugation),
            folds: lsb(folds as f64 * fold),
            response: step(response.a) * (secret / 12.0).sqrt(),
            response_bound: step(response.b) / 2.0,
        }
    }

    /// Returns the standard deviation of all parts except the rounding of b.
    pub fn std(&self) -> f64 {
        quadrature([self.lwe.std(), self.packing, self.folds, self.response])
    }

    /// Returns the number of standard deviations between the error and the limit of decoding.
    pub fn sigmas(&self) -> f64 {
        (0.5 - self.response_bound) / self.std()
    }

    /// Returns log2 of the probability (union bound) that any of `values` decoded bytes is wrong.
    pub fn log2_failure(&self, values: usize) -> f64 {
        (log2_erfc(self.sigmas() / 2f64.sqrt()) + (values as f64).log2()).min(0.0)
    }
}

/// The variance of a coefficient of a ternary secret.
const SECRET_VARIANCE: f64 = 2.0 / 3.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::ParameterSet;
    use crate::params::{MAX_LOG2_FAILURE, MIN_SECURITY_BITS};

    #[test]
    fn names_state_the_facts() {
        for p in COLUMN_PRESETS {
            assert_eq!(ColumnParams::named(p.name()), Ok(p));
            let honest = p.security_bits() >= MIN_SECURITY_BITS || p.name().starts_with("INSECURE");
            assert!(honest, "{}", p.name());
        }
    }

    #[test]
    fn one_secret_serves_both_sides() {
        for ColumnParams { lwe, ring, .. } in COLUMN_PRESETS {
            assert_eq!(lwe.n, ring.degree);
            assert_eq!(lwe.structure, MatrixStructure::Ring { degree: ring.degree });
            assert!(ring.fold.covers(ring.kept_ring().rns().product()), "{}", ring.name);
            assert_eq!(ring.fold.digits, 1);
        }
    }

    /// Checks the margins at 2^16 columns and 4096 entries.
    #[test]
    fn every_set_decodes_with_its_margin() {
        for (params, query_bits) in [(COLPACK_N2048_Q52, 27), (INSECURE_COLPACK_N256, 27)] {
            let noise = ColumnNoise::new(&params, 1 << 16, query_bits, 4095, params.ring.response);
            println!("{}: {noise:?}", params.name());
            assert!(noise.sigmas() >= 12.0, "{}: {:.1} sigma", params.name(), noise.sigmas());
            assert!(noise.log2_failure(1 << 20) < MAX_LOG2_FAILURE - 16.0);
        }
    }

    #[test]
    fn keys_have_the_documented_bytes() {
        assert_eq!(COLPACK_N2048_Q52.key_bytes(false), 2048 * (46 + 42) / 8);
        assert_eq!(COLPACK_N2048_Q52.key_bytes(true), 2048 * (46 + 42 + 2 * 46) / 8);
    }
}
