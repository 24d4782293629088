//! From R modulo Q_e to R modulo Q_1: the dropped prime goes.

use super::{
    ModRing,
    montgomery::Montgomery,
    vectorise::{self, VectorLoop},
};

/// What dropping the last prime P needs.
pub(super) struct DropPrime {
    /// P.
    dropped: u32,
    /// P^-1 modulo each kept prime, in Montgomery form.
    inverses: Vec<u32>,
}

impl DropPrime {
    /// # Panics
    /// If P is not below the kept primes.
    pub(super) fn new(full: &ModRing, kept: &ModRing) -> Self {
        let dropped = full.limbs()[kept.limbs().len()].montgomery.p();
        let inverses = kept.limbs().iter().map(|limb| {
            assert!(dropped < limb.montgomery.p(), "the dropped prime is the smallest");
            limb.montgomery.form(limb.ntt.plan().modulus().inverse(dropped))
        });
        Self { dropped, inverses: inverses.collect() }
    }

    /// [`hush_he::algorithms::drop_prime`] of the polynomial `from` modulo Q_e; `rest` and `centred` are N words of
    /// scratch memory.
    pub(super) fn apply(
        &self,
        ring: &ModRing,
        from: &[u32],
        to: &mut [u32],
        [rest, centred]: [&mut [u32]; 2],
        transform: &mut [u64],
    ) {
        let degree = ring.degree();
        let (kept, dropped) = from.split_at(to.len());
        rest.copy_from_slice(dropped);
        ring.limbs()[self.inverses.len()].ntt.inverse(rest, transform);
        let limbs = ring.limbs().iter().zip(&self.inverses);
        let polys = kept.chunks_exact(degree).zip(to.chunks_exact_mut(degree));
        for ((limb, &inverse), (from, to)) in limbs.zip(polys) {
            let montgomery = limb.montgomery;
            vectorise::run(ring.level(), Centre { montgomery, dropped: self.dropped, rest, centred });
            limb.ntt.forward(centred, transform);
            vectorise::run(ring.level(), Divide { montgomery, inverse, from, centred, to });
        }
    }
}

/// Centred residues modulo P, modulo a larger prime.
struct Centre<'a> {
    montgomery: Montgomery,
    dropped: u32,
    rest: &'a [u32],
    centred: &'a mut [u32],
}

impl VectorLoop for Centre<'_> {
    #[inline(always)]
    fn run(self) {
        let (half, above) = (self.dropped / 2, self.montgomery.p() - self.dropped);
        for (centred, &rest) in self.centred.iter_mut().zip(self.rest) {
            *centred = if rest > half { rest + above } else { rest };
        }
    }
}

/// `to = (from - centred) / P`.
struct Divide<'a> {
    montgomery: Montgomery,
    inverse: u32,
    from: &'a [u32],
    centred: &'a [u32],
    to: &'a mut [u32],
}

impl VectorLoop for Divide<'_> {
    #[inline(always)]
    fn run(self) {
        let m = self.montgomery;
        for ((to, &from), &centred) in self.to.iter_mut().zip(self.from).zip(self.centred) {
            *to = m.mul(m.sub(from, centred), self.inverse);
        }
    }
}
