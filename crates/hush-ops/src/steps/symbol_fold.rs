//! The step `symbol_fold` (5)(6): fold the first dimension of a database of symbols.

use super::*;

/// The most bits of a kept prime: sums of four products of residues fit into 64 bits.
const MAX_MODULUS_BITS: u32 = 31;

/// The shape of `symbol_fold` (5)(6).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SymbolFold {
    /// The RLWE set.
    pub ring: RingParams,
    /// The database: D0 rows, and a column for each plane of each entry.
    pub db: SymbolTiling,
    /// The parts of the columns, processed one after another.
    pub parts: usize,
}

impl StepKind for SymbolFold {
    fn scans(&self) -> bool {
        true
    }

    /// Counts the transforms once for a batch, since all its queries share them.
    fn work(&self, batch: usize) -> Work {
        let Self { ring, db, .. } = self;
        let queries = batch as f64;
        let transforms = (db.rows() * db.columns() * ring.kept_limbs()) as f64;
        let sums = 2.0 * queries * (db.columns() * ring.kept_limbs() * ring.degree()) as f64;
        let bytes = db.bytes() as f64;
        let products = sums * db.rows() as f64;
        let operand_bytes = ciphertext_bytes(ring, queries * (db.rows() + db.columns()) as f64);
        let database_products = products;
        Work { bytes, operand_bytes, transforms, products, database_products, sums, ..Work::default() }
    }

    fn sample<'b, B: Steps>(&self, make: &Maker<'_, 'b, B>) -> Made<'b> {
        let backend = make.backend;
        let on = make.open(&self.ring)?;
        let selectors = make.of_each(&on, self.db.rows())?;
        let db = make.operands.symbols(backend, &on.ring, self.ring, self.db)?;
        Ok(Box::new(move || {
            let selectors: Vec<_> = selectors.iter().collect();
            backend.symbol_fold(&on.ring, &db, &selectors).map(drop)
        }))
    }
}

/// Checks that the database has the set's degree and symbols, and that the kept primes are short enough.
pub(crate) fn check_db(step: &'static str, ring: &RingContext, db: SymbolTiling) -> Result<(), OpsError> {
    let params = ring.params();
    OpsError::check_shape(step, "degree", params.degree(), db.degree())?;
    OpsError::check_shape(step, "bits of a symbol", params.plaintext_bits() as usize, db.bits() as usize)?;
    ring.kept().moduli().iter().map(|p| p.bits()).try_for_each(|bits| {
        OpsError::check_shape(step, "bits of a modulus", bits.min(MAX_MODULUS_BITS) as usize, bits as usize)
    })
}

/// Checks the database, and that every query has one selector for each row.
pub(crate) fn check<W: WordStore>(
    ring: &RingContext,
    db: SymbolTiling,
    selectors: &[&RlweBatch<W>],
) -> Result<SymbolFold, OpsError> {
    let step = "symbol_fold";
    check_db(step, ring, db)?;
    let words = db.rows() * ciphertext_words(ring);
    for query in selectors {
        OpsError::check_shape(step, "words of a query's selectors", words, query.words.len())?;
    }
    Ok(SymbolFold { ring: *ring.params(), db, parts: 1 })
}

/// Transforms the database to evaluation form.
pub(crate) fn evaluated(ring: &RingContext, db: &SymbolDb) -> Result<NttTiledDb, OpsError> {
    let tiling = db.tiling();
    let places = (0..tiling.rows()).flat_map(|row| (0..tiling.columns()).map(move |column| (row, column)));
    let symbols: Vec<u32> =
        places.flat_map(|(row, column)| tiling.unpack(db.plaintext(row, column))).collect();
    let polys = ntt_db::reference(ring, &symbols);
    Ok(NttTiledDb::from_polys(tiling.evaluated(ring.kept().limbs())?, &polys))
}
