//! The RLWE sets by name. Security by the lattice-estimator (commit 27a581bb, MATZOV, GSA shape).

use hush_math::gadget::Gadget;

use super::{ResponseBits, RingParams};
use crate::params::{RLWE_ERROR_STD, SecretDistribution};

/// Every RLWE preset. The first is the default for long records.
pub const RING_PRESETS: [RingParams; 6] = [
    ONION_M31,
    ONION_S,
    ONIONPIRV2_N4096_4X27_SEC126,
    ONIONPIRV2_N2048_2X30_SEC113,
    INSECURE_RING_N256,
    INSECURE_RING_PLAIN,
];

/// Plaintexts of 11 KiB; the default for long records. N = 4096, Q_e of 93 bits: 148.4 bits.
pub const ONION_M31: RingParams = RingParams {
    name: "ONION_M31",
    security_bits: 148.4,
    degree: 4096,
    kept: &[2_147_377_153, 2_147_352_577],
    dropped: Some(2_147_295_233),
    plaintext_bits: 22,
    levels: &levels::<12>(3, Gadget::new(19, 4, 18), Gadget::new(23, 3, 25)),
    square: Gadget::new(23, 3, 25),
    fold: Gadget::new(18, 2, 27),
    pack: Gadget::new(20, 2, 22),
    key_dropped_bits: 3,
    selector_dropped_bits: 41,
    query_dropped_bits: 41,
    response: ResponseBits { a: 32, b: 24 },
    switch: None,
    tlwe: None,
    whole_query: false,
    secret: SecretDistribution::Ternary,
    error_std: RLWE_ERROR_STD,
};

/// Plaintexts of 2 KiB; the default for records of up to some 10 KiB. N = 2048, Q_e of 52.5 bits: 130.2 bits.
pub const ONION_S: RingParams = RingParams {
    name: "ONION_S",
    security_bits: 130.2,
    degree: 2048,
    kept: &[4_293_849_089],
    dropped: Some(1_454_081),
    plaintext_bits: 8,
    levels: &levels::<10>(2, Gadget::new(8, 6, 6), Gadget::new(9, 5, 9)),
    square: Gadget::new(14, 3, 12),
    fold: Gadget::new(7, 3, 12),
    pack: Gadget::new(8, 3, 9),
    key_dropped_bits: 0,
    selector_dropped_bits: 25,
    query_dropped_bits: 25,
    response: ResponseBits { a: 18, b: 11 },
    switch: None,
    tlwe: None,
    whole_query: false,
    secret: SecretDistribution::Ternary,
    error_std: RLWE_ERROR_STD,
};

/// VIPIR's and GPIR's OnionPIRv2 variant (Q of about 2^108, which GPIR calls four 32-bit primes) with balanced digits. Here Q is
/// four primes of 27 bits, and nothing is dropped.
/// **126.4 bits, below this project's minimum of 128**: for comparison only.
pub const ONIONPIRV2_N4096_4X27_SEC126: RingParams = RingParams {
    name: "ONIONPIRV2_N4096_4X27_SEC126",
    security_bits: 126.4,
    degree: 4096,
    kept: &[134_176_769, 134_111_233, 134_012_929, 133_963_777],
    dropped: None,
    plaintext_bits: 32,
    levels: &levels::<12>(12, Gadget::new(14, 8, 0), Gadget::new(14, 8, 0)),
    square: Gadget::new(14, 8, 0),
    fold: Gadget::new(22, 5, 0),
    pack: Gadget::new(22, 5, 0),
    key_dropped_bits: 0,
    selector_dropped_bits: 0,
    query_dropped_bits: 0,
    response: ResponseBits { a: 42, b: 35 },
    switch: None,
    tlwe: None,
    whole_query: false,
    secret: SecretDistribution::Ternary,
    error_std: RLWE_ERROR_STD,
};

/// OnionPIRv2's small set (N = 2048, q of 60 bits) with balanced digits and plaintexts of 13 bits. The paper's t of 16 bits needs
/// keys with a special prime, which have 58 bits (`docs/explanation/notes/ring-parameters.md`).
/// **113.0 bits, below this project's minimum of 128**: for comparison only.
pub const ONIONPIRV2_N2048_2X30_SEC113: RingParams = RingParams {
    name: "ONIONPIRV2_N2048_2X30_SEC113",
    security_bits: 113.0,
    degree: 2048,
    kept: &[1_073_692_673, 1_073_668_097],
    dropped: None,
    plaintext_bits: 13,
    levels: &levels::<11>(11, Gadget::new(6, 10, 1), Gadget::new(6, 10, 1)),
    square: Gadget::new(6, 10, 1),
    fold: Gadget::new(12, 5, 1),
    pack: Gadget::new(12, 5, 1),
    key_dropped_bits: 0,
    selector_dropped_bits: 0,
    query_dropped_bits: 0,
    response: ResponseBits { a: 24, b: 17 },
    switch: None,
    tlwe: None,
    whole_query: false,
    secret: SecretDistribution::Ternary,
    error_std: RLWE_ERROR_STD,
};

