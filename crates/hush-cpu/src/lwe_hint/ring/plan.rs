//! The matrix A in transformed form.

use std::ops::Range;

use hush_he::entities::PublicMatrix;
use hush_math::{modulus::find_primes, ntt::NttPlan};

/// The number of bits of the two primes: sums of 32 products below 4 p^2 stay below 2^63, and reductions can be lazy.
const PRIME_BITS: u32 = 28;
/// The most database columns whose sum is recovered from its two residues.
const SEGMENT_COLS: usize = 1 << 16;
/// A bound of such a sum: 2^16 columns of 2^7 times 2^31. The bound is 0 modulo 2^32.
const SUM_BOUND: u64 = 1 << 54;
/// The number of columns of a set of blocks. Its transforms, 64 bytes a column, stay in the L2 cache and meet sums that are loaded
/// once.
const SET_COLS: usize = 4096;
/// The most blocks whose products are added up before a reduction.
pub(super) const MAX_LAZY_BLOCKS: usize = 32;

/// The matrix A, modulo both primes and transformed, with the constants that join residues.
pub(crate) struct RingPlan {
    /// The ring degree d.
    pub(super) degree: usize,
    /// The LWE dimension n.
    pub(super) n: usize,
    /// The number of blocks of d columns, the last one padded.
    blocks: usize,
    /// The number of blocks of a set; the last set may have fewer.
    set_blocks: usize,
    /// The matrix A modulo each prime.
    pub(super) residues: [RingResidues; 2],
    /// The inverse 1/p0 modulo p1 and its Shoup companion.
    pub(super) join: (u32, u32),
}

/// The matrix A modulo one prime.
pub(super) struct RingResidues {
    /// The number-theoretic transform.
    pub(super) ntt: NttPlan,
    /// The inverse 1/p modulo 2^32, for Montgomery's reduction.
    pub(super) montgomery: u32,
    /// The value [`SUM_BOUND`] modulo p, which is added to make sums positive.
    pub(super) offset: u32,
    /// The transforms of `alpha(1/X) * 2^32 / d`, set after set: `[point][block of the set][n / d elements]`.
    alpha: Vec<u32>,
}

impl RingPlan {
    /// Expands and transforms A (8 bytes a word of its ring elements). `None` if there are no two primes for the
    /// degree whose product exceeds twice the bound of a sum.
    pub(super) fn new(a: &PublicMatrix, degree: usize) -> Option<Self> {
        let primes = find_primes(degree, PRIME_BITS, 2);
        let &p0 = primes.first()?;
        let &p1 = primes.get(1)?;
        if u64::from(p0) * u64::from(p1) <= 2 * SUM_BOUND || degree > SEGMENT_COLS {
            return None;
        }
        let mut plan = Self {
            degree,
            n: a.n(),
            blocks: a.cols().div_ceil(degree),
            set_blocks: (SET_COLS / degree).clamp(1, MAX_LAZY_BLOCKS),
            residues: [RingResidues::new(p0, degree), RingResidues::new(p1, degree)],
            join: (0, 0),
        };
        let last = plan.residues[1].ntt.modulus();
        let inverse = last.inverse(last.reduce(u64::from(p0)));
        plan.join = (inverse, last.shoup(inverse));
        plan.expand(a);
        Some(plan)
    }

    /// Returns the sets of each segment, as ranges of blocks.
    pub(super) fn segments(&self) -> impl Iterator<Item = impl Iterator<Item = Range<usize>> + Clone> {
        let segment_blocks = SEGMENT_COLS / (self.degree * self.set_blocks) * self.set_blocks;
        (0..self.blocks).step_by(segment_blocks).map(move |start| {
            let end = self.blocks.min(start + segment_blocks);
            let set_blocks = self.set_blocks;
            (start..end).step_by(set_blocks).map(move |first| first..end.min(first + set_blocks))
        })
    }

    /// Returns the number of columns of a whole set.
    pub(super) fn set_cols(&self) -> usize {
        self.set_blocks * self.degree
    }

