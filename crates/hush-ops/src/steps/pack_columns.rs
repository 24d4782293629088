//! The step `pack_columns` (3c): packs LWE ciphertexts by keys of the query.

use super::*;

/// The shape of `pack_columns` (3c).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PackColumns {
    /// The RLWE set.
    pub ring: RingParams,
    /// The pack columns: rows x 4N.
    pub columns: Tiling,
    /// The rows that are packed together.
    pub shape: PackShape,
}

impl StepKind for PackColumns {
    fn scans(&self) -> bool {
        true
    }

    /// Counts the digits once for a batch, and the words once for each query.
    fn work(&self, batch: usize) -> Work {
        let Self { ring, columns, shape } = self;
        let queries = batch as f64;
        let polys = queries * (ring.kept_limbs() * (1 + shape.plaintexts())) as f64;
        let products = polys * ring.degree() as f64;
        let digits = shape.plaintexts() * poly_bytes(ring);
        let words = queries * (size_of::<u32>() * shape.rows()) as f64;
        let operand_bytes = words + digits as f64;
        let packed = Work { operand_bytes, transforms: polys, products, sums: products, ..Work::default() };
        fold(*columns, queries) + packed
    }

    fn sample<'b, B: Steps>(&self, make: &Maker<'_, 'b, B>) -> Made<'b> {
        let Self { columns, shape, .. } = *self;
        let &Maker { backend, batch, .. } = make;
        let on = make.open(&self.ring)?;
        let db = make.operands.db(backend, columns)?;
        let chain = ChainPolys { digits: residues(&on.context, shape.plaintexts()), masks: Vec::new() };
        let chain = backend.open_chain(&on.ring, &shape, chain)?;
        let keys = random_queries(columns.cols(), batch);
        let conjugation: Poly<Coeff> = on.context.kept().expand_uniform(&mut Csprng::insecure_from_seed(2));
        let mut folded = Some(make.folded(shape.rows(), batch)?);
        Ok(Box::new(move || {
            let words = folded.take().expect("the run before has put them back");
            let conjugations = vec![&conjugation; batch];
            folded = Some(backend.pack_columns(&on.ring, &db, &chain, words, &keys, &conjugations)?);
            Ok(())
        }))
    }
}

/// Checks that columns, folded words and keys fit one shape and the same number of queries.
pub(crate) fn check<W: WordStore>(
    ring: &RingContext,
    shape: &PackShape,
    columns: Tiling,
    folded: &LweBatch<W>,
    keys: &LweQueries,
    conjugations: &[&Poly<Coeff>],
) -> Result<PackColumns, OpsError> {
    let step = "pack_columns";
    OpsError::check_shape(step, "rows of the columns", shape.rows(), columns.rows())?;
    OpsError::check_shape(step, "pack columns", PACK_BYTES * shape.degree(), columns.cols())?;
    lwe_fold::check(columns, keys)?;
    OpsError::check_shape(step, "conjugation keys", keys.batch(), conjugations.len())?;
    for poly in conjugations {
        OpsError::check_shape(step, "words of a conjugation key", poly_words(ring), poly.words().len())?;
    }
    check_rows(step, shape, folded, conjugations.len())?;
    Ok(PackColumns { ring: *ring.params(), columns, shape: *shape })
}

/// Checks that a batch has the rows of the shape for each of `queries` queries.
pub(super) fn check_rows<W: WordStore>(
    step: &'static str,
    shape: &PackShape,
    batch: &LweBatch<W>,
    queries: usize,
) -> Result<(), OpsError> {
    OpsError::check_shape(step, "rows", shape.rows(), batch.rows)?;
    OpsError::check_shape(step, "words of all queries", shape.rows() * queries, batch.words.len())
}

/// Packs, adding to the folded words.
pub(crate) fn reference(
    ring: &RingContext,
    columns: &TiledDb,
    (shape, polys): &(PackShape, ChainPolys),
    mut folded: LweBatch,
    keys: &LweQueries,
    conjugations: &[&Poly<Coeff>],
) -> LweBatch {
    let switched = lwe_fold::reference(columns, keys);
    folded.words.iter_mut().zip(&switched.words[..]).for_each(|(b, &part)| *b = b.wrapping_add(part));
    let kept = ring.kept();
    for (words, &z) in folded.words.chunks_exact_mut(shape.rows()).zip(conjugations) {
        let z = kept.forward(z.clone());
        for (column, digit) in polys.digits.chunks_exact(poly_words(ring)).enumerate() {
            let mut product = Poly::from_words(digit.to_vec(), kept.degree());
            kept.mul(&mut product, &z);
            let rounded = switch_to_power_of_two(kept, &kept.inverse(product), u32::BITS);
            for (b, word) in words[shape.plaintext_rows(column)].iter_mut().zip(rounded) {
                *b = b.wrapping_add(word as u32);
            }
        }
    }
    folded
}
