//! The polynomials of a hint's chain that packing and folding need, prepared once.

use hush_ops::{contract::ChainPolys, pack_shape::PackShape};
use rayon::prelude::*;

use crate::{
    Cpu, CpuRing,
    buffer::AlignedBuffer,
    ring::{self, ModRing},
};

/// The polynomials of all plaintexts of a packing, as the CPU backend holds them.
pub struct CpuChain {
    shape: PackShape,
    /// `[plaintext][limb][slot]`, in Montgomery form.
    digits: AlignedBuffer<u32>,
    /// The masks of the terms `c_k` that each plane is folded from, `[plane][k][limb][N]`. The mask of c_0 is in evaluation form,
    /// all others are in coefficient form. Empty if nothing is folded.
    masks: AlignedBuffer<u32>,
}

impl CpuChain {
    /// Takes over polynomials that fit the shape.
    pub(super) fn new(cpu: &Cpu, ring: &CpuRing, shape: PackShape, polys: &ChainPolys) -> Self {
        let kept = &ring.kept;
        let mut digits = AlignedBuffer::zeroed(polys.digits.len());
        ring::montgomery_form(kept, &polys.digits, &mut digits);
        let masks = match &polys.masks[..] {
            [] => AlignedBuffer::zeroed(0),
            masks => term_masks(cpu, kept, &shape, masks),
        };
        Self { shape, digits, masks }
    }

    /// Returns the shape of the packing.
    pub(super) fn shape(&self) -> &PackShape {
        &self.shape
    }

    /// Whether there are masks, which a fold needs.
    pub(super) fn has_masks(&self) -> bool {
        !self.masks.is_empty()
    }

    /// Returns the number of terms that each plane is folded from, a power of two.
    pub(super) fn terms(&self) -> usize {
        terms(&self.shape)
    }

    /// Returns the digit of a plaintext, in evaluation form, its words in Montgomery form.
    pub(super) fn digit(&self, ring: &ModRing, plaintext: usize) -> &[u32] {
        &self.digits[plaintext * ring.words()..][..ring.words()]
    }

    /// Returns the mask of term `k` of a plane: in evaluation form for k = 0, and in coefficient form otherwise.
    pub(super) fn mask(&self, ring: &ModRing, plane: usize, k: usize) -> &[u32] {
        &self.masks[(plane * self.terms() + k) * ring.words()..][..ring.words()]
    }
}

fn terms(shape: &PackShape) -> usize {
    shape.entries().next_power_of_two()
}

/// Computes the masks of the terms of all planes from the masks of all plaintexts.
fn term_masks(cpu: &Cpu, ring: &ModRing, shape: &PackShape, masks: &[u32]) -> AlignedBuffer<u32> {
    let plane_words = terms(shape) * ring.words();
    let mut out = AlignedBuffer::zeroed(shape.planes() * plane_words);
    cpu.install(|| {
        out.par_chunks_exact_mut(plane_words).enumerate().with_max_len(1).for_each(|(plane, out)| {
            cpu.with_workspace(|workspace| {
                let (turned, transform) = workspace.ring_buffers(2 * ring.degree(), ring.transform_words());
                let entries = masks.chunks_exact(ring.words()).skip(plane).step_by(shape.planes());
                plane_masks(ring, entries, out, turned, transform);
            });
        });
    });
    out
}

/// Computes the terms of one plane from the masks of all entries in evaluation form. `out` must be zeros.
fn plane_masks<'a>(
    ring: &ModRing,
    entries: impl Iterator<Item = &'a [u32]>,
    out: &mut [u32],
    turned: &mut [u32],
    transform: &mut [u64],
) {
    let degree = ring.degree();
    let count = out.len() / ring.words();
    for (entry, mask) in entries.enumerate() {
        let out = &mut out[ring::place(entry, count) * ring.words()..][..ring.words()];
        let limbs = out.chunks_exact_mut(degree).zip(mask.chunks_exact(degree));
        for (limb, (out, mask)) in ring.limbs().iter().zip(limbs) {
            let modulus = limb.ntt.plan().modulus();
            let scale = modulus.inverse(modulus.reduce(count as u64));
            ring::add_scaled(ring.level(), limb, scale, mask, out);
        }
        ring.inverse(out, transform);
    }
    ring::spectrum(ring, out, turned);
    ring.forward(&mut out[..ring.words()], transform);
}
