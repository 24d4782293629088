//! The rows that meet digits: evaluation keys, and the rows of RGSW ciphertexts.

use crate::lanes::Lanes;
use crate::ring::{
    ModRing,
    arithmetic::{
        montgomery::Montgomery,
        residues::Residues,
        vector_loop::{self, VectorLoop},
    },
};

/// The number of slots that are processed together.
const BLOCK: usize = 64;
/// The number of vectors that are processed together: their sums fit the registers.
const VECTORS: usize = 4;

/// Rows of two or three polynomials modulo the limbs of a ring, in the order in which products read them.
#[derive(Clone, Copy)]
pub(in crate::ring) struct GadgetRows<'a> {
    shape: RowShape,
    /// `[limb][block of 64 slots][poly][row][slot]`, in Montgomery form.
    words: &'a [u32],
}

/// The number of rows, and of polynomials of each row.
#[derive(Clone, Copy)]
pub(in crate::ring) struct RowShape {
    pub(in crate::ring) rows: usize,
    pub(in crate::ring) polys: usize,
}

impl RowShape {
    /// Returns the words of all rows.
    pub(in crate::ring) fn words(self, ring: &ModRing) -> usize {
        self.rows * self.polys * ring.words()
    }
}

/// Lays out rows in `words`, of [`RowShape::words`]. `poly(row, i)` is polynomial `i` of a row.
pub(in crate::ring) fn lay_out<'a>(
    ring: &ModRing,
    shape: RowShape,
    words: &mut [u32],
    poly: impl Fn(usize, usize) -> &'a [u32],
) {
    let degree = ring.degree();
    let RowShape { rows, polys } = shape;
    assert!(degree.is_multiple_of(BLOCK) && words.len() == shape.words(ring));
    if words.is_empty() {
        return;
    }
    for (limb, words) in words.chunks_exact_mut(rows * polys * degree).enumerate() {
        for index in 0..rows * polys {
            let i = index / rows;
            let row = index % rows;
            let montgomery = ring.limbs()[limb].montgomery;
            let from = &poly(row, i)[limb * degree..][..degree];
            let lay_out = LayOut { montgomery, from, words, count: rows * polys, index };
            vector_loop::run(ring.level(), lay_out);
        }
    }
}

impl<'a> GadgetRows<'a> {
    /// Takes rows that [`lay_out`] laid out.
    pub(in crate::ring) fn new(shape: RowShape, words: &'a [u32]) -> Self {
        Self { shape, words }
    }

    /// Returns the number of rows.
    pub(in crate::ring) fn rows(&self) -> usize {
        self.shape.rows
    }

    /// Passes `sum_row values[row] * rows[row][poly]` modulo one limb to `sink`, for a polynomial of `values` a row.
    pub(in crate::ring) fn multiply(
        &self,
        ring: &ModRing,
        limb: usize,
        values: &[u32],
        sink: &mut impl Sink,
    ) {
        let montgomery = ring.limbs()[limb].montgomery;
        let degree = ring.degree();
        let RowShape { rows, polys } = self.shape;
        assert_eq!(values.len(), rows * degree);
        let limb_words = rows * polys * degree;
        let product = Multiply {
            montgomery,
            degree,
            values,
            rows: &self.words[limb * limb_words..][..limb_words],
            shape: self.shape,
            limb,
            sink,
        };
        // The sum of `rows` products below p^2 is below 2^33 p.
        let p = montgomery.p();
        if p < 1 << 31 && u64::from(p) * rows as u64 <= 1 << 33 {
            vector_loop::run(ring.level(), Narrow(product));
        } else {
            vector_loop::run(ring.level(), Wide(product));
        }
    }
}

/// A receiver of sums of products.
pub(in crate::ring) trait Sink {
    /// Takes a vector of sums from `slot` on.
    ///
    /// # Safety
    /// The CPU must have the instruction set of `L`.
    unsafe fn put<L: Lanes>(
        &mut self,
        residues: Residues<L>,
        limb: usize,
        poly: usize,
        slot: usize,
        sum: L::Words,
    );
}

