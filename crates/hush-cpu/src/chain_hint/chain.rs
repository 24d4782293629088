//! The chain of key switches. The digits depend on the masks alone, so only the masks are known here.
//!
//! ```text
//! sum[c] = image[c][N/2 - 1]
//! for k = N/2 - 2 down to 0, c = 0, 1:
//!     digit  = gadget digit of sum[c]
//!     sum[c] = image[c][k] + digit w(X^((-1)^c g^k));   image[c][k] = digit
//! digit = gadget digit of sum[1];   mask = sum[0] + digit v
//! ```

use super::{Block, orbit::OrbitTables};
use crate::{
    CpuRing,
    lanes::Lanes,
    ring::{
        self, Montgomery, Residues, centre_digits,
        vector_loop::{self, VectorLoop},
    },
};

impl Block<'_> {
    /// Runs the chain. Row (c, k) of the images becomes the digit that meets the key's image under `X^(+-g^k)`; rows (c, N/2 - 1)
    /// become zeros. Returns the digit that meets the conjugation key, and the mask, `[limb][slot]`.
    pub(super) fn switch(&mut self) -> (Vec<u32>, Vec<u32>) {
        let kept = &self.ring.kept;
        let bands = self.bands;
        let degree = self.degree;
        let steps = self.degree / 2;
        let image = |limb: usize, c: usize, k: usize| {
            let first = limb * bands.matrix_words() + (c * steps + k) * bands.stride();
            first..first + degree
        };
        let mut state = Chain::new(self.ring, self.scratch, self.transform);
        for (c, sum) in state.sums.iter_mut().enumerate() {
            for (limb, sum) in sum.chunks_exact_mut(degree).enumerate() {
                let image = &mut self.images[image(limb, c, steps - 1)];
                sum.copy_from_slice(image);
                image.fill(0);
            }
        }
        for k in (0..steps - 1).rev() {
            for c in 0..2 {
                state.digit(c);
                for (index, limb) in kept.limbs().iter().enumerate() {
                    let step = Step {
                        montgomery: limb.montgomery,
                        orbits: &self.plan.orbits,
                        mask: self.plan.rotation.image(index, c, k),
                        digit: &state.digits[c][index * degree..][..degree],
                        image: &mut self.images[image(index, c, k)],
                        sum: &mut state.sums[c][index * degree..][..degree],
                    };
                    vector_loop::run(kept.level(), step);
                }
            }
        }
        state.digit(1);
        let [mask, _] = state.sums;
        let [_, digit] = state.digits;
        let mut mask = mask.to_vec();
        let digit = digit.to_vec();
        let mut product = vec![0; digit.len()];
        ring::multiply(kept, &digit, &self.plan.conjugation, &mut product);
        ring::add(kept, &mut mask, &product);
        (digit, mask)
    }
}

/// The polynomials of both chains.
struct Chain<'a> {
    ring: &'a CpuRing,
    /// The polynomials that are switched.
    sums: [&'a mut [u32]; 2],
    /// The last digits of both sums.
    digits: [&'a mut [u32]; 2],
    /// A digit before its sign.
    unsigned: &'a mut [u32],
    transform: &'a mut [u64],
}

impl<'a> Chain<'a> {
    fn new(ring: &'a CpuRing, words: &'a mut [u32], transform: &'a mut [u64]) -> Self {
        let poly = ring.kept.words();
        let (polys, words) = words.split_at_mut(4 * poly);
        let (sums, digits) = polys.split_at_mut(2 * poly);
        Self {
            ring,
            sums: sums.split_at_mut(poly).into(),
            digits: digits.split_at_mut(poly).into(),
            unsigned: &mut words[..ring.kept.degree()],
            transform,
        }
    }

    /// Takes the digit of sum `c`, which is left in coefficient form.
    fn digit(&mut self, c: usize) {
        let kept = &self.ring.kept;
        let gadget = &self.ring.fold;
        let degree = self.ring.kept.degree();
        for (limb, words) in kept.limbs().iter().zip(self.sums[c].chunks_exact_mut(degree)) {
            limb.ntt.inverse(words, self.transform);
        }
        gadget.decomposer.decompose(kept.level(), self.sums[c], self.unsigned);
        let digits = self.digits[c].chunks_exact_mut(degree);
        for (index, (limb, words)) in kept.limbs().iter().zip(digits).enumerate() {
            centre_digits(kept, index, gadget.half, self.unsigned, words);
            limb.ntt.forward(words, self.transform);
        }
    }
}

/// `sum = image + digit mask`, where a slot of the mask has the word at the slot's place; then `image = digit`.
struct Step<'a> {
    montgomery: Montgomery,
    orbits: &'a OrbitTables,
    /// The words of [`super::plan::RotationMask::image`]: longer than any place.
    mask: &'a [u32],
    digit: &'a [u32],
    image: &'a mut [u32],
    sum: &'a mut [u32],
}

impl VectorLoop for Step<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let words = self.image.chunks_exact_mut(L::WIDTH).zip(self.digit.chunks_exact(L::WIDTH));
        for (i, (sum, (image, digit))) in self.sum.chunks_exact_mut(L::WIDTH).zip(words).enumerate() {
            // SAFETY: the caller has the instruction set; chunks are a vector, places are in the mask.
            unsafe {
                let residues = Residues::<L>::new(self.montgomery);
                let mask = L::gather(self.mask.as_ptr(), self.orbits.places(i * L::WIDTH));
                let digit = L::load(digit.as_ptr());
                let product = residues.mul(digit, mask);
                L::store(sum.as_mut_ptr(), residues.add(L::load(image.as_ptr()), product));
                L::store(image.as_mut_ptr(), digit);
            }
        }
    }
}
