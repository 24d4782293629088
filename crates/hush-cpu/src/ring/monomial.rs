//! The two children of a node, and the monomial that one of them is multiplied by.

use super::{
    ModRing,
    montgomery::Montgomery,
    residues::Residues,
    vector_loop::{self, VectorLoop},
    wide_lanes::WideLanes,
};

/// Slots that share a factor in the tables of level 4; those of lower levels have a factor a slot.
const SHARED: usize = 16;

/// X^(-2^level) in evaluation form.
///
/// Slot `i` holds the value at psi^e with e = 2 reverse(i) + 1, so `2^level` slots from an aligned one on have the same
/// value.
pub(super) struct Monomial {
    /// Slots that share a factor: 1, or at least 16.
    run: usize,
    /// `[limb][slot / run]`, in Montgomery form.
    factors: Vec<u32>,
}

impl Monomial {
    pub(super) fn new(ring: &ModRing, level: usize) -> Self {
        let degree = ring.degree();
        let run = if 1 << level < SHARED { 1 } else { 1 << level };
        let mut factors = Vec::with_capacity(ring.words() / run);
        for limb in ring.limbs() {
            // X^(-2^level) = -X^(N - 2^level)
            let mut values = vec![0; degree];
            values[degree - (1 << level)] = limb.montgomery.p() - 1;
            limb.ntt.plan().forward(&mut values);
            factors.extend(values.into_iter().step_by(run).map(|value| limb.montgomery.form(value)));
        }
        Self { run, factors }
    }

    /// `(image, node) = (node + image, (node - image) X^(-2^level))`, for whole polynomials.
    pub(super) fn split(&self, ring: &ModRing, image: &mut [u32], node: &mut [u32]) {
        let degree = ring.degree();
        let limbs = ring.limbs().iter().zip(self.factors.chunks_exact(degree / self.run)).cycle();
        let nodes = image.chunks_exact_mut(degree).zip(node.chunks_exact_mut(degree));
        for ((limb, factors), (image, node)) in limbs.zip(nodes) {
            let (montgomery, run) = (limb.montgomery, self.run);
            vector_loop::run(ring.level(), Split { montgomery, run, factors, image, node });
        }
    }
}

struct Split<'a> {
    montgomery: Montgomery,
    run: usize,
    factors: &'a [u32],
    image: &'a mut [u32],
    node: &'a mut [u32],
}

impl VectorLoop for Split<'_> {
    #[inline(always)]
    unsafe fn run<L: WideLanes>(self) {
        let (factors, shift) = (self.factors, self.run.trailing_zeros());
        // SAFETY: the caller has the instruction set; slices are a vector.
        unsafe {
            if self.run == 1 {
                let factor = |i: usize| L::load(factors[i..][..L::WIDTH].as_ptr());
                split::<L>(self.montgomery, self.image, self.node, factor);
            } else {
                split::<L>(self.montgomery, self.image, self.node, |i| L::splat(factors[i >> shift]));
            }
        }
    }
}

/// `factor(i)` is the factors of the vector at slot `i`.
///
/// # Safety
/// The CPU must have the instruction set of `L`.
#[inline(always)]
unsafe fn split<L: WideLanes>(
    montgomery: Montgomery,
    image: &mut [u32],
    node: &mut [u32],
    factor: impl Fn(usize) -> L::Words,
) {
    let vectors = image.chunks_exact_mut(L::WIDTH).zip(node.chunks_exact_mut(L::WIDTH));
    for (index, (image, node)) in vectors.enumerate() {
        // SAFETY: the caller has the instruction set; chunks are a vector.
        unsafe {
            let residues = Residues::<L>::new(montgomery);
            let (x, y) = (L::load(node.as_ptr()), L::load(image.as_ptr()));
            L::store(image.as_mut_ptr(), residues.add(x, y));
            L::store(node.as_mut_ptr(), residues.mul(residues.sub(x, y), factor(index * L::WIDTH)));
        }
    }
}
