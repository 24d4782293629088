//! The step from R modulo Q_e to R modulo Q_1, which drops a prime P.
//!
//! ```text
//! for every kept prime:  to = (from - [from mod P, centred]) / P
//! ```

use super::{
    ModRing,
    arithmetic::{
        montgomery::Montgomery,
        residues::Residues,
        vector_loop::{self, VectorLoop},
    },
};
use crate::lanes::Lanes;

/// The constants for dropping the last prime P.
pub(super) struct DropPrime {
    /// The dropped prime P.
    dropped: Montgomery,
    /// The inverse P^-1 modulo each kept prime, in Montgomery form.
    inverses: Vec<u32>,
}

impl DropPrime {
    /// # Panics
    /// If P is not below the kept primes.
    pub(super) fn new(full: &ModRing, kept: &ModRing) -> Self {
        let dropped = full.limbs()[kept.limbs().len()].montgomery;
        let inverses = kept.limbs().iter().map(|limb| {
            assert!(dropped.p() < limb.montgomery.p(), "the dropped prime is the smallest");
            limb.montgomery.form(limb.ntt.plan().modulus().inverse(dropped.p()))
        });
        Self { dropped, inverses: inverses.collect() }
    }

    /// Computes [`hush_he::algorithms::drop_primes`] of the polynomial `from` modulo Q_e. `rest` and `centred` are N words of
    /// scratch memory. Results leave the caches at once: they are the leaves of an expansion, which are many
    /// times larger than caches. The caller must order these stores before reads of other threads ([`crate::kernels::end_stream`]).
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
            vector_loop::run(ring.level(), Centre { montgomery, dropped: self.dropped, rest, centred });
            limb.ntt.forward(centred, transform);
            vector_loop::run(ring.level(), Divide { montgomery, inverse, from, centred, to });
        }
    }
}

/// The loop that turns centred residues modulo P into residues modulo a larger prime.
struct Centre<'a> {
    montgomery: Montgomery,
    dropped: Montgomery,
    rest: &'a [u32],
    centred: &'a mut [u32],
}

impl VectorLoop for Centre<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let half = self.dropped.p() / 2;
        for (to, rest) in self.centred.chunks_exact_mut(L::WIDTH).zip(self.rest.chunks_exact(L::WIDTH)) {
            // SAFETY: the caller has the instruction set; chunks are a vector.
            unsafe {
                let dropped = Residues::<L>::new(self.dropped);
                let kept = Residues::<L>::new(self.montgomery);
                // With P = 2 half + 1, both `r + half` for r <= half and `r - half - 1` for others are in 0..P, and
                // half too large.
                let shifted = dropped.sub(L::load(rest.as_ptr()), L::splat(half + 1));
                L::store(to.as_mut_ptr(), kept.sub(shifted, L::splat(half)));
            }
        }
    }
}

/// The loop `to = (from - centred) / P`, which stores by [`Lanes::stream`].
struct Divide<'a> {
    montgomery: Montgomery,
    inverse: u32,
    from: &'a [u32],
    centred: &'a [u32],
    to: &'a mut [u32],
}

impl VectorLoop for Divide<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let operands = self.from.chunks_exact(L::WIDTH).zip(self.centred.chunks_exact(L::WIDTH));
        for (to, (from, centred)) in self.to.chunks_exact_mut(L::WIDTH).zip(operands) {
            // SAFETY: the caller has the instruction set; chunks are a vector.
            unsafe {
                let residues = Residues::<L>::new(self.montgomery);
                let difference = residues.sub(L::load(from.as_ptr()), L::load(centred.as_ptr()));
                L::stream(to.as_mut_ptr(), residues.mul_splat(difference, L::splat(self.inverse)));
            }
        }
    }
}