/// The loop that copies one polynomial of one row, modulo one limb, to its place in Montgomery form.
struct LayOut<'a> {
    montgomery: Montgomery,
    from: &'a [u32],
    words: &'a mut [u32],
    /// The number of polynomials of all rows, followed by the index of this one.
    count: usize,
    index: usize,
}

impl VectorLoop for LayOut<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let blocks = self.words.chunks_exact_mut(BLOCK).skip(self.index).step_by(self.count);
        for (to, from) in blocks.zip(self.from.chunks_exact(BLOCK)) {
            for (to, from) in to.chunks_exact_mut(L::WIDTH).zip(from.chunks_exact(L::WIDTH)) {
                // SAFETY: the caller has the instruction set; chunks are a vector.
                unsafe {
                    let residues = Residues::<L>::new(self.montgomery);
                    let square = L::splat(self.montgomery.square());
                    L::store(to.as_mut_ptr(), residues.mul_splat(L::load(from.as_ptr()), square));
                }
            }
        }
    }
}

/// Operands of [`GadgetRows::multiply`], modulo one limb.
struct Multiply<'a, O> {
    montgomery: Montgomery,
    degree: usize,
    values: &'a [u32],
    rows: &'a [u32],
    shape: RowShape,
    limb: usize,
    sink: &'a mut O,
}

/// A way to add up products.
trait Sum {
    /// Computes `sum + product`.
    ///
    /// # Safety
    /// The CPU must have the instruction set of `L`.
    unsafe fn add<L: Lanes>(residues: Residues<L>, sum: L::Wide, product: L::Wide) -> L::Wide;
}

/// Plain sums, which stay below `2^33 p`, for p below 2^31.
struct Exact;

impl Sum for Exact {
    #[inline(always)]
    unsafe fn add<L: Lanes>(_: Residues<L>, sum: L::Wide, product: L::Wide) -> L::Wide {
        // SAFETY: the caller promises so.
        unsafe { L::add_wide(sum, product) }
    }
}

/// Sums that are kept below `2^32 p`.
struct Modular;

impl Sum for Modular {
    #[inline(always)]
    unsafe fn add<L: Lanes>(residues: Residues<L>, sum: L::Wide, product: L::Wide) -> L::Wide {
        // SAFETY: the caller promises so.
        unsafe { residues.add_wide(sum, product) }
    }
}

impl<O: Sink> Multiply<'_, O> {
    #[inline(always)]
    unsafe fn run<L: Lanes, S: Sum>(self) {
        let RowShape { rows, polys } = self.shape;
        for (index, block) in self.rows.chunks_exact(rows * BLOCK).enumerate() {
            let poly = index % polys;
            for start in (0..BLOCK).step_by(VECTORS * L::WIDTH) {
                let slot = index / polys * BLOCK + start;
                // SAFETY: the caller has the instruction set. There are `rows` blocks of rows, and polynomials of
                // values, and a block is whole steps.
                unsafe {
                    let residues = Residues::<L>::new(self.montgomery);
                    let values = self.values[slot..].as_ptr();
                    let row = block.as_ptr().add(start);
                    let sums = sums::<L, S>(residues, values, self.degree, row, rows);
                    for (vector, sum) in sums.into_iter().enumerate() {
                        let slot = slot + vector * L::WIDTH;
                        let sum = residues.reduce_sum(sum);
                        self.sink.put(residues, self.limb, poly, slot, sum);
                    }
                }
            }
        }
    }
}

