//! The public masks of column packing, expanded from a table's seed.

use hush_math::{
    csprng::Csprng,
    poly::{Eval, Poly},
    ring::Ring,
};

use super::PublicSeed;
use crate::params::RingContext;

/// The masks of the keys that travel with a query of column packing: uniform polynomials modulo Q. All queries of a table share
/// them, because every query has a new secret.
///
/// Client and server derive the masks from the table's seed and never take them from the network. If a server could choose the mask
/// 0, it would receive the secret in the clear; if it could choose two equal masks, it would receive differences of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnMasks {
    rotation: Poly<Eval>,
    conjugation: Poly<Eval>,
    power: [Poly<Eval>; 2],
}

impl ColumnMasks {
    /// Expands the masks that belong to `seed`, in the ring modulo Q_1 of `context`.
    pub fn new(context: &RingContext, seed: &PublicSeed) -> Self {
        let ring = context.kept();
        let [rotation, conjugation, bottom, top] = [0, 1, 2, 3].map(|index| mask(ring, seed, index));
        Self { rotation, conjugation, power: [bottom, top] }
    }

    /// Returns masks of zeros, under which nothing is encrypted: tests of chains only.
    pub fn insecure_zeros(context: &RingContext) -> Self {
        let zero = || context.kept().zero();
        Self { rotation: zero(), conjugation: zero(), power: [zero(), zero()] }
    }

    /// Returns w, the mask of the rotation key.
    pub fn rotation(&self) -> &Poly<Eval> {
        &self.rotation
    }

    /// Returns v, the mask of the conjugation key.
    pub fn conjugation(&self) -> &Poly<Eval> {
        &self.conjugation
    }

    /// Returns the masks of the RGSW ciphertext: of the row that is multiplied by the digit of a, then of the row that is
    /// multiplied by the digit of b.
    pub fn power(&self) -> &[Poly<Eval>; 2] {
        &self.power
    }
}

/// Expands mask `index` from its own stream.
fn mask(ring: &Ring, seed: &PublicSeed, index: u64) -> Poly<Eval> {
    let mut context = seed.0.to_vec();
    context.extend((ring.degree() as u64).to_le_bytes());
    context.extend(ring.moduli().iter().flat_map(|p| p.value().to_le_bytes()));
    ring.expand_uniform(&mut Csprng::public("hushdb v2 2026 column packing masks", &context, index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{COLPACK_N2048_Q52, COLUMN_PRESETS};

    fn all(masks: &ColumnMasks) -> [&Poly<Eval>; 4] {
        [&masks.rotation, &masks.conjugation, &masks.power[0], &masks.power[1]]
    }

    #[test]
    fn masks_are_pairwise_different_and_without_zeros_in_common() {
        for params in COLUMN_PRESETS {
            let context = RingContext::new(*params.ring());
            let [one, other] = [1, 2].map(|seed| ColumnMasks::new(&context, &PublicSeed([seed; 32])));
            let all: Vec<_> = [&one, &other].into_iter().flat_map(all).collect();
            for (index, mask) in all.iter().enumerate() {
                assert!(mask.words().iter().filter(|&&word| word == 0).count() < 2);
                assert!(all[..index].iter().all(|other| other != mask));
            }
        }
    }

    /// The masks are part of the protocol: with other masks, clients and servers of two versions do not understand
    /// each other.
    #[test]
    fn masks_are_fixed() {
        let context = RingContext::new(*COLPACK_N2048_Q52.ring());
        let masks = ColumnMasks::new(&context, &PublicSeed([1; 32]));
        let first = all(&masks).map(|mask| mask.words()[0]);
        assert_eq!(first, [29_994_785, 37_242_627, 14_634_316, 54_569_042]);
    }
}
