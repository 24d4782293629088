//! Parameter sets of the protocols that pack LWE ciphertexts into RLWE ciphertexts.

use hush_math::gadget::Gadget;

use super::{
    LweNoise, LweParams, RingNoise, RingParams, Widths,
    distributions::SecretDistribution,
    lwe::MESSAGE_BITS,
    noise::{log2_erfc, quadrature},
    presets::{DEFAULT_LWE, INSECURE_LWE_N64, INSECURE_PLAIN},
    ring::{
        ResponseBits,
        presets::{INSECURE_RING_PLAIN, ONION_M31, levels},
    },
};

/// An LWE set for the table, and an RLWE set into which the LWE ciphertexts are packed.
///
/// Before packing, LWE words are rounded to the plaintext modulus of the RLWE set, `2^18`. The only way to obtain a set
/// is to take a preset ([`super::ParameterSet::named`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PackParams {
    lwe: LweParams,
    ring: RingParams,
}

/// Every preset. The first is the default.
pub const PACK_PRESETS: [PackParams; 4] =
    [PACK_M31, VIPIR_N4096_3X29, INSECURE_PACK_N256, INSECURE_PACK_PLAIN];

/// The default: 133.4 bits (LWE; the RLWE side, N = 4096 and Q_e of 93 bits, has 148.4). One of the three primes of 31 bits
/// is dropped after the expansion, so that two digits are enough for a Subs.
pub const PACK_M31: PackParams = PackParams {
    lwe: DEFAULT_LWE,
    ring: RingParams {
        name: "PACK_M31",
        plaintext_bits: 18,
        levels: &levels::<12>(0, COARSE, COARSE),
        square: COARSE,
        fold: Gadget::new(18, 2, 27),
        pack: Gadget::new(26, 1, 37),
        key_dropped_bits: 3,
        selector_dropped_bits: 48,
        query_dropped_bits: 48,
        response: ResponseBits { a: 20, b: 12 },
        ..ONION_M31
    },
};

/// VIPIR's set (its section 5, appendices A and D.3): three primes of 29 bits throughout, five digits of 18 bits, queries of two
/// whole ciphertext halves and answers of whole words. 133.4 bits (LWE; RLWE 159.7). Its communication equals the paper's except
/// for the keys, which travel seeded and hold a key for s^2 in place of RGSW(s).
pub const VIPIR_N4096_3X29: PackParams = PackParams {
    lwe: LweParams { name: "VIPIR_N1280", full_words: true, ..DEFAULT_LWE },
    ring: RingParams {
        name: "VIPIR_N4096_3X29",
        security_bits: 159.7,
        kept: &[536_608_769, 533_463_041, 531_628_033],
        dropped: None,
        levels: &levels::<11>(0, VIPIR_GADGET, VIPIR_GADGET),
        square: VIPIR_GADGET,
        fold: VIPIR_GADGET,
        pack: Gadget::NONE,
        key_dropped_bits: 0,
        selector_dropped_bits: 0,
        query_dropped_bits: 0,
        whole_query: true,
        response: ResponseBits { a: 32, b: 32 },
        ..PACK_M31.ring
    },
};

/// [`PACK_M31`] in dimensions that are much too small: quick tests with real noise.
pub const INSECURE_PACK_N256: PackParams = PackParams {
    lwe: INSECURE_LWE_N64,
    ring: RingParams {
        name: "INSECURE_PACK_N256",
        security_bits: 0.0,
        degree: 256,
        levels: &levels::<8>(0, COARSE, COARSE),
        selector_dropped_bits: 44,
        query_dropped_bits: 44,
        ..PACK_M31.ring
    },
};

/// No secret, no error: queries are messages in the clear. Tests of layouts only.
pub const INSECURE_PACK_PLAIN: PackParams = PackParams {
    lwe: INSECURE_PLAIN,
    ring: RingParams {
        name: "INSECURE_PACK_PLAIN",
        degree: INSECURE_RING_PLAIN.degree,
        levels: &levels::<6>(0, COARSE, COARSE),
        secret: SecretDistribution::Zero,
        ..INSECURE_PACK_N256.ring
    },
};

const COARSE: Gadget = Gadget::new(30, 2, 33);
const VIPIR_GADGET: Gadget = Gadget::new(18, 5, 0);

impl PackParams {
    /// Returns the name of the preset.
    pub fn name(&self) -> &'static str {
        self.ring.name
    }

    /// Returns the LWE set.
    pub fn lwe(&self) -> &LweParams {
        &self.lwe
    }

    /// Returns the RLWE set.
    pub fn ring(&self) -> &RingParams {
        &self.ring
    }

    /// Returns the security in bits: that of the weaker of the two sets.
    pub fn security_bits(&self) -> f64 {
        self.lwe.security_bits.min(self.ring.security_bits)
    }

    /// Returns the leaves of a query's expansion: the LWE secret, then the bits of `folds` folds. Source: VIPIR section 3.5.1.
    pub fn leaves(&self, folds: usize) -> usize {
        self.ring.leaves(self.lwe.n, folds)
    }
}

