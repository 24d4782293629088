//! The arithmetic of kernels modulo the primes of a ring.

use hush_math::modulus::Modulus;
use hush_ops::OpsError;

use super::{MAX_LIMBS, degree::Degree, montgomery_form};

/// The smallest wide prime: a word does not hold a sum of two residues, nor does `plantard_mul` take their products.
const WIDE_FROM: u32 = 1 << 31;
/// The largest number of primes in a ring that has wide ones.
const MAX_WIDE_LIMBS: usize = 2;

/// The arithmetic of the kernels of a ring, one for all its primes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ring) enum Arithmetic {
    /// All primes are below 2^31 (`kernels/modular.cuh`).
    Narrow,
    /// Some primes are 2^31 or above (`kernels/wide_modular.cuh`).
    Wide,
}

impl Arithmetic {
    /// Returns the arithmetic of a base of primes.
    pub(in crate::ring) fn of(moduli: &[Modulus]) -> Self {
        if moduli.iter().all(|p| p.value() < WIDE_FROM) { Self::Narrow } else { Self::Wide }
    }

    /// Checks that there are kernels for polynomials of this degree modulo `limbs` primes.
    pub(in crate::ring) fn check_ring(self, degree: Degree, limbs: usize) -> Result<(), OpsError> {
        check_limbs(limbs)?;
        if self == Self::Narrow || (degree == Degree::N2048 && limbs <= MAX_WIDE_LIMBS) {
            return Ok(());
        }
        let reason = "the kernels for primes above 2^31 are for degree 2048 and at most 2 primes".into();
        Err(OpsError::Backend { reason })
    }

    /// Checks that all primes are below 2^31, for steps whose kernels need it.
    pub(in crate::ring) fn check_narrow(self) -> Result<(), OpsError> {
        match self {
            Self::Narrow => Ok(()),
            Self::Wide => {
                Err(OpsError::Backend { reason: "this step has no kernels for primes above 2^31".into() })
            }
        }
    }

