//! Tables that the chain needs of the ring and of the public masks.

use hush_he::{algorithms::ROTATION, entities::ColumnMasks};
use hush_math::orbits::Orbits;

use super::{entries::EntryJoin, orbit::OrbitTables};
use crate::{
    CpuRing,
    ring::{self, LiftFractions, ModRing},
};

/// Tables for [`hush_ops::contract::ColumnOps::chain_hint`], the same for all hints.
pub struct ChainPlan {
    pub(super) orbits: OrbitTables,
    /// For each limb, the lift of words of the hint to residues divided by N.
    pub(super) lifts: Vec<LiftFractions>,
    /// The join of residues of entries divided by N to bytes.
    pub(super) join: EntryJoin,
    pub(super) rotation: RotationMask,
    /// v in Montgomery form, `[limb][slot]`.
    pub(super) conjugation: Vec<u32>,
}

impl ChainPlan {
    /// Creates the tables of a ring and its masks.
    ///
    /// # Panics
    /// If Q is not the product of two primes below 2^31, the degree is below 32, or the masks are of another ring.
    pub(crate) fn new(ring: &CpuRing, masks: &ColumnMasks) -> Self {
        let kept = &ring.kept;
        let context = ring.context();
        let &[p0, p1] = context.kept().moduli() else { panic!("two primes, not {}", kept.limbs().len()) };
        let degree = kept.degree();
        assert!(
            degree >= 32 && masks.rotation().degree() == degree && masks.conjugation().degree() == degree
        );
        assert!(masks.rotation().limbs() == 2 && masks.conjugation().limbs() == 2);
        let orbits = Orbits::new(degree, ROTATION);
        Self {
            lifts: LiftFractions::of_limbs(context.kept().rns(), degree),
            join: EntryJoin::new([p0, p1], degree as u64),
            rotation: RotationMask::new(kept, masks.rotation().words(), &orbits),
            conjugation: montgomery_form(kept, masks.conjugation().words()),
            orbits: OrbitTables::new(&orbits),
        }
    }
}

/// The mask w in the order of [`Orbits`], in which the slots of `w(X^(+-g^k))` are a range of words.
pub(super) struct RotationMask {
    degree: usize,
    /// For each limb, the two halves and the first one again, each of two rounds, in Montgomery form.
    words: Vec<u32>,
}

impl RotationMask {
    fn new(ring: &ModRing, mask: &[u32], orbits: &Orbits) -> Self {
        let degree = ring.degree();
        let mask = montgomery_form(ring, mask);
        let mut words = Vec::with_capacity(3 * mask.len());
        for limb in mask.chunks_exact(degree) {
            for half in [0, 1, 0] {
                words.extend((0..degree).map(|a| limb[orbits.slot(half, a)]));
            }
        }
        Self { degree, words }
    }

    /// Returns words modulo one limb: slot s of w(X^e), e = (-1)^half g^k, is the word at the place of s.
    pub(super) fn image(&self, limb: usize, half: usize, k: usize) -> &[u32] {
        let degree = self.degree;
        assert!(half < 2 && k < degree / 2);
        &self.words[(3 * limb + half) * degree + k..][..2 * degree - degree / 2]
    }
}

/// Returns the words of a polynomial in Montgomery form.
fn montgomery_form(ring: &ModRing, words: &[u32]) -> Vec<u32> {
    let mut form = vec![0; words.len()];
    ring::montgomery_form(ring, words, &mut form);
    form
}