/// The noise of a byte after a fold over LWE and a packing, in steps of a byte (LSB).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PackNoise {
    /// The noise of the fold over LWE, with hint and answer rounded to the plaintext modulus of the packing.
    pub lwe: LweNoise,
    /// The noise of the packing, of the folds after it and of the rounding of the response, in steps of the RLWE set's
    /// plaintext modulus.
    pub ring: RingNoise,
    /// The size of a step of the RLWE set's plaintext modulus, in LSB.
    step: f64,
}

impl PackNoise {
    /// Computes the noise after a fold over `cols` columns (D0) with query words of `query_bits` bits, packing, and `folds`
    /// folds.
    ///
    /// Source: VIPIR appendix D except D.3 (`docs/explanation/protocols/exppack-s.md` says why).
    pub fn new(params: &PackParams, cols: usize, query_bits: u32, folds: usize) -> Self {
        let bits = params.ring.plaintext_bits;
        let widths = Widths { query: query_bits, hint: bits, answer: bits };
        Self {
            lwe: LweNoise::new(&params.lwe, cols, widths),
            ring: RingNoise::new(&params.ring, params.lwe.n, folds),
            step: 2f64.powi(MESSAGE_BITS as i32 - bits as i32),
        }
    }

    /// Returns the standard deviation of all parts except the rounding of b, in LSB.
    pub fn std(&self) -> f64 {
        quadrature([self.lwe.std(), self.step * self.ring.response.sqrt()])
    }

    /// Returns the largest error from rounding b, in LSB.
    pub fn bound(&self) -> f64 {
        self.step * self.ring.response_bound
    }

    /// Returns the number of standard deviations between the error and the limit of decoding.
    pub fn sigmas(&self) -> f64 {
        (0.5 - self.bound()) / self.std()
    }

    /// Returns log2 of the probability (union bound) that any of `values` decoded bytes is wrong.
    pub fn log2_failure(&self, values: usize) -> f64 {
        if self.bound() >= 0.5 {
            return 0.0;
        }
        (log2_erfc(self.sigmas() / 2f64.sqrt()) + (values as f64).log2()).min(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{MAX_LOG2_FAILURE, MIN_SECURITY_BITS, ParameterSet};

    #[test]
    fn names_state_the_facts() {
        for p in PACK_PRESETS {
            assert_eq!(PackParams::named(p.name()), Ok(p));
            assert!(
                p.security_bits() >= MIN_SECURITY_BITS || p.name().starts_with("INSECURE"),
                "{}",
                p.name()
            );
        }
    }

    #[test]
    fn gadgets_cover_their_moduli() {
        for PackParams { lwe, ring } in PACK_PRESETS {
            let full = ring.full_ring();
            let kept = ring.kept_ring();
            assert!(
                ring.levels.iter().chain([&ring.square]).all(|gadget| gadget.covers(full.rns().product()))
            );
            assert!(ring.fold.covers(kept.rns().product()), "{}", ring.name);
            assert!(ring.pack == Gadget::NONE || ring.pack.covers(kept.rns().product()), "{}", ring.name);
            assert!(ring.leaves(lwe.n, 16) <= ring.max_leaves(), "{}", ring.name);
            assert!(ring.levels.len() <= ring.degree.ilog2() as usize);
            // Rounding up must not carry out of the words that travel.
            for (rns, dropped) in [
                (full.rns(), ring.query_dropped_bits.max(ring.key_dropped_bits)),
                (full.rns(), ring.selector_dropped_bits),
                (kept.rns(), ring.key_dropped_bits),
            ] {
                assert!(rns.product() - 1 + (1 << dropped) / 2 < 1 << rns.bits(), "{}", ring.name);
            }
        }
    }

    /// Checks the margins at 2^16 columns and 16 folds.
    #[test]
    fn every_set_decodes_with_its_margin() {
        for (params, query_bits) in [(PACK_M31, 26), (VIPIR_N4096_3X29, 32), (INSECURE_PACK_N256, 26)] {
            let noise = PackNoise::new(&params, 1 << 16, query_bits, 16);
            assert!(noise.sigmas() >= 12.0, "{}: {:.1} sigma", params.name(), noise.sigmas());
            assert!(noise.log2_failure(1 << 20) < MAX_LOG2_FAILURE - 16.0);
            // The wide gadgets rely on this: the noise of packing and folds is negligible beside that of the fold over LWE.
            let packing = noise.ring.folded + noise.ring.pack;
            let delta =
                params.ring.noise_inputs().kept_product / 2f64.powi(params.ring.plaintext_bits as i32);
            let share = (packing.sqrt() / delta * noise.step) / noise.lwe.std();
            println!("{}: {noise:?}, share of packing {share:.5}", params.name());
            assert!(share < 0.05, "{}: {share}", params.name());
        }
    }
}