    /// Returns the kernel for this arithmetic from a pair: the one for narrow primes, the one for wide primes.
    pub(in crate::ring) fn pick(self, [narrow, wide]: [&'static str; 2]) -> &'static str {
        match self {
            Self::Narrow => narrow,
            Self::Wide => wide,
        }
    }

    /// Returns the two words by which kernels represent a constant factor `w`, a residue, in transforms.
    pub(in crate::ring) fn factor(self, modulus: Modulus, w: u32) -> [u32; 2] {
        match self {
            Self::Narrow => plantard_factor(modulus, w),
            Self::Wide => montgomery_factor(modulus, w),
        }
    }

    /// Returns whether the accumulator of kernels holds a residue modulo `p` plus `products` products of residues.
    pub(in crate::ring) fn holds(self, p: u32, products: usize) -> bool {
        let largest = u128::from(p - 1);
        match self {
            Self::Narrow => u128::from(p) + products as u128 * largest * largest < 1 << 64,
            Self::Wide => true,
        }
    }
}

/// Checks that kernels support `limbs` primes.
pub(in crate::ring) fn check_limbs(limbs: usize) -> Result<(), OpsError> {
    if limbs <= MAX_LIMBS {
        return Ok(());
    }
    Err(OpsError::Backend { reason: format!("the kernels of rings take at most {MAX_LIMBS} primes") })
}

/// Returns the Plantard factor of `w`, a residue modulo a prime below 2^31: `(-w 2^64 mod p) p^-1 mod 2^64`, low word first.
pub(in crate::ring) fn plantard_factor(modulus: Modulus, w: u32) -> [u32; 2] {
    let p = u64::from(modulus.value());
    let power = modulus.reduce(((1u128 << 64) % u128::from(p)) as u64);
    let scaled = u64::from(modulus.neg(modulus.mul(w, power)));
    let factor = scaled.wrapping_mul(inverse_of_odd(p));
    [factor as u32, (factor >> 32) as u32]
}

/// Returns the factor of `w`, a residue, for `constant_mul` (`kernels/wide_modular.cuh`): `m = w 2^32 mod p` and `m p^-1 mod 2^32`.
pub(in crate::ring) fn montgomery_factor(modulus: Modulus, w: u32) -> [u32; 2] {
    let form = montgomery_form(modulus, w);
    [form, form.wrapping_mul(inverse_of_odd(u64::from(modulus.value())) as u32)]
}

/// Returns `odd^-1 mod 2^64`.
pub(in crate::ring) fn inverse_of_odd(odd: u64) -> u64 {
    // Newton's method: an odd number is its own inverse modulo 8, and each step doubles the correct bits.
    (0..5).fold(odd, |inverse, _| inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Multiplies as `plantard_mul` of `kernels/modular.cuh` does.
    fn plantard_times(a: u32, [low, high]: [u32; 2], p: u32) -> u32 {
        let word = a.wrapping_mul(high).wrapping_add(high_word(a, low));
        ((u64::from(word) * u64::from(p) + u64::from(p)) >> 32) as u32
    }

    /// Multiplies as `constant_mul` of `kernels/wide_modular.cuh` does.
    fn montgomery_times(a: u32, [form, quotient]: [u32; 2], p: u32) -> u32 {
        let (difference, wraps) = high_word(a, form).overflowing_sub(high_word(a.wrapping_mul(quotient), p));
        if wraps { difference.wrapping_add(p) } else { difference }
    }

    fn high_word(a: u32, b: u32) -> u32 {
        ((u64::from(a) * u64::from(b)) >> 32) as u32
    }

    #[test]
    fn products_are_canonical_for_any_word() {
        let narrow = [3, 7681, 134_176_769, 2_147_377_153, 2_147_483_647];
        let wide = [1_454_081, 2_147_483_659, 4_293_849_089, 4_293_918_689];
        for p in narrow.into_iter().chain(wide) {
            let modulus = Modulus::new(p);
            for w in [0, 1, 2 % p, p / 2, p - 2, p - 1] {
                for a in [0, 1, p - 1, p, p.wrapping_mul(2).wrapping_sub(2), u32::MAX, 1 << 31, 0x9e37_79b9] {
                    let expected = (u64::from(a) * u64::from(w) % u64::from(p)) as u32;
                    let product = montgomery_times(a, montgomery_factor(modulus, w), p);
                    assert_eq!(product, expected, "{a} {w} modulo {p}");
                    if p < 1 << 31 {
                        let product = plantard_times(a, plantard_factor(modulus, w), p);
                        assert_eq!(product, expected, "{a} {w} modulo {p}");
                    }
                }
            }
        }
    }

    #[test]
    fn one_wide_prime_makes_a_ring_wide() {
        let [narrow, wide] = [2_147_483_647, 4_293_849_089].map(Modulus::new);
        assert_eq!(Arithmetic::of(&[narrow; 4]), Arithmetic::Narrow);
        assert_eq!(Arithmetic::of(&[narrow, wide]), Arithmetic::Wide);
        assert!(Arithmetic::Narrow.check_ring(Degree::N4096, 4).is_ok());
        assert!(Arithmetic::Wide.check_ring(Degree::N2048, 2).is_ok());
        for (arithmetic, degree, limbs) in [
            (Arithmetic::Narrow, Degree::N4096, 5),
            (Arithmetic::Wide, Degree::N2048, 3),
            (Arithmetic::Wide, Degree::N4096, 1),
        ] {
            assert!(matches!(arithmetic.check_ring(degree, limbs), Err(OpsError::Backend { .. })));
        }
    }

    #[test]
    fn sums_of_narrow_products_are_bounded() {
        assert!(Arithmetic::Narrow.holds(2_147_483_647, 4));
        assert!(!Arithmetic::Narrow.holds(2_147_483_647, 5));
        assert!(Arithmetic::Wide.holds(4_293_849_089, 6));
    }
}
