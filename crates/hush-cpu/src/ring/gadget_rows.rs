//! Rows that meet digits: evaluation keys, and the rows of RGSW ciphertexts.

use super::{
    ModRing,
    montgomery::Montgomery,
    residues::Residues,
    vector_loop::{self, VectorLoop},
    wide_lanes::WideLanes,
};

/// Slots that are worked on together.
const BLOCK: usize = 64;
/// Vectors that are worked on together: their sums fit the registers.
const VECTORS: usize = 4;

/// Rows of two or three polynomials modulo the limbs of a ring, in the order in which products read them.
#[derive(Clone, Copy)]
pub(super) struct GadgetRows<'a> {
    shape: RowShape,
    /// `[limb][block of 64 slots][poly][row][slot]`, in Montgomery form.
    words: &'a [u32],
}

/// How many rows there are, and of how many polynomials each is.
#[derive(Clone, Copy)]
pub(super) struct RowShape {
    pub(super) rows: usize,
    pub(super) polys: usize,
}

impl RowShape {
    /// Words of all rows.
    pub(super) fn words(self, ring: &ModRing) -> usize {
        self.rows * self.polys * ring.words()
    }
}

/// Lays out rows in `words`, of [`RowShape::words`]. `poly(row, i)` is polynomial `i` of a row.
pub(super) fn lay_out<'a>(
    ring: &ModRing,
    shape: RowShape,
    words: &mut [u32],
    poly: impl Fn(usize, usize) -> &'a [u32],
) {
    let (degree, RowShape { rows, polys }) = (ring.degree(), shape);
    assert!(degree.is_multiple_of(BLOCK) && words.len() == shape.words(ring));
    for (limb, words) in words.chunks_exact_mut(rows * polys * degree).enumerate() {
        for index in 0..rows * polys {
            let (i, row) = (index / rows, index % rows);
            let montgomery = ring.limbs()[limb].montgomery;
            let from = &poly(row, i)[limb * degree..][..degree];
            let lay_out = LayOut { montgomery, from, words, count: rows * polys, index };
            vector_loop::run(ring.level(), lay_out);
        }
    }
}

impl<'a> GadgetRows<'a> {
    /// Rows that [`lay_out`] laid out.
    pub(super) fn new(shape: RowShape, words: &'a [u32]) -> Self {
        Self { shape, words }
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.shape.rows
    }

    /// Hands `sum_row values[row] * rows[row][poly]` modulo one limb to `sink`, for a polynomial of `values` a row.
    pub(super) fn multiply(&self, ring: &ModRing, limb: usize, values: &[u32], sink: &mut impl Sink) {
        let (montgomery, degree) = (ring.limbs()[limb].montgomery, ring.degree());
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
        // `rows` products below p^2 are below 2^33 p.
        let p = montgomery.p();
        if p < 1 << 31 && u64::from(p) * rows as u64 <= 1 << 33 {
            vector_loop::run(ring.level(), Narrow(product));
        } else {
            vector_loop::run(ring.level(), Wide(product));
        }
    }
}

/// What becomes of sums of products.
pub(super) trait Sink {
    /// Takes a vector of sums from `slot` on.
    ///
    /// # Safety
    /// The CPU must have the instruction set of `L`.
    unsafe fn put<L: WideLanes>(
        &mut self,
        residues: Residues<L>,
        limb: usize,
        poly: usize,
        slot: usize,
        sum: L::Words,
    );
}

/// One polynomial of one row, modulo one limb, into its place.
struct LayOut<'a> {
    montgomery: Montgomery,
    from: &'a [u32],
    words: &'a mut [u32],
    /// Polynomials of all rows, and which of them this one is.
    count: usize,
    index: usize,
}

impl VectorLoop for LayOut<'_> {
    #[inline(always)]
    unsafe fn run<L: WideLanes>(self) {
        let blocks = self.words.chunks_exact_mut(BLOCK).skip(self.index).step_by(self.count);
        for (to, from) in blocks.zip(self.from.chunks_exact(BLOCK)) {
            for (to, from) in to.chunks_exact_mut(L::WIDTH).zip(from.chunks_exact(L::WIDTH)) {
                // SAFETY: the caller has the instruction set; chunks are a vector.
                unsafe {
                    let residues = Residues::<L>::new(self.montgomery);
                    let square = L::splat(self.montgomery.square());
                    L::store(to.as_mut_ptr(), residues.mul(L::load(from.as_ptr()), square));
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

/// How products are added up.
trait Sum {
    /// `sum + product`.
    ///
    /// # Safety
    /// The CPU must have the instruction set of `L`.
    unsafe fn add<L: WideLanes>(residues: Residues<L>, sum: L::Wide, product: L::Wide) -> L::Wide;
}

/// Sums stay below `2^33 p` by themselves, and p is below 2^31.
struct Exact;

impl Sum for Exact {
    #[inline(always)]
    unsafe fn add<L: WideLanes>(_: Residues<L>, sum: L::Wide, product: L::Wide) -> L::Wide {
        // SAFETY: the caller says so.
        unsafe { L::add_wide(sum, product) }
    }
}

/// Sums are kept below `2^32 p`.
struct Modular;

impl Sum for Modular {
    #[inline(always)]
    unsafe fn add<L: WideLanes>(residues: Residues<L>, sum: L::Wide, product: L::Wide) -> L::Wide {
        // SAFETY: the caller says so.
        unsafe { residues.add_wide(sum, product) }
    }
}

impl<O: Sink> Multiply<'_, O> {
    #[inline(always)]
    unsafe fn run<L: WideLanes, S: Sum>(self) {
        let RowShape { rows, polys } = self.shape;
        for (index, block) in self.rows.chunks_exact(rows * BLOCK).enumerate() {
            let poly = index % polys;
            for start in (0..BLOCK).step_by(VECTORS * L::WIDTH) {
                let slot = index / polys * BLOCK + start;
                // SAFETY: the caller has the instruction set; there are `rows` blocks of rows, and polynomials of
                // values, and a block is whole steps.
                unsafe {
                    let residues = Residues::<L>::new(self.montgomery);
                    let values = self.values[slot..].as_ptr();
                    let row = block.as_ptr().add(start);
                    let sums = sums::<L, S>(residues, values, self.degree, row, rows);
                    for (vector, sum) in sums.into_iter().enumerate() {
                        let (slot, sum) = (slot + vector * L::WIDTH, residues.reduce_sum(sum));
                        self.sink.put(residues, self.limb, poly, slot, sum);
                    }
                }
            }
        }
    }
}

/// Sums of `rows` products, of four vectors each: values `degree` words apart, rows `BLOCK` words apart.
///
/// # Safety
/// The CPU must have the instruction set of `L`, and the pointers must be valid for all these vectors.
#[inline(always)]
unsafe fn sums<L: WideLanes, S: Sum>(
    residues: Residues<L>,
    values: *const u32,
    degree: usize,
    row: *const u32,
    rows: usize,
) -> [L::Wide; VECTORS] {
    // SAFETY: the caller says so.
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
    unsafe fn run<L: WideLanes>(self) {
        // SAFETY: the caller says so.
        unsafe { self.0.run::<L, Exact>() };
    }
}

struct Wide<'a, O>(Multiply<'a, O>);

impl<O: Sink> VectorLoop for Wide<'_, O> {
    #[inline(always)]
    unsafe fn run<L: WideLanes>(self) {
        // SAFETY: the caller says so.
        unsafe { self.0.run::<L, Modular>() };
    }
}