    /// Returns the transformed elements of the blocks of one set: `[point][block][element]`.
    pub(super) fn set_alpha<'a>(&self, residues: &'a RingResidues, set: &Range<usize>) -> &'a [u32] {
        &residues.alpha[set.start * self.n..set.end * self.n]
    }

    fn expand(&mut self, a: &PublicMatrix) {
        let degree = self.degree;
        let n = self.n;
        let rank = self.n / self.degree;
        let sets: Vec<Range<usize>> = self.segments().flatten().collect();
        for residues in &mut self.residues {
            residues.alpha = vec![0; self.blocks * n];
        }
        let mut elements = vec![0; n];
        for set in sets {
            for block in set.clone() {
                a.ring_block_into(block, &mut elements);
                for (k, element) in elements.chunks_exact(degree).enumerate() {
                    for residues in &mut self.residues {
                        let transformed = residues.transform(element);
                        let out = &mut residues.alpha[set.start * n..set.end * n];
                        for (point, word) in transformed.into_iter().enumerate() {
                            out[(point * set.len() + block - set.start) * rank + k] = word;
                        }
                    }
                }
            }
        }
    }
}

impl RingResidues {
    fn new(p: u32, degree: usize) -> Self {
        let ntt = NttPlan::new(p, degree);
        // Newton's iteration: each step doubles the number of correct bits, and p is its own inverse modulo 8.
        let montgomery =
            (0..4).fold(p, |inverse, _| inverse.wrapping_mul(2u32.wrapping_sub(p.wrapping_mul(inverse))));
        let offset = ntt.modulus().reduce(SUM_BOUND);
        Self { ntt, montgomery, offset, alpha: Vec::new() }
    }

    /// Computes the transform of `alpha(1/X) * 2^32 / d`, with alpha centred.
    fn transform(&self, alpha: &[u32]) -> Vec<u32> {
        let p = self.ntt.modulus();
        let d = alpha.len();
        let factor = p.mul(p.reduce(1 << 32), self.ntt.inverse_scale().0);
        let mut reversed = vec![0; d];
        for (m, &word) in alpha.iter().enumerate() {
            // X^-m is -X^(d - m).
            let centred = i64::from(word as i32);
            reversed[(d - m) % d] = p.mul(p.reduce_signed(if m == 0 { centred } else { -centred }), factor);
        }
        self.ntt.forward(&mut reversed);
        reversed
    }
}

#[cfg(test)]
mod tests {
    use hush_he::entities::{MatrixDomain, MatrixShape, MatrixStructure, PublicSeed};

    use super::*;

    fn matrix(degree: usize, cols: usize) -> PublicMatrix {
        let structure = MatrixStructure::Ring { degree };
        PublicMatrix::new(PublicSeed([1; 32]), MatrixShape::new(MatrixDomain::First, structure, cols, degree))
    }

    #[test]
    fn segments_cover_all_blocks_in_sets() {
        for (cols, degree) in
            [(1, 1), (100_000, 1), (70_000, 8), (140_000, 256), (150_000, 2048), (5000, 4096)]
        {
            let plan =
                RingPlan::new(&matrix(degree, cols), degree).expect("there are primes for this degree");
            let mut next = 0;
            for segment in plan.segments() {
                let start = next;
                for set in segment {
                    assert_eq!(set.start, next);
                    assert!(!set.is_empty() && set.len() <= MAX_LAZY_BLOCKS);
                    next = set.end;
                }
                assert!((next - start) * degree <= SEGMENT_COLS);
            }
            assert_eq!(next, cols.div_ceil(degree));
            for residues in &plan.residues {
                let p = residues.ntt.modulus().value();
                assert_eq!(p.wrapping_mul(residues.montgomery), 1);
            }
        }
    }

    #[test]
    fn a_degree_without_primes_has_no_plan() {
        let degree = 1 << 20;
        assert!(RingPlan::new(&matrix(degree, 1), degree).is_none());
    }
}
