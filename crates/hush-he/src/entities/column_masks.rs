//! The public masks of column packing, expanded from a fixed seed by whoever needs them.

use hush_math::{
    csprng::Csprng,
    poly::{Eval, Poly},
    ring::Ring,
};

use crate::params::RingContext;

/// Masks of the keys that travel with a query of column packing: uniform polynomials modulo Q, the same for all queries, as
/// the secret is a new one each time.
///
/// Their seed is fixed and domain-separated: they are derived here by client and server alike and are never taken from the
/// network. A server that chose the mask 0 would be sent the secret in the clear; one that chose two alike, differences of
/// messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnMasks {
    rotation: Poly<Eval>,
    conjugation: Poly<Eval>,
    power: [Poly<Eval>; 2],
}

impl ColumnMasks {
    /// The masks of the ring modulo Q_1 of `context`.
    pub fn new(context: &RingContext) -> Self {
        let ring = context.kept();
        let [rotation, conjugation, bottom, top] = [0, 1, 2, 3].map(|index| mask(ring, index));
        Self { rotation, conjugation, power: [bottom, top] }
    }

    /// Masks of zeros, under which nothing is encrypted: tests of chains only.
    pub fn insecure_zeros(context: &RingContext) -> Self {
        let zero = || context.kept().zero();
        Self { rotation: zero(), conjugation: zero(), power: [zero(), zero()] }
    }

    /// w, of the rotation key.
    pub fn rotation(&self) -> &Poly<Eval> {
        &self.rotation
    }

    /// v, of the conjugation key.
    pub fn conjugation(&self) -> &Poly<Eval> {
        &self.conjugation
    }

    /// Of the rows of the RGSW ciphertext: the one that meets the digit of a, and the one that meets the digit of b.
    pub fn power(&self) -> &[Poly<Eval>; 2] {
        &self.power
    }
}

/// Mask `index`, from a stream of its own.
fn mask(ring: &Ring, index: u64) -> Poly<Eval> {
    let mut context = (ring.degree() as u64).to_le_bytes().to_vec();
    context.extend(ring.moduli().iter().flat_map(|p| p.value().to_le_bytes()));
    ring.expand_uniform(&mut Csprng::public("hushdb v1 2026 column packing masks", &context, index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{COLPACK_N2048_Q52, COLUMN_PRESETS};

    #[test]
    fn masks_are_pairwise_different_and_without_zeros_in_common() {
        for params in COLUMN_PRESETS {
            let masks = ColumnMasks::new(&RingContext::new(*params.ring()));
            let all = [&masks.rotation, &masks.conjugation, &masks.power[0], &masks.power[1]];
            for (index, mask) in all.iter().enumerate() {
                assert!(mask.words().iter().filter(|&&word| word == 0).count() < 2);
                assert!(all[..index].iter().all(|other| other != mask));
            }
        }
    }

    /// They are part of the protocol: other masks, and clients and servers of two versions do not understand each other.
    #[test]
    fn masks_are_fixed() {
        let masks = ColumnMasks::new(&RingContext::new(*COLPACK_N2048_Q52.ring()));
        let first = [&masks.rotation, &masks.conjugation, &masks.power[0], &masks.power[1]]
            .map(|mask| mask.words()[0]);
        assert_eq!(first, [19_459_896, 61_283_720, 47_680_030, 30_700_155]);
    }
}