/// [`ONION_M31`] in a ring that is much too small: quick tests with real noise.
pub const INSECURE_RING_N256: RingParams = RingParams {
    name: "INSECURE_RING_N256",
    security_bits: 0.0,
    degree: 256,
    levels: &levels::<8>(3, Gadget::new(19, 4, 18), Gadget::new(23, 3, 25)),
    selector_dropped_bits: 37,
    query_dropped_bits: 37,
    ..ONION_M31
};

/// No secret, no error: the query is the message in the clear. Tests of layouts only.
pub const INSECURE_RING_PLAIN: RingParams = RingParams {
    name: "INSECURE_RING_PLAIN",
    degree: 64,
    levels: &levels::<6>(0, Gadget::new(19, 4, 18), Gadget::new(23, 3, 25)),
    secret: SecretDistribution::Zero,
    ..INSECURE_RING_N256
};

/// Returns `COUNT` gadgets: `fine` for the first levels, whose noise the later levels amplify, then `coarse`.
pub(in crate::params) const fn levels<const COUNT: usize>(
    fine_levels: usize,
    fine: Gadget,
    coarse: Gadget,
) -> [Gadget; COUNT] {
    let mut levels = [coarse; COUNT];
    let mut level = 0;
    while level < fine_levels {
        levels[level] = fine;
        level += 1;
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{MAX_LOG2_FAILURE, MIN_SECURITY_BITS, ParameterSet, RingNoise};

    #[test]
    fn names_state_the_facts() {
        for p in RING_PRESETS {
            assert_eq!(RingParams::named(p.name), Ok(p));
            let honest = p.security_bits >= MIN_SECURITY_BITS
                || p.name.contains("_SEC")
                || p.name.starts_with("INSECURE");
            assert!(honest, "{} has {} bits and does not say so", p.name, p.security_bits);
        }
        const { assert!(ONION_M31.security_bits >= MIN_SECURITY_BITS) };
        const { assert!(ONION_S.security_bits >= MIN_SECURITY_BITS) };
    }

    #[test]
    fn gadgets_cover_their_moduli() {
        for p in RING_PRESETS {
            let full = p.full_ring();
            let kept = p.kept_ring();
            assert!(p.levels.iter().chain([&p.square]).all(|gadget| gadget.covers(full.rns().product())));
            assert!([p.fold, p.pack].iter().all(|gadget| gadget.covers(kept.rns().product())), "{}", p.name);
            assert!(p.levels.len() <= p.degree.ilog2() as usize);
            // Rounding up must not carry out of the words that travel.
            let widest = p.query_dropped_bits.max(p.selector_dropped_bits).max(p.key_dropped_bits);
            for (rns, dropped) in [(full.rns(), widest), (kept.rns(), p.key_dropped_bits)] {
                assert!(rns.product() - 1 + (1 << dropped) / 2 < 1 << rns.bits(), "{}", p.name);
            }
        }
    }

    /// Checks the margins at the largest shapes that are chosen by default: 256 rows, 12 folds, two planes.
    #[test]
    fn every_set_decodes_with_its_margin() {
        for (params, margin_bits, sigmas) in [
            (ONION_M31, 28.0, 11.8),
            (ONION_S, 8.0, 10.5),
            (ONIONPIRV2_N4096_4X27_SEC126, 500.0, 29.0),
            (ONIONPIRV2_N2048_2X30_SEC113, 16.0, 11.0),
            (INSECURE_RING_N256, 1000.0, 49.0),
        ] {
            let noise = RingNoise::new(&params, 256, 12);
            let failure = noise.log2_failure(2 * params.degree);
            assert!(failure <= MAX_LOG2_FAILURE - margin_bits, "{}: 2^{failure:.1}", params.name);
            assert!(noise.sigmas() >= sigmas, "{}: {:.1} sigma", params.name, noise.sigmas());
        }
    }
}
