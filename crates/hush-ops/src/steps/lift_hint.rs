//! The step `lift_hint`: a hint to evaluation form.

use super::*;

/// The shape of `lift_hint` of a hint that belongs to one query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LiftHint {
    /// The RLWE set.
    pub ring: RingParams,
    /// The LWE dimension.
    pub n: usize,
    /// The plaintexts that are lifted at once.
    pub columns: usize,
    /// The number of lifts of that size, one after another.
    pub parts: usize,
}

impl StepKind for LiftHint {
    /// Counts n words for a row of the hint, and n polynomials for a plaintext.
    fn work(&self, batch: usize) -> Work {
        let polys = (batch * self.n * self.columns * self.parts) as f64;
        let words = polys * (size_of::<u32>() * self.ring.degree()) as f64;
        Work {
            operand_bytes: words + polys * poly_bytes(&self.ring) as f64,
            transforms: polys * self.ring.kept_limbs() as f64,
            ..Work::default()
        }
    }

    fn sample<'b, B: Steps>(&self, make: &Maker<'_, 'b, B>) -> Made<'b> {
        let Self { ring, n, columns, parts } = *self;
        let backend = make.backend;
        let on = make.open(&ring)?;
        let rows = columns * ring.degree();
        let shape = PackShape::new(ring.degree(), rows, rows)?;
        let hint = backend.keep(random_words(rows * n))?;
        Ok(make.one_by_one(move || {
            (0..parts).try_for_each(|_| backend.lift_hint(&on.ring, &hint, n, &shape, 0..columns).map(drop))
        }))
    }
}

/// Checks that the columns are in the shape, that the shape fits the ring, and that the hint has n words for every row.
pub(crate) fn check(
    ring: &RingContext,
    hint: usize,
    n: usize,
    shape: &PackShape,
    columns: &Range<usize>,
) -> Result<LiftHint, OpsError> {
    let step = "lift_hint";
    check_columns(step, ring, shape, columns)?;
    let rows = shape.rows_of(columns.clone()).len();
    OpsError::check_shape(step, "words of the hint", rows * n, hint)?;
    Ok(LiftHint { ring: *ring.params(), n, columns: columns.len(), parts: 1 })
}

/// Checks that the columns are in the shape, and that the shape has the ring's degree.
pub(super) fn check_columns(
    step: &'static str,
    ring: &RingContext,
    shape: &PackShape,
    columns: &Range<usize>,
) -> Result<(), OpsError> {
    OpsError::check_shape(step, "degree", ring.params().degree(), shape.degree())?;
    let bits = ring.params().plaintext_bits();
    OpsError::check_shape(step, "plaintext bits", bits.min(u32::BITS - 1) as usize, bits as usize)?;
    OpsError::check_shape(step, "end of the columns", columns.end.min(shape.plaintexts()), columns.end)?;
    OpsError::check_shape(step, "start of the columns", columns.start.min(columns.end), columns.start)
}

/// Lifts the hint.
pub(crate) fn reference(
    ring: &RingContext,
    hint: &[u32],
    n: usize,
    shape: &PackShape,
    columns: Range<usize>,
) -> Result<NttTiledDb, OpsError> {
    let tiling = NttTiling::new(shape.degree(), ring.kept().limbs(), n, columns.len())?;
    let first = shape.rows_of(columns.clone()).start;
    let mut polys = Vec::with_capacity(n * columns.len() * tiling.poly_words());
    for i in 0..n {
        for column in columns.clone() {
            let words = shape.plaintext_rows(column).map(|row| hint[(row - first) * n + i]);
            polys.extend(lift(ring, words));
        }
    }
    Ok(NttTiledDb::from_polys(tiling, &polys))
}

/// Returns the polynomial of `words`, rounded to the plaintext modulus, in evaluation form, with zeros after the words.
pub(super) fn lift(ring: &RingContext, words: impl Iterator<Item = u32>) -> Vec<u32> {
    let bits = ring.params().plaintext_bits();
    let mut symbols: Vec<u32> = words.map(|word| round_word_up(word, bits)).collect();
    symbols.resize(ring.params().degree(), 0);
    ntt_db::reference(ring, &symbols)
}
