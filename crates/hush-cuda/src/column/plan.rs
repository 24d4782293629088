//! The tables of the ring and of the public masks that the chain needs.

use hush_he::{algorithms::ROTATION, entities::ColumnMasks};
use hush_math::{
    orbits::Orbits,
    poly::{Eval, Poly},
    ring::Ring,
};
use hush_ops::OpsError;

use super::{
    interleaved::interleaved,
    pair_kernel::check_ring,
    views::{EntryJoin, FractionLift},
};
use crate::{
    device::{Buffer, Device},
    ring::{CudaRing, montgomery_form},
};

/// The tables for [`hush_ops::contract::ColumnOps::chain_hint`] on the device. All hints share them.
pub struct ChainPlan {
    /// The conversion from words of the hint to residues divided by N.
    pub(super) lift: FractionLift,
    /// The conversion from residues of entries divided by N to bytes.
    pub(super) join: EntryJoin,
    /// The slot of each place, and the place of each slot ([`Orbits`]).
    pub(super) slots: Buffer<u32>,
    pub(super) places: Buffer<u32>,
    /// The mask w as `[limb][half][place]`, in Montgomery form, with the places in the order of [`interleaved`].
    pub(super) rotation: Buffer<u32>,
    /// The mask v as `[limb][slot]`, in Montgomery form.
    pub(super) conjugation: Buffer<u32>,
}

impl ChainPlan {
    /// Makes and uploads the tables.
    ///
    /// # Errors
    /// [`OpsError::Backend`] if there are no kernels for the ring, or the device has no memory for the tables.
    pub(super) fn new(device: &Device, ring: &CudaRing, masks: &ColumnMasks) -> Result<Self, OpsError> {
        check_ring(ring)?;
        let kept = ring.context().kept();
        let orbits = Orbits::new(kept.degree(), ROTATION);
        let conjugation = montgomery_words(kept, masks.conjugation().words());
        Ok(Self {
            lift: FractionLift::new(kept.rns(), kept.degree()),
            join: EntryJoin::new(kept),
            rotation: device.upload(&rotation_words(kept, masks.rotation(), &orbits))?,
            conjugation: device.upload(&conjugation)?,
            slots: device.upload(orbits.slots())?,
            places: device.upload(orbits.places())?,
        })
    }
}

/// Converts residues of polynomials `[poly][limb][slot]` to Montgomery form.
pub(super) fn montgomery_words(ring: &Ring, words: &[u32]) -> Vec<u32> {
    let limbs = words.chunks_exact(ring.degree()).zip(ring.moduli().iter().cycle());
    limbs.flat_map(|(limb, &p)| limb.iter().map(move |&word| montgomery_form(p, word))).collect()
}

/// Returns the words of [`ChainPlan::rotation`].
fn rotation_words(ring: &Ring, mask: &Poly<Eval>, orbits: &Orbits) -> Vec<u32> {
    let degree = ring.degree();
    let round = ring.degree() / 2;
    let mut words = vec![0; mask.words().len()];
    for (limb, &p) in ring.moduli().iter().enumerate() {
        for (half, a) in (0..2).flat_map(|half| (0..round).map(move |a| (half, a))) {
            let word = mask.limb(limb)[orbits.slot(half, a)];
            words[limb * degree + half * round + interleaved(degree, a)] = montgomery_form(p, word);
        }
    }
    words
}