/// Computes the sums of `rows` products, four vectors each: values `degree` words apart, rows `BLOCK` words apart.
///
/// # Safety
/// The CPU must have the instruction set of `L`, and the pointers must be valid for all these vectors.
#[inline(always)]
unsafe fn sums<L: Lanes, S: Sum>(
    residues: Residues<L>,
    values: *const u32,
    degree: usize,
    row: *const u32,
    rows: usize,
) -> [L::Wide; VECTORS] {
    // SAFETY: the caller promises so.
    unsafe {
        let product = |k: usize, vector: usize| {
            let value = L::load(values.add(k * degree + vector * L::WIDTH));
            L::mul_wide(value, L::load(row.add(k * BLOCK + vector * L::WIDTH)))
        };
        let mut sums = [product(0, 0), product(0, 1), product(0, 2), product(0, 3)];
        for k in 1..rows {
            for (vector, sum) in sums.iter_mut().enumerate() {
                *sum = S::add(residues, *sum, product(k, vector));
            }
        }
        sums
    }
}

struct Narrow<'a, O>(Multiply<'a, O>);

impl<O: Sink> VectorLoop for Narrow<'_, O> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        // SAFETY: the caller promises so.
        unsafe { self.0.run::<L, Exact>() };
    }
}

struct Wide<'a, O>(Multiply<'a, O>);

impl<O: Sink> VectorLoop for Wide<'_, O> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        // SAFETY: the caller promises so.
        unsafe { self.0.run::<L, Modular>() };
    }
}

#[cfg(test)]
mod tests {
    use hush_math::{csprng::Csprng, modulus::find_primes, ring::Ring};

    use super::*;
    use crate::Level;

    const DEGREE: usize = 128;

    /// A sink that keeps the sums, polynomial after polynomial.
    struct Keep(Vec<u32>);

    impl Sink for Keep {
        #[inline(always)]
        unsafe fn put<L: Lanes>(
            &mut self,
            _: Residues<L>,
            _: usize,
            poly: usize,
            slot: usize,
            sum: L::Words,
        ) {
            let to = &mut self.0[poly * DEGREE + slot..][..L::WIDTH];
            // SAFETY: the caller has the instruction set; `to` is a vector.
            unsafe { L::store(to.as_mut_ptr(), sum) };
        }
    }

    fn check(prime: u32, shape: RowShape, mut word: impl FnMut() -> u32) {
        let base = Ring::new(DEGREE, &[prime]);
        let p = base.moduli()[0];
        let values: Vec<u32> = (0..shape.rows * DEGREE).map(|_| word()).collect();
        let rows: Vec<u32> = (0..shape.rows * shape.polys * DEGREE).map(|_| word()).collect();
        let poly = |row: usize, i: usize| &rows[(row * shape.polys + i) * DEGREE..][..DEGREE];
        let sum = |i: usize, slot: usize| {
            let products = (0..shape.rows).map(|row| p.mul(values[row * DEGREE + slot], poly(row, i)[slot]));
            products.fold(0, |sum, product| p.add(sum, product))
        };
        let expected: Vec<u32> = (0..shape.polys)
            .flat_map(|i| (0..DEGREE).map(move |slot| (i, slot)))
            .map(|(i, s)| sum(i, s))
            .collect();
        for level in Level::usable() {
            let ring = ModRing::new(level, &base);
            let mut words = vec![0; shape.words(&ring)];
            lay_out(&ring, shape, &mut words, poly);
            let mut sums = Keep(vec![0; expected.len()]);
            GadgetRows::new(shape, &words).multiply(&ring, 0, &values, &mut sums);
            assert!(sums.0 == expected, "{level}, p = {prime}, {} rows", shape.rows);
        }
    }

    #[test]
    fn sums_are_exact_for_all_primes_and_row_counts() {
        let mut rng = Csprng::insecure_from_seed(9);
        for bits in [14, 21, 27, 30, 31, 32] {
            let p = find_primes(DEGREE, bits, 1)[0];
            for (rows, polys) in [(1, 2), (2, 2), (3, 2), (4, 3), (5, 2), (6, 3), (10, 2), (16, 3)] {
                let shape = RowShape { rows, polys };
                check(p, shape, || p - 1);
                check(p, shape, || rng.next_u32() % p);
                check(p, shape, || [0, 1, p / 2, p - 1][rng.next_u32() as usize % 4]);
            }
        }
    }
}
