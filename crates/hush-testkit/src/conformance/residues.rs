//! Operands over rings: any residues, not only what clients would send.

use hush_he::{
    entities::{EvaluationKeys, KeySwitchKey, RingSwitchKey, RlweCiphertext, RlwePair},
    params::RingContext,
};
use hush_math::{
    csprng::Csprng,
    poly::{Coeff, Eval, Poly},
    ring::Ring,
};
use hush_ops::contract::RlweBatch;

/// Values of residues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residues {
    /// Uniform.
    Random,
    /// Each p - 1: products are largest.
    Largest,
    /// Each zero.
    Zero,
    /// In the coefficients, those of values about Q / 2: digits are extreme.
    Middle,
}

impl Residues {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Random, Self::Largest, Self::Zero, Self::Middle];

    /// In evaluation form, where the middle is that of the coefficients.
    pub(super) fn poly(self, ring: &Ring, rng: &mut Csprng) -> Poly<Eval> {
        let coefficients = self.coefficients(ring, rng);
        match self {
            Self::Middle => ring.forward(coefficients),
            _ => Poly::from_words(coefficients.into_words(), ring.degree()),
        }
    }

    /// In coefficient form.
    pub(super) fn coefficients(self, ring: &Ring, rng: &mut Csprng) -> Poly<Coeff> {
        let mut poly = ring.zero();
        match self {
            Self::Random => poly = ring.expand_uniform(rng),
            Self::Zero => (),
            Self::Largest => {
                for (limb, p) in ring.moduli().iter().enumerate() {
                    poly.limb_mut(limb).fill(p.value() - 1);
                }
            }
            Self::Middle => {
                for i in 0..ring.degree() {
                    let value = ring.rns().product() / 2 + u128::from(rng.next_u32() % 2);
                    for limb in 0..ring.limbs() {
                        poly.limb_mut(limb)[i] = ring.rns().reduce(value, limb);
                    }
                }
            }
        }
        poly
    }

    pub(super) fn polys(self, ring: &Ring, count: usize, rng: &mut Csprng) -> Vec<u32> {
        (0..count).flat_map(|_| self.poly(ring, rng).into_words()).collect()
    }

    pub(super) fn ciphertext(self, ring: &Ring, rng: &mut Csprng) -> RlweCiphertext {
        RlweCiphertext { a: self.poly(ring, rng), b: self.poly(ring, rng) }
    }

    pub(super) fn batch(self, ring: &Ring, count: usize, rng: &mut Csprng) -> RlweBatch {
        RlweBatch {
            ciphertext_words: 2 * ring.limbs() * ring.degree(),
            words: self.polys(ring, 2 * count, rng).into(),
        }
    }

    pub(super) fn keys(self, context: &RingContext, rng: &mut Csprng) -> EvaluationKeys {
        let params = context.params();
        let mut key = |digits| KeySwitchKey {
            rows: (0..digits).map(|_| self.ciphertext(context.full(), rng)).collect(),
        };
        let levels = params.levels().iter().map(|gadget| key(gadget.digits)).collect();
        let square = key(params.square_gadget().digits);
        let kept = context.kept();
        let pack = [(); 2].map(|()| {
            let rows = (0..params.pack_gadget().digits).map(|_| RlwePair {
                a: self.poly(kept, rng),
                b: [self.poly(kept, rng), self.poly(kept, rng)],
            });
            rows.collect()
        });
        let switch = params.switch().zip(context.switched()).map(|(switch, small)| {
            let count = params.degree() / switch.degree() * switch.gadget().digits;
            RingSwitchKey {
                rows: (0..count)
                    .map(|_| (0..=switch.rank()).map(|_| self.poly(small, rng)).collect())
                    .collect(),
            }
        });
        let private = params.tlwe().map(|tlwe| {
            [(); 2].map(|()| (0..tlwe.key_rows()).map(|_| self.ciphertext(context.full(), rng)).collect())
        });
        EvaluationKeys { levels, square, pack, switch, private }
    }
}
