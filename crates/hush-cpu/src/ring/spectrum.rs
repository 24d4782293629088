//! Fourier transforms of polynomials, whose root of unity is a power of X.

use super::{
    ModRing,
    arithmetic::{
        montgomery::Montgomery,
        residues::Residues,
        vector_loop::{self, VectorLoop},
    },
};
use crate::lanes::Lanes;

/// Returns the position at which [`spectrum`] reads polynomial `j` of `count`, a power of two: j with its bits reversed.
pub(crate) fn place(j: usize, count: usize) -> usize {
    let bits = count.trailing_zeros();
    j.reverse_bits().checked_shr(usize::BITS - bits).unwrap_or(0)
}

/// Computes `c_k = sum_j X^(-2N j k / T) x_j` for k < T, in coefficient form, where T is the number of polynomials, a power of two
/// that is at most 2N. Works in place: x_j is at [`place`] j, c_k at k.
///
/// The recursion goes depth first, so that small transforms stay in cache. `turned` is scratch memory of 2N words.
pub(crate) fn spectrum(ring: &ModRing, polys: &mut [u32], turned: &mut [u32]) {
    let degree = ring.degree();
    let half = polys.len() / 2;
    if half < ring.words() {
        return;
    }
    let (even, odd) = polys.split_at_mut(half);
    spectrum(ring, even, turned);
    spectrum(ring, odd, turned);
    let count = half / ring.words();
    let limbs = even.chunks_exact_mut(degree).zip(odd.chunks_exact_mut(degree));
    for (index, ((u, v), limb)) in limbs.zip(ring.limbs().iter().cycle()).enumerate() {
        let power = degree * (index / ring.limbs().len()) / count;
        let montgomery = limb.montgomery;
        vector_loop::run(ring.level(), Butterfly { montgomery, power, u, v, turned });
    }
}

/// The loop `(u, v) = (u + X^-power v, u - X^-power v)` modulo one limb, for a power below N.
struct Butterfly<'a> {
    montgomery: Montgomery,
    power: usize,
    u: &'a mut [u32],
    v: &'a mut [u32],
    /// Scratch memory for v, -v: from word `power` on, it is `X^-power v`.
    turned: &'a mut [u32],
}

impl VectorLoop for Butterfly<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let (same, negative) = self.turned.split_at_mut(self.v.len());
        let turned = same.chunks_exact_mut(L::WIDTH).zip(negative.chunks_exact_mut(L::WIDTH));
        for ((same, negative), v) in turned.zip(self.v.chunks_exact(L::WIDTH)) {
            // SAFETY: the caller has the instruction set; chunks are a vector.
            unsafe {
                let v = L::load(v.as_ptr());
                L::store(same.as_mut_ptr(), v);
                L::store(negative.as_mut_ptr(), Residues::<L>::new(self.montgomery).sub(L::splat(0), v));
            }
        }
        let operands = self.u.chunks_exact_mut(L::WIDTH).zip(self.v.chunks_exact_mut(L::WIDTH));
        for ((u, v), turned) in operands.zip(self.turned[self.power..].chunks_exact(L::WIDTH)) {
            // SAFETY: as above.
            unsafe {
                let residues = Residues::<L>::new(self.montgomery);
                let x = L::load(u.as_ptr());
                let y = L::load(turned.as_ptr());
                L::store(u.as_mut_ptr(), residues.add(x, y));
                L::store(v.as_mut_ptr(), residues.sub(x, y));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hush_math::{csprng::Csprng, modulus::find_primes, ring::Ring};

    use super::*;
    use crate::Level;

    const DEGREE: usize = 64;

    /// Computes `sum_j X^(-2N j k / T) x_j` modulo one limb, by definition.
    fn term(base: &Ring, limb: usize, polys: &[&[u32]], k: usize) -> Vec<u32> {
        let p = base.moduli()[limb];
        let mut sum = vec![0; DEGREE];
        for (j, poly) in polys.iter().enumerate() {
            let power = 2 * DEGREE / polys.len() * j * k;
            for (i, &word) in poly[limb * DEGREE..][..DEGREE].iter().enumerate() {
                // X^(2N) = 1, X^N = -1.
                let at = (i + 2 * DEGREE * polys.len() - power) % (2 * DEGREE);
                let word = if at < DEGREE { word } else { p.neg(word) };
                sum[at % DEGREE] = p.add(sum[at % DEGREE], word);
            }
        }
        sum
    }

    #[test]
    fn terms_are_those_of_the_definition() {
        let mut rng = Csprng::insecure_from_seed(7);
        let base = Ring::new(DEGREE, &[find_primes(DEGREE, 26, 1)[0], find_primes(DEGREE, 32, 1)[0]]);
        for count in [1, 2, 4, 8, 32, 2 * DEGREE] {
            let polys: Vec<u32> = (0..count)
                .flat_map(|_| base.expand_uniform::<hush_math::poly::Coeff>(&mut rng).into_words())
                .collect();
            let words = base.limbs() * DEGREE;
            let all: Vec<&[u32]> = polys.chunks_exact(words).collect();
            let expected: Vec<u32> = (0..count)
                .flat_map(|k| (0..base.limbs()).map(move |limb| (k, limb)))
                .flat_map(|(k, limb)| term(&base, limb, &all, k))
                .collect();
            for level in Level::usable() {
                let ring = ModRing::new(level, &base);
                let mut terms = vec![0; polys.len()];
                for (j, poly) in all.iter().enumerate() {
                    terms[place(j, count) * words..][..words].copy_from_slice(poly);
                }
                spectrum(&ring, &mut terms, &mut vec![0; 2 * DEGREE]);
                assert!(terms == expected, "{level}, {count} polynomials");
            }
        }
    }
}
