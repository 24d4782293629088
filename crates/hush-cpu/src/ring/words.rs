//! Loops over polynomials in evaluation form, limb by limb.

use super::{
    ModRing,
    montgomery::Montgomery,
    residues::Residues,
    vector_loop::{self, VectorLoop},
    wide_lanes::WideLanes,
};

/// `difference = x - y`, for whole polynomials.
pub(super) fn subtract(ring: &ModRing, x: &[u32], y: &[u32], difference: &mut [u32]) {
    let degree = ring.degree();
    let operands = x.chunks_exact(degree).zip(y.chunks_exact(degree));
    let limbs = ring.limbs().iter().cycle();
    for ((limb, (x, y)), difference) in limbs.zip(operands).zip(difference.chunks_exact_mut(degree)) {
        vector_loop::run(ring.level(), Subtract { montgomery: limb.montgomery, x, y, difference });
    }
}

/// `to = digits - 2^(w-1)` modulo one limb, for digits below `2^w <= p`.
pub(super) fn centre_digits(ring: &ModRing, limb: usize, half: u32, digits: &[u32], to: &mut [u32]) {
    let montgomery = ring.limbs()[limb].montgomery;
    vector_loop::run(ring.level(), CentreDigits { montgomery, half, digits, to });
}

struct Subtract<'a> {
    montgomery: Montgomery,
    x: &'a [u32],
    y: &'a [u32],
    difference: &'a mut [u32],
}

impl VectorLoop for Subtract<'_> {
    #[inline(always)]
    unsafe fn run<L: WideLanes>(self) {
        let operands = self.x.chunks_exact(L::WIDTH).zip(self.y.chunks_exact(L::WIDTH));
        for (difference, (x, y)) in self.difference.chunks_exact_mut(L::WIDTH).zip(operands) {
            // SAFETY: the caller has the instruction set; chunks are a vector.
            unsafe {
                let residues = Residues::<L>::new(self.montgomery);
                let words = residues.sub(L::load(x.as_ptr()), L::load(y.as_ptr()));
                L::store(difference.as_mut_ptr(), words);
            }
        }
    }
}

struct CentreDigits<'a> {
    montgomery: Montgomery,
    half: u32,
    digits: &'a [u32],
    to: &'a mut [u32],
}

impl VectorLoop for CentreDigits<'_> {
    #[inline(always)]
    unsafe fn run<L: WideLanes>(self) {
        for (to, digits) in self.to.chunks_exact_mut(L::WIDTH).zip(self.digits.chunks_exact(L::WIDTH)) {
            // SAFETY: the caller has the instruction set; chunks are a vector.
            unsafe {
                let residues = Residues::<L>::new(self.montgomery);
                L::store(to.as_mut_ptr(), residues.sub(L::load(digits.as_ptr()), L::splat(self.half)));
            }
        }
    }
}
