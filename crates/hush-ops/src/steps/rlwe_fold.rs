//! The step `rlwe_fold` (6): fold the first dimension of ring elements.

use super::*;

/// The fewest bits of a modulus: the kernels' quotient estimates ignore 12 bits of a sum.
const MIN_MODULUS_BITS: u32 = 20;

/// The shape of `rlwe_fold` (6) of a database in evaluation form.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RlweFold {
    /// The RLWE set.
    pub ring: RingParams,
    /// The database: D0 rows, and a column for each plane of each entry.
    pub db: NttTiling,
}

impl StepKind for RlweFold {
    fn scans(&self) -> bool {
        true
    }

    fn work(&self, batch: usize) -> Work {
        Work { bytes: self.db.bytes() as f64, ..selected(self.db, batch as f64) }
    }

    fn sample<'b, B: Steps>(&self, make: &Maker<'_, 'b, B>) -> Made<'b> {
        let backend = make.backend;
        let on = make.open(&self.ring)?;
        let selectors = make.of_each(&on, self.db.rows())?;
        let db = make.operands.ntt_db(backend, &on.ring, self.db)?;
        Ok(Box::new(move || {
            let selectors: Vec<_> = selectors.iter().collect();
            backend.rlwe_fold(&on.ring, &db, &selectors).map(drop)
        }))
    }
}

/// Checks that a database has the degree and limbs of R modulo Q_1.
pub fn check_db(ring: &RingContext, tiling: NttTiling) -> Result<(), OpsError> {
    let step = "open_ntt_db";
    OpsError::check_shape(step, "degree", ring.kept().degree(), tiling.degree())?;
    OpsError::check_shape(step, "limbs", ring.kept().limbs(), tiling.limbs())
}

/// Checks that the database has the degree and limbs of R modulo Q_1, and that every query has one selector for each of its rows.
pub(crate) fn check<W: WordStore>(
    ring: &RingContext,
    db: NttTiling,
    selectors: &[&RlweBatch<W>],
) -> Result<RlweFold, OpsError> {
    check_db(ring, db)?;
    check_words(db, ring.kept().moduli(), selectors.iter().map(|selectors| selectors.words.len()))?;
    Ok(RlweFold { ring: *ring.params(), db })
}

/// Checks that there is one modulus a limb, of at least 20 bits, and that every query has one selector (two polynomials) a row.
/// `selectors` yields the number of words of each query's selectors.
pub fn check_words(
    tiling: NttTiling,
    moduli: &[Modulus],
    mut selectors: impl Iterator<Item = usize>,
) -> Result<(), OpsError> {
    let step = "rlwe_fold";
    OpsError::check_shape(step, "number of moduli", tiling.limbs(), moduli.len())?;
    for bits in moduli.iter().map(Modulus::bits) {
        let enough = bits.max(MIN_MODULUS_BITS);
        OpsError::check_shape(step, "bits of a modulus", enough as usize, bits as usize)?;
    }
    let words = tiling.rows() * RLWE_POLYS * tiling.poly_words();
    selectors.try_for_each(|query| OpsError::check_shape(step, "words of a query's selectors", words, query))
}

/// Returns, for every query `b`, `out[b][column][poly][limb][slot] = sum_k db[k][column] * selectors[b][k][poly]` at every limb
/// and slot, modulo the limb's prime. The selectors of a query are canonical residues in the order
/// `[row k][poly][limb][slot]`, where the polynomials are a, b of an RLWE ciphertext in NTT form.
///
/// # Panics
/// If the number of moduli is not that of limbs, or a query has fewer selectors than there are rows.
pub fn reference(moduli: &[Modulus], db: &NttTiledDb, selectors: &[&[u32]]) -> Vec<Vec<u32>> {
    selectors.iter().map(|query| fold_query(moduli, db, query)).collect()
}

fn fold_query(moduli: &[Modulus], db: &NttTiledDb, selectors: &[u32]) -> Vec<u32> {
    let tiling = db.tiling();
    let mut out = Vec::with_capacity(tiling.columns() * RLWE_POLYS * tiling.poly_words());
    for column in 0..tiling.columns() {
        for poly in 0..RLWE_POLYS {
            for (limb, modulus) in moduli.iter().enumerate() {
                for slot in 0..tiling.degree() {
                    let mut sum = 0;
                    for k in 0..tiling.rows() {
                        let word = ((k * RLWE_POLYS + poly) * tiling.limbs() + limb) * tiling.degree() + slot;
                        sum = modulus.add(sum, modulus.mul(db.at(limb, slot, k, column), selectors[word]));
                    }
                    out.push(sum);
                }
            }
        }
    }
    out
}
