//! The polynomials of the chain, in the form that packing and folding need, computed once.

use hush_he::params::RingParams;
use hush_math::ring::Ring;
use hush_ops::{OpsError, contract::ChainPolys, pack_shape::PackShape, steps::poly_bytes};

use super::{pair_kernel::check_ring, plan::montgomery_words, terms};
use crate::{
    device::{Buffer, Device, MAX_GRID},
    pack::PackColumns,
    ring::{self, CudaRing},
};

/// The polynomials of all plaintexts of a packing, on the device.
pub struct CudaChain {
    shape: PackShape,
    rows: PackColumns,
    /// The digits: `[plaintext][limb][slot]`, in Montgomery form.
    pub(super) digits: Buffer<u32>,
    /// The masks of the terms `c_k` of every plane, `[plane][k][limb][coefficient]`. Empty if entries are not folded.
    pub(super) masks: Buffer<u32>,
}

impl CudaChain {
    /// Returns the bytes of the polynomials: the digits, and the masks of terms where entries are folded.
    pub(crate) fn bytes_for(ring: &RingParams, shape: &PackShape, folds: bool) -> usize {
        let masks = if folds { shape.planes() * shape.entries().next_power_of_two() } else { 0 };
        (shape.plaintexts() + masks) * poly_bytes(ring)
    }

    /// Uploads polynomials that fit the shape, and transforms their masks.
    ///
    /// # Errors
    /// [`OpsError::Shape`] if there are masks and more planes than a grid has rows, [`OpsError::Backend`] if there are no kernels
    /// for the ring, or the device fails.
    pub(super) fn new(
        device: &Device,
        ring: &CudaRing,
        shape: PackShape,
        polys: &ChainPolys,
    ) -> Result<Self, OpsError> {
        check_ring(ring)?;
        if !polys.masks.is_empty() {
            OpsError::check_shape("open_chain", "planes", shape.planes().min(MAX_GRID[1]), shape.planes())?;
        }
        let kept = ring.context().kept();
        let digits = device.upload(&montgomery_words(kept, &polys.digits))?;
        let masks = device.upload(&scaled_masks(kept, &shape, &polys.masks))?;
        ring::inverse(device, ring.kept(), &masks.slice(..), &masks.slice(..))?;
        let masks = terms::transform(device, ring.kept(), masks, terms(&shape))?;
        let rows = PackColumns::new("open_chain", &shape, &(0..shape.plaintexts()))?;
        Ok(Self { shape, rows, digits, masks })
    }

    /// Returns the shape of the packing.
    pub(super) fn shape(&self) -> &PackShape {
        &self.shape
    }

    /// Returns the rows of each plaintext, as kernels take them.
    pub(super) fn rows(&self) -> &PackColumns {
        &self.rows
    }

    /// Returns whether the chain has masks, so that entries can be folded.
    pub(super) fn has_masks(&self) -> bool {
        !self.masks.is_empty()
    }

    /// Returns T, the number of terms from which each plane is folded: a power of two.
    pub(super) fn terms(&self) -> usize {
        terms(&self.shape)
    }
}

fn terms(shape: &PackShape) -> usize {
    shape.entries().next_power_of_two()
}

/// Returns the masks of all plaintexts, divided by T, as `[plane][entry][limb][slot]`; zeros for missing entries up to T.
fn scaled_masks(ring: &Ring, shape: &PackShape, masks: &[u32]) -> Vec<u32> {
    if masks.is_empty() {
        return Vec::new();
    }
    let terms = terms(shape);
    let poly = ring.limbs() * ring.degree();
    let mut scaled = vec![0; shape.planes() * terms * poly];
    for (plaintext, mask) in masks.chunks_exact(poly).enumerate() {
        let entry = plaintext / shape.planes();
        let plane = plaintext % shape.planes();
        let to = scaled[(plane * terms + entry) * poly..][..poly].chunks_exact_mut(ring.degree());
        for ((to, mask), p) in to.zip(mask.chunks_exact(ring.degree())).zip(ring.moduli()) {
            let scale = p.inverse(p.reduce(terms as u64));
            to.iter_mut().zip(mask).for_each(|(to, &word)| *to = p.mul(word, scale));
        }
    }
    scaled
}
