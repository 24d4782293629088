//! Loops over polynomials in evaluation form, limb by limb.

use super::{
    montgomery::Montgomery,
    residues::Residues,
    vector_loop::{self, VectorLoop},
};
use crate::{
    Level,
    lanes::Lanes,
    ring::{Limb, ModRing},
};

/// Computes `difference = x - y`, for whole polynomials.
pub(in crate::ring) fn subtract(ring: &ModRing, x: &[u32], y: &[u32], difference: &mut [u32]) {
    let degree = ring.degree();
    let operands = x.chunks_exact(degree).zip(y.chunks_exact(degree));
    let limbs = ring.limbs().iter().cycle();
    for ((limb, (x, y)), difference) in limbs.zip(operands).zip(difference.chunks_exact_mut(degree)) {
        vector_loop::run(ring.level(), Subtract { montgomery: limb.montgomery, x, y, difference });
    }
}

/// Computes `sum += part`, for whole polynomials.
pub(crate) fn add(ring: &ModRing, sum: &mut [u32], part: &[u32]) {
    let degree = ring.degree();
    let limbs = ring.limbs().iter().cycle();
    for (limb, (sum, part)) in limbs.zip(sum.chunks_exact_mut(degree).zip(part.chunks_exact(degree))) {
        vector_loop::run(ring.level(), Add { montgomery: limb.montgomery, sum, part });
    }
}

/// Computes `sum += factor part` modulo one limb, for a canonical factor.
pub(crate) fn add_scaled(level: Level, limb: &Limb, factor: u32, part: &[u32], sum: &mut [u32]) {
    let montgomery = limb.montgomery;
    vector_loop::run(level, AddScaled { montgomery, factor: montgomery.form(factor), part, sum });
}

/// Writes the Montgomery forms of the words of whole polynomials to `form`.
pub(crate) fn montgomery_form(ring: &ModRing, words: &[u32], form: &mut [u32]) {
    let degree = ring.degree();
    let limbs = ring.limbs().iter().cycle();
    for (limb, (words, form)) in limbs.zip(words.chunks_exact(degree).zip(form.chunks_exact_mut(degree))) {
        form.iter_mut().zip(words).for_each(|(form, &word)| *form = limb.montgomery.form(word));
    }
}

/// Computes `product = x y`, for whole polynomials. The words of `y` are in Montgomery form.
pub(crate) fn multiply(ring: &ModRing, x: &[u32], y: &[u32], product: &mut [u32]) {
    let degree = ring.degree();
    let operands = x.chunks_exact(degree).zip(y.chunks_exact(degree));
    let limbs = ring.limbs().iter().cycle();
    for ((limb, (x, y)), product) in limbs.zip(operands).zip(product.chunks_exact_mut(degree)) {
        vector_loop::run(ring.level(), Multiply { montgomery: limb.montgomery, x, y, product });
    }
}

/// Computes `to = digits - 2^(w-1)` modulo one limb, for digits below `2^w <= p`.
pub(crate) fn centre_digits(ring: &ModRing, limb: usize, half: u32, digits: &[u32], to: &mut [u32]) {
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
    unsafe fn run<L: Lanes>(self) {
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

struct Add<'a> {
    montgomery: Montgomery,
    sum: &'a mut [u32],
    part: &'a [u32],
}

impl VectorLoop for Add<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        for (sum, part) in self.sum.chunks_exact_mut(L::WIDTH).zip(self.part.chunks_exact(L::WIDTH)) {
            // SAFETY: the caller has the instruction set; chunks are a vector.
            unsafe {
                let residues = Residues::<L>::new(self.montgomery);
                let words = residues.add(L::load(sum.as_ptr()), L::load(part.as_ptr()));
                L::store(sum.as_mut_ptr(), words);
            }
        }
    }
}

struct AddScaled<'a> {
    montgomery: Montgomery,
    /// The factor in Montgomery form.
    factor: u32,
    part: &'a [u32],
    sum: &'a mut [u32],
}

impl VectorLoop for AddScaled<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        for (sum, part) in self.sum.chunks_exact_mut(L::WIDTH).zip(self.part.chunks_exact(L::WIDTH)) {
            // SAFETY: the caller has the instruction set; chunks are a vector.
            unsafe {
                let residues = Residues::<L>::new(self.montgomery);
                let scaled = residues.mul(L::load(part.as_ptr()), L::splat(self.factor));
                L::store(sum.as_mut_ptr(), residues.add(L::load(sum.as_ptr()), scaled));
            }
        }
    }
}

struct Multiply<'a> {
    montgomery: Montgomery,
    x: &'a [u32],
    y: &'a [u32],
    product: &'a mut [u32],
}

impl VectorLoop for Multiply<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let operands = self.x.chunks_exact(L::WIDTH).zip(self.y.chunks_exact(L::WIDTH));
        for (product, (x, y)) in self.product.chunks_exact_mut(L::WIDTH).zip(operands) {
            // SAFETY: the caller has the instruction set; chunks are a vector.
            unsafe {
                let residues = Residues::<L>::new(self.montgomery);
                L::store(product.as_mut_ptr(), residues.mul(L::load(x.as_ptr()), L::load(y.as_ptr())));
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
    unsafe fn run<L: Lanes>(self) {
        for (to, digits) in self.to.chunks_exact_mut(L::WIDTH).zip(self.digits.chunks_exact(L::WIDTH)) {
            // SAFETY: the caller has the instruction set; chunks are a vector.
            unsafe {
                let residues = Residues::<L>::new(self.montgomery);
                L::store(to.as_mut_ptr(), residues.sub(L::load(digits.as_ptr()), L::splat(self.half)));
            }
        }
    }
}
