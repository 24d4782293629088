//! Rows that meet digits: evaluation keys, and the rows of RGSW ciphertexts.
//!
//! Digits arrive 2^(w-1) too large ([`super::digits`]). As transforms and products are linear, that adds
//! `NTT(2^(w-1) (1 + X + .. + X^(N-1))) * (row_0 + row_1 + ..)` to every sum: a constant of the rows, which is taken
//! off as if it were another product.

use std::ops::DerefMut;

use super::{
    ModRing,
    montgomery::Montgomery,
    vectorise::{self, VectorLoop},
};

/// Slots that are worked on together.
const BLOCK: usize = 64;
/// log2 of the multiples of p that a sum may come to, where it fits 64 bits.
const NARROW_DOUBLINGS: u32 = 2;
/// The same where the words of the products are summed separately.
const WIDE_DOUBLINGS: u32 = 4;

/// `NTT(2^(w-1) (1 + X + .. + X^(N-1)))` in Montgomery form, limb after limb: what unsigned digits of w bits are too
/// large by.
pub(super) fn digit_offset(ring: &ModRing, width: u32) -> Vec<u32> {
    let mut words = Vec::with_capacity(ring.words());
    for limb in ring.limbs() {
        let p = limb.montgomery.p();
        assert!(1 << width <= p, "digits of {width} bits are residues modulo {p}");
        let mut values = vec![1 << (width - 1); ring.degree()];
        limb.ntt.plan().forward(&mut values);
        words.extend(values.into_iter().map(|value| limb.montgomery.form(value)));
    }
    words
}

/// Rows of two or three polynomials modulo the limbs of a ring, in the order in which products read them.
pub(super) struct GadgetRows<W> {
    shape: RowShape,
    /// `[limb][block of 64 slots][row][poly][slot]`: Montgomery forms. After the last row come the negated constants
    /// of the digits' offsets, as they are.
    words: W,
}

/// How many rows there are, and of how many polynomials each is.
#[derive(Clone, Copy)]
pub(super) struct RowShape {
    pub(super) rows: usize,
    pub(super) polys: usize,
}

impl RowShape {
    /// Words of all rows, as [`GadgetRows`] holds them.
    pub(super) fn words(self, ring: &ModRing) -> usize {
        (self.rows + 1) * self.polys * ring.words()
    }
}

impl<W: AsRef<[u32]>> GadgetRows<W> {
    /// Lays out rows in `words`, for digits whose [`digit_offset`] is `offset`. `poly(row, i)` is polynomial `i` of a
    /// row.
    pub(super) fn new<'a>(
        ring: &ModRing,
        offset: &[u32],
        shape: RowShape,
        mut words: W,
        poly: impl Fn(usize, usize) -> &'a [u32],
    ) -> Self
    where
        W: DerefMut<Target = [u32]>,
    {
        let (degree, RowShape { rows, polys }) = (ring.degree(), shape);
        assert!(degree.is_multiple_of(BLOCK) && rows + 2 <= 1 << WIDE_DOUBLINGS);
        assert_eq!(words.len(), shape.words(ring));
        words.fill(0);
        for (limb, words) in words.chunks_exact_mut((rows + 1) * polys * degree).enumerate() {
            for (i, row) in (0..polys).flat_map(|i| (0..rows).map(move |row| (i, row))) {
                vectorise::run(
                    ring.level(),
                    LayOutRow {
                        montgomery: ring.limbs()[limb].montgomery,
                        from: &poly(row, i)[limb * degree..][..degree],
                        offset: &offset[limb * degree..][..degree],
                        words,
                        rows: (rows + 1) * polys,
                        row: row * polys + i,
                        constant: rows * polys + i,
                    },
                );
            }
        }
        Self { shape, words }
    }

    /// `out[poly] += sum_row values[row] * rows[row][poly]` modulo one limb, for transforms `values` (a polynomial a
    /// row) of digits that are too large by their offset. The polynomials of `out` start `stride` words apart.
    pub(super) fn multiply_add(
        &self,
        ring: &ModRing,
        limb: usize,
        values: &[u32],
        out: &mut [u32],
        stride: usize,
    ) {
        let (montgomery, degree) = (ring.limbs()[limb].montgomery, ring.degree());
        let RowShape { rows, polys } = self.shape;
        assert_eq!(values.len(), rows * degree);
        let limb_words = (rows + 1) * polys * degree;
        let product = MultiplyAdd {
            montgomery,
            degree,
            values,
            rows: &self.words.as_ref()[limb * limb_words..][..limb_words],
            polys,
            out,
            stride,
        };
        let largest = u128::from(montgomery.p() - 1).pow(2) * rows as u128;
        // With p below 2^31 and a sum below 2^64, a sum is below 2^33 p.
        if largest < 1 << 64 && montgomery.p() < 1 << 31 {
            vectorise::run(ring.level(), Narrow(product));
        } else {
            vectorise::run(ring.level(), Wide(product));
        }
    }
}

