//! Gadgets as kernels take them.

use std::mem::offset_of;

use hush_math::{gadget::Gadget, ring::Ring};
use hush_ops::OpsError;
use zerocopy::{Immutable, IntoBytes};

use super::{MAX_LIMBS, arithmetic::Arithmetic, montgomery_form};
use crate::device::Arg;

/// The struct `GadgetView` of `kernels/gadget.cuh`: a kernel argument by value. In the fields, `h = (Q - 1) / 2`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Immutable, IntoBytes)]
struct GadgetView {
    digits: u32,
    width: u32,
    dropped: u32,
    /// The residue of h modulo p_0.
    first: u32,
    /// The factors of the mixed-radix digits of `x + h`, in Montgomery form.
    factors: [[u32; MAX_LIMBS]; MAX_LIMBS],
    constants: [u32; MAX_LIMBS],
    /// [`Gadget::offset`] - h, lowest word first. It is not negative: the highest digit alone makes offset half of the covered
    /// range.
    offset: [u32; MAX_LIMBS],
}

const _: () = assert!(size_of::<GadgetView>() == 112 && offset_of!(GadgetView, factors) == 16);
const _: () = assert!(offset_of!(GadgetView, offset) == 96);

/// A gadget with its tables for one ring.
#[derive(Clone, Debug)]
pub struct GadgetTables {
    view: GadgetView,
}

impl GadgetTables {
    /// Creates the tables of `gadget` for polynomials of `ring`, whose digits are multiplied by `rows` rows.
    ///
    /// # Errors
    /// [`OpsError::Backend`] if digits are not residues modulo every prime, or if a word of the kernels does not hold a value, or a
    /// residue plus `rows` products. No parameter set whose primes are supported fails here.
    pub(in crate::ring) fn new(ring: &Ring, gadget: Gadget, rows: usize) -> Result<Self, OpsError> {
        let rns = ring.rns();
        let primes = || rns.moduli().iter().map(|p| u128::from(p.value()));
        let arithmetic = Arithmetic::of(rns.moduli());
        let value_bits = u32::BITS * rns.limbs().max(2) as u32;
        let fits = (1..=MAX_LIMBS).contains(&rns.limbs())
            && gadget.covers(rns.product())
            && gadget.log2_factor(gadget.digits) <= value_bits
            && primes().all(|p| 1 << gadget.width <= p)
            && rns.moduli().iter().all(|p| arithmetic.holds(p.value(), rows));
        if !fits {
            return Err(OpsError::Backend { reason: format!("there are no kernels for {gadget:?}") });
        }
        let half = rns.product() / 2;
        let mut view = GadgetView {
            digits: gadget.digits as u32,
            width: gadget.width,
            dropped: gadget.dropped,
            first: rns.reduce(half, 0),
            offset: [0, 1, 2, 3].map(|word| ((gadget.offset() - half) >> (32 * word)) as u32),
            ..GadgetView::default()
        };
        let mut radix = 1;
        for (j, &modulus) in rns.moduli().iter().enumerate() {
            let inverse = modulus.inverse(rns.reduce(radix, j));
            let mut weight = 1;
            for (factor, p) in view.factors[j].iter_mut().zip(primes()).take(j) {
                *factor = montgomery_form(modulus, modulus.neg(modulus.mul(rns.reduce(weight, j), inverse)));
                weight *= p;
            }
            view.factors[j][j] = montgomery_form(modulus, inverse);
            view.constants[j] = montgomery_form(modulus, modulus.mul(rns.reduce(half, j), inverse));
            radix *= u128::from(modulus.value());
        }
        Ok(Self { view })
    }

    /// Returns the number of digits.
    pub fn digits(&self) -> usize {
        self.view.digits as usize
    }

    /// Returns the shared memory of a block of a whole-stage kernel, as a number of polynomials of one limb. The block decomposes
    /// `halves` halves of a ciphertext of `limbs` limbs (`kernels/gadget.cuh`, stages).
    pub(in crate::ring) fn stage_polys(&self, halves: usize, limbs: usize) -> usize {
        (halves - 1) * self.digits() + self.digits().max(limbs) + 1
    }

    /// Returns the gadget as an argument of a kernel (`GadgetView`).
    pub(crate) fn view(&self) -> Arg<'_> {
        Arg::of(&self.view)
    }
}

#[cfg(test)]
mod tests {
    use hush_math::modulus::find_primes;

    use super::*;

    #[test]
    fn values_have_a_word_for_each_prime() {
        for (limbs, fits, wider) in [
            (1, Gadget::new(30, 2, 4), Gadget::new(30, 2, 5)),
            (2, Gadget::new(30, 2, 4), Gadget::new(30, 2, 5)),
            (3, Gadget::new(30, 2, 36), Gadget::new(30, 2, 37)),
        ] {
            let ring = Ring::new(64, &find_primes(64, 31, limbs));
            assert!(GadgetTables::new(&ring, fits, 1).is_ok());
            assert!(GadgetTables::new(&ring, wider, 1).is_err());
        }
    }
}
