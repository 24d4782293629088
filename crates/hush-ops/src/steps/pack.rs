//! The step `pack` (3): N LWE ciphertexts become one RLWE ciphertext, as an `rlwe_fold` of the lifted hint plus the folded words.

use super::*;

/// The shape of `pack` (3) with a hint in evaluation form.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pack {
    /// The RLWE set.
    pub ring: RingParams,
    /// The hint: n rows, and a column for each plaintext.
    pub hint: NttTiling,
    /// The rows that are packed together.
    pub shape: PackShape,
}

/// The shape of `pack` (3) with a hint that belongs to one query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PackOnline {
    /// The RLWE set.
    pub ring: RingParams,
    /// The hint: n rows, and a column for each plaintext that is packed at once.
    pub hint: NttTiling,
    /// The number of words that are packed.
    pub rows: usize,
    /// The number of packings of that size, one after another.
    pub parts: usize,
}

impl StepKind for Pack {
    fn scans(&self) -> bool {
        true
    }

    fn work(&self, batch: usize) -> Work {
        Work { bytes: self.hint.bytes() as f64, ..selected(self.hint, batch as f64) }
    }

    fn sample<'b, B: Steps>(&self, make: &Maker<'_, 'b, B>) -> Made<'b> {
        let Self { ring, hint, shape } = *self;
        let backend = make.backend;
        let on = make.open(&ring)?;
        let db = make.operands.ntt_db(backend, &on.ring, hint)?;
        let folded = make.folded(shape.rows(), make.batch)?;
        let selectors = make.of_each(&on, hint.rows())?;
        Ok(Box::new(move || {
            let selectors: Vec<_> = selectors.iter().collect();
            let plaintexts = 0..shape.plaintexts();
            backend.pack(&on.ring, &db, &folded, &shape, plaintexts, &selectors).map(drop)
        }))
    }
}

impl StepKind for PackOnline {
    fn work(&self, batch: usize) -> Work {
        let hints = batch as f64 * self.parts as f64;
        Work { bytes: hints * self.hint.bytes() as f64, ..selected(self.hint, hints) }
    }

    fn sample<'b, B: Steps>(&self, make: &Maker<'_, 'b, B>) -> Made<'b> {
        let Self { ring, hint, parts, .. } = *self;
        let backend = make.backend;
        let on = make.open(&ring)?;
        let rows = self.rows.min(hint.columns() * ring.degree());
        let db = make.operands.ntt_db(backend, &on.ring, hint)?;
        let folded = make.folded(rows, 1)?;
        let shape = PackShape::new(ring.degree(), rows, rows)?;
        let selectors = make.ciphertexts(&on, hint.rows())?;
        let columns = 0..shape.plaintexts();
        let pack =
            move || backend.pack(&on.ring, &db, &folded, &shape, columns.clone(), &[&selectors]).map(drop);
        Ok(make.one_by_one(move || (0..parts).try_for_each(|_| pack())))
    }
}

/// Checks that hint, folded words and selectors fit one shape and the same number of queries.
pub(crate) fn check<W: WordStore>(
    ring: &RingContext,
    hint: NttTiling,
    folded: &LweBatch<W>,
    shape: &PackShape,
    columns: &Range<usize>,
    selectors: &[&RlweBatch<W>],
) -> Result<Pack, OpsError> {
    let step = "pack";
    lift_hint::check_columns(step, ring, shape, columns)?;
    OpsError::check_shape(step, "columns of the hint", columns.len(), hint.columns())?;
    OpsError::check_shape(step, "rows of the fold", shape.rows(), folded.rows)?;
    OpsError::check_shape(step, "words of the fold", shape.rows() * selectors.len(), folded.words.len())?;
    rlwe_fold::check(ring, hint, selectors)?;
    Ok(Pack { ring: *ring.params(), hint, shape: *shape })
}

/// Adds `(0, Delta G)` to the ciphertexts of all queries and columns, where G has a column's rounded words as coefficients.
pub(crate) fn add_folded(
    ring: &RingContext,
    folded: &LweBatch,
    shape: &PackShape,
    columns: Range<usize>,
    packed: &mut [RlweBatch],
) {
    let kept = ring.kept();
    let poly = poly_words(ring);
    let delta: Vec<u32> = (0..kept.limbs()).map(|limb| kept.rns().reduce(ring.delta(), limb)).collect();
    for (packed, words) in packed.iter_mut().zip(folded.words.chunks_exact(folded.rows)) {
        for (column, ciphertext) in columns.clone().zip(packed.words.chunks_exact_mut(2 * poly)) {
            let g = lift_hint::lift(ring, words[shape.plaintext_rows(column)].iter().copied());
            for (index, (b, g)) in ciphertext[poly..].iter_mut().zip(g).enumerate() {
                let limb = index / kept.degree();
                let p = kept.moduli()[limb];
                *b = p.add(*b, p.mul(g, delta[limb]));
            }
        }
    }
}