/// One polynomial of one row, modulo one limb, into its place; and its part of the constant.
struct LayOutRow<'a> {
    montgomery: Montgomery,
    from: &'a [u32],
    offset: &'a [u32],
    words: &'a mut [u32],
    /// Rows of a block, where they are all single polynomials.
    rows: usize,
    row: usize,
    constant: usize,
}

impl VectorLoop for LayOutRow<'_> {
    #[inline(always)]
    fn run(self) {
        let m = self.montgomery;
        let blocks = self.words.chunks_exact_mut(self.rows * BLOCK);
        let operands = self.from.chunks_exact(BLOCK).zip(self.offset.chunks_exact(BLOCK));
        for (words, (from, offset)) in blocks.zip(operands) {
            for (to, &word) in words[self.row * BLOCK..][..BLOCK].iter_mut().zip(from) {
                *to = m.form(word);
            }
            let constant = &mut words[self.constant * BLOCK..][..BLOCK];
            for ((constant, &word), &offset) in constant.iter_mut().zip(from).zip(offset) {
                *constant = m.sub(*constant, m.mul(word, offset));
            }
        }
    }
}

/// Operands of [`GadgetRows::multiply_add`], modulo one limb.
struct MultiplyAdd<'a> {
    montgomery: Montgomery,
    degree: usize,
    values: &'a [u32],
    rows: &'a [u32],
    polys: usize,
    out: &'a mut [u32],
    stride: usize,
}

impl MultiplyAdd<'_> {
    /// All blocks: `sum` makes the lazy sums of a block from its values (a polynomial apart) and rows (`polys` blocks
    /// apart).
    #[inline(always)]
    fn run<const DOUBLINGS: u32>(self, sum: impl Fn(&[u32], &[u32]) -> [u64; BLOCK]) {
        let (m, row_words) = (self.montgomery, self.polys * BLOCK);
        let rows = self.values.len() / self.degree;
        for (block, words) in self.rows.chunks_exact((rows + 1) * row_words).enumerate() {
            for poly in 0..self.polys {
                let sums = sum(&self.values[block * BLOCK..], &words[poly * BLOCK..rows * row_words]);
                let out = &mut self.out[poly * self.stride + block * BLOCK..][..BLOCK];
                let constants = &words[rows * row_words + poly * BLOCK..][..BLOCK];
                for i in 0..BLOCK {
                    let constant = m.add(out[i], constants[i]);
                    out[i] = m.add(m.canonical::<DOUBLINGS>(sums[i]), constant);
                }
            }
        }
    }
}

/// Where sums of products fit 64 bits.
struct Narrow<'a>(MultiplyAdd<'a>);

impl VectorLoop for Narrow<'_> {
    #[inline(always)]
    fn run(self) {
        let (m, degree, row_words) = (self.0.montgomery, self.0.degree, self.0.polys * BLOCK);
        self.0.run::<NARROW_DOUBLINGS>(|values, words| {
            let mut sums = [0u64; BLOCK];
            for (values, words) in values.chunks(degree).zip(words.chunks(row_words)) {
                let (values, words) = (&values[..BLOCK], &words[..BLOCK]);
                for i in 0..BLOCK {
                    sums[i] += u64::from(values[i]) * u64::from(words[i]);
                }
            }
            sums.map(|sum| m.reduce_lazy(sum))
        });
    }
}

/// Where they do not.
struct Wide<'a>(MultiplyAdd<'a>);

impl VectorLoop for Wide<'_> {
    #[inline(always)]
    fn run(self) {
        let (m, degree, row_words) = (self.0.montgomery, self.0.degree, self.0.polys * BLOCK);
        self.0.run::<WIDE_DOUBLINGS>(|values, words| {
            let (mut low, mut high) = ([0u64; BLOCK], [0u64; BLOCK]);
            for (values, words) in values.chunks(degree).zip(words.chunks(row_words)) {
                let (values, words) = (&values[..BLOCK], &words[..BLOCK]);
                for i in 0..BLOCK {
                    let product = u64::from(values[i]) * u64::from(words[i]);
                    low[i] += product & u64::from(u32::MAX);
                    high[i] += product >> 32;
                }
            }
            std::array::from_fn(|i| high[i] + m.reduce_lazy(low[i]))
        });
    }
}
