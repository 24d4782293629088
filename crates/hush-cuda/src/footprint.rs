//! What the steps take of a device's memory beside what they are given: upper bounds, as they are allocated.

use hush_he::{entities::MatrixShape, params::RingParams};
use hush_ops::{
    contract::SentPoly,
    ntt_tiling::{MAX_TILE_WIDTH, NttTiling},
    pack_shape::PackShape,
    path::{Content, Footprint, StepShape},
    symbol_tiling::SymbolTiling,
    tiling::Tiling,
};

use crate::{
    Cuda, CudaDb,
    column::TERM_WORDS,
    lwe::{PreparedQueries, matrix_bytes},
    pack::LIFT_BYTES,
    ring::{
        CudaNttDb, DIGIT_BYTES, MAX_PASS, MAX_WIDTH, POINT_BYTES, POINTS, STAGING_BYTES, TILE_ROWS,
        TREE_BYTES, columns_at_once, rows_at_once,
    },
};

impl Footprint for Cuda {
    fn largest_batch(_: &StepShape) -> usize {
        MAX_PASS
    }

    fn footprint(step: &StepShape, batch: usize) -> usize {
        match *step {
            StepShape::LweFold { db } => lwe_fold(batch, db),
            // Each query has words of the rows of all; then its own are put together.
            StepShape::FoldOnline { db } => lwe_fold(batch, db.times(batch)) + WORD * batch * db.rows(),
            StepShape::LweHint { db, matrix: a, parts } => {
                batch * WORD * a.n() * db.rows().div_ceil(parts) + matrix(&a)
            }
            StepShape::ReinterpretLwe { db, .. } => CudaDb::bytes_for(db.times(batch)),
            StepShape::Expand { ring, rows, folds } => {
                RingBytes::new(&ring).expand(batch, ring.leaves(rows, folds), folds)
            }
            StepShape::LiftHint { ring, n, columns, .. } => {
                batch * RingBytes::new(&ring).lift_hint(n, columns)
            }
            StepShape::Pack { ring, hint: db, .. } | StepShape::RlweFold { ring, db } => {
                RingBytes::new(&ring).rlwe_fold(batch, db)
            }
            StepShape::PackOnline { ring, hint, rows, parts } => {
                batch * (3 * WORD * rows + RingBytes::new(&ring).polys(4 * parts * hint.columns()))
            }
            // In place.
            StepShape::AddRlwe { .. } => 0,
            StepShape::ReinterpretRlwe { ring, count, db } => {
                // Both halves as they are switched, and as words.
                batch * (2 * count * RingBytes::new(&ring).answer() + CudaDb::bytes_for(db))
            }
            StepShape::RgswFold { ring, entries, planes, parts } => {
                let bytes = RingBytes::new(&ring);
                bytes.rgsw_fold(batch, entries.div_ceil(parts), planes)
                    + bytes.polys(batch * 2 * parts * planes)
            }
            StepShape::SymbolFold { ring, db, parts } => {
                RingBytes::new(&ring).symbol_fold(batch, db.part(parts))
            }
            // As it was, turned and both, and a fold of two entries.
            StepShape::Rotate { ring, count, .. } => {
                let bytes = RingBytes::new(&ring);
                bytes.polys(batch * 8 * count) + bytes.rgsw_fold(batch, 2, count)
            }
            StepShape::PrivateKeySwitch { ring, folds, .. } => {
                RingBytes::new(&ring).polys(batch * 4 * folds * ring.fold_gadget().digits)
            }
            StepShape::RingSwitch { ring } => RingBytes::new(&ring).polys(2 * batch),
            StepShape::PackColumns { ring, columns, .. } => {
                RingBytes::new(&ring).pack_columns(batch, columns.cols())
            }
            StepShape::RgswPowerFold { ring, shape } => RingBytes::new(&ring).rgsw_power_fold(batch, &shape),
            // The words are there.
            StepShape::SendWords { bytes, .. } => batch * bytes,
            StepShape::Respond { ring, plaintexts } => RingBytes::new(&ring).respond(batch, plaintexts),
        }
    }

    fn resident(content: &Content) -> usize {
        match content {
            Content::Bytes(tiling) => CudaDb::bytes_for(*tiling),
            Content::Eval(tiling) => CudaNttDb::bytes_for(*tiling),
            Content::Symbols { db, .. } => db.bytes(),
            Content::Chain { ring, shape, folds } => RingBytes::new(ring).chain(shape, *folds),
            Content::Download { .. } => 0,
        }
    }

    fn staging(content: &Content) -> usize {
        match content {
            Content::Bytes(tiling) => db_staging(*tiling),
            Content::Eval(tiling) => ntt_db_staging(*tiling),
            Content::Symbols { .. } => 0,
            // Masks that nothing is folded with are rounded, and go back.
            Content::Chain { ring, shape, folds } => {
                let (bytes, plaintexts) = (RingBytes::new(ring), shape.plaintexts());
                bytes.chain(shape, *folds) + bytes.polys(2 * plaintexts) + bytes.respond(1, plaintexts)
            }
            Content::Download { .. } => 0,
        }
    }

    fn keys(ring: &RingParams) -> usize {
        RingBytes::new(ring).keys()
    }
}

/// A backend whose databases of symbols stay on the host ([`Cuda::with_symbols_on_host`]).
pub struct SymbolsOnHost;

impl Footprint for SymbolsOnHost {
    fn largest_batch(step: &StepShape) -> usize {
        Cuda::largest_batch(step)
    }

    fn footprint(step: &StepShape, batch: usize) -> usize {
        let copied = match *step {
            StepShape::SymbolFold { ring, db, parts } => {
                let db = db.part(parts);
                db.of_columns(columns_at_once(&db, ring.kept_limbs())).bytes()
            }
            _ => 0,
        };
        Cuda::footprint(step, batch) + copied
    }

    fn resident(content: &Content) -> usize {
        if matches!(content, Content::Symbols { .. }) { 0 } else { Cuda::resident(content) }
    }

    fn staging(content: &Content) -> usize {
        Cuda::staging(content)
    }

    fn keys(ring: &RingParams) -> usize {
        Cuda::keys(ring)
    }
}

/// A matrix, prepared for a fold, and what is on its way to that.
pub fn matrix(a: &MatrixShape) -> usize {
    let (kept, staged) = matrix_bytes(a);
    kept + staged
}

/// `lift_hint` of a tile of columns of the shape when a table is built: what is lifted is read back, too.
pub fn lift_tile(ring: &RingParams, n: usize, shape: &PackShape) -> usize {
    let (bytes, columns) = (RingBytes::new(ring), shape.plaintexts().min(MAX_TILE_WIDTH));
    bytes.lift_hint(n, columns) + STAGING_BYTES.min(n * columns * bytes.poly)
}

/// Bytes of a word.
const WORD: usize = size_of::<u32>();

/// `batch` vectors of `cols` words: as they came, and prepared for a fold.
fn vectors(batch: usize, cols: usize) -> usize {
    WORD * batch * cols + PreparedQueries::bytes_for(batch, cols)
}

/// `lwe_fold` with its queries and results.
fn lwe_fold(batch: usize, tiling: Tiling) -> usize {
    vectors(batch, tiling.cols()) + WORD * batch * tiling.rows()
}

/// What is uploaded at once of a database.
fn db_staging(tiling: Tiling) -> usize {
    if tiling.groups() == 0 { 0 } else { tiling.group_bytes(0).len() }
}

/// What is uploaded at once of a database in evaluation form.
fn ntt_db_staging(tiling: NttTiling) -> usize {
    tiling.bytes().min(STAGING_BYTES.max(WORD * tiling.group_words()))
}

/// The RLWE set, in bytes.
struct RingBytes<'a> {
    ring: &'a RingParams,
    /// A polynomial of one word a coefficient.
    word_poly: usize,
    /// A polynomial modulo Q_1.
    poly: usize,
    /// A polynomial modulo Q_e.
    full_poly: usize,
}

impl<'a> RingBytes<'a> {
    fn new(ring: &'a RingParams) -> Self {
        let word_poly = WORD * ring.degree();
        let full_limbs = ring.kept_limbs() + usize::from(ring.dropped_factor() > 1);
        Self { ring, word_poly, poly: word_poly * ring.kept_limbs(), full_poly: word_poly * full_limbs }
    }

    /// A client's evaluation keys.
    fn keys(&self) -> usize {
        let rows = |digits: usize| 2 * digits * self.full_poly;
        let levels: usize = self.ring.levels().iter().map(|gadget| rows(gadget.digits)).sum();
        levels + rows(self.ring.square_gadget().digits) + 6 * self.ring.pack_gadget().digits * self.poly
    }

    /// `expand`: trees with their digits and bottom rows, as many as are done at once; the bits of the folds. Selectors are counted
    /// by [`RingBytes::rlwe_fold`].
    fn expand(&self, batch: usize, leaves: usize, folds: usize) -> usize {
        let digits =
            self.ring.levels().iter().chain([&self.ring.square_gadget()]).map(|gadget| gadget.digits).max();
        // Two levels of nodes and the digits of a level, or leaves, bottom rows and their digits.
        let node = 4 * self.full_poly + digits.unwrap_or(0) * self.word_poly;
        let tree = leaves * node;
        let trees = (TREE_BYTES / (4 * leaves * self.full_poly).max(1)).clamp(1, batch);
        trees * tree + batch * 4 * folds * self.ring.fold_gadget().digits * self.poly
    }

    /// `rlwe_fold`: selectors, results, and both again by points.
    fn rlwe_fold(&self, batch: usize, tiling: NttTiling) -> usize {
        let padded = tiling.rows().next_multiple_of(TILE_ROWS) + tiling.columns().next_multiple_of(MAX_WIDTH);
        let by_points = 2 * batch * padded * self.poly;
        let least = by_points / tiling.poly_words().max(1) * POINTS;
        batch * tiling.fold_bytes() + by_points.min(POINT_BYTES.max(least))
    }

    /// `symbol_fold`: columns in evaluation form with the symbols that they are made of, the fold of these; and results of columns
    /// that are not folded at once, put together.
    fn symbol_fold(&self, batch: usize, db: SymbolTiling) -> usize {
        let at_once = columns_at_once(&db, self.ring.kept_limbs());
        let symbols = rows_at_once(&db, at_once).min(db.rows()) * at_once * (self.word_poly + self.poly);
        let columns = db.of_columns(at_once).evaluated(self.ring.kept_limbs());
        let fold = columns.map_or(0, |db| CudaNttDb::bytes_for(db) + symbols + self.rlwe_fold(batch, db));
        let all = if at_once < db.columns() { 2 * batch * db.columns() * 2 * self.poly } else { 0 };
        fold + all
    }

    /// `rgsw_fold` of `entries` entries of `planes` planes to one, and what is left of it.
    fn rgsw_fold(&self, batch: usize, entries: usize, planes: usize) -> usize {
        let items = |rounds: u32| batch * planes * entries.div_ceil(1 << rounds);
        let rooms = (items(1) + items(2) + items(0).min(batch * planes)) * 2 * self.poly;
        rooms + self.digits(batch, items(1) / batch)
    }

    /// Digits of both halves of so many ciphertexts of each query, by the gadget of folds.
    fn digits(&self, batch: usize, items: usize) -> usize {
        let query = items * 2 * self.ring.fold_gadget().digits * self.word_poly;
        (batch * query).min(DIGIT_BYTES.max(query))
    }

    /// An answer of so many plaintexts of each query: pairs with their digits, and the bytes that are sent.
    fn respond(&self, batch: usize, plaintexts: usize) -> usize {
        let pack = 3 * self.poly + 2 * self.ring.pack_gadget().digits * self.word_poly;
        batch * plaintexts * (pack + self.answer())
    }

    /// Both halves of a ciphertext at the widths of an answer.
    fn answer(&self) -> usize {
        SentPoly::halves(self.ring).iter().map(SentPoly::bytes).sum()
    }

    /// A hint of some columns that is lifted: its rows twice, the words and polynomials that are on their way, the result.
    fn lift_hint(&self, n: usize, columns: usize) -> usize {
        let tiling = NttTiling::new(self.ring.degree(), self.ring.kept_limbs(), n, columns);
        let lifted = tiling.map_or(0, CudaNttDb::bytes_for);
        let tile = n.next_multiple_of(TILE_ROWS) * columns * (self.poly + self.word_poly);
        let at_once = LIFT_BYTES.max(TILE_ROWS * columns * self.poly);
        2 * n * columns * self.word_poly + lifted + tile.min(2 * at_once)
    }

    /// `pack_columns` of all plaintexts, for queries with keys of `key_words` words.
    fn pack_columns(&self, batch: usize, key_words: usize) -> usize {
        vectors(batch, key_words) + batch * self.poly
    }

    /// `rgsw_power_fold` with its RGSW ciphertexts: the terms of as many planes as are folded at once, twice.
    fn rgsw_power_fold(&self, batch: usize, shape: &PackShape) -> usize {
        let (planes, plane) = (batch * shape.planes(), shape.entries().next_power_of_two() * self.poly);
        let at_once = planes.min((WORD * TERM_WORDS / plane).max(1));
        let rgsw = batch * 4 * self.ring.fold_gadget().digits * self.poly;
        2 * at_once * plane + rgsw + planes * 2 * self.poly
    }

    /// The polynomials of a chain: digits, and the masks of terms where entries are folded.
    fn chain(&self, shape: &PackShape, folds: bool) -> usize {
        let masks = if folds { shape.planes() * shape.entries().next_power_of_two() } else { 0 };
        (shape.plaintexts() + masks) * self.poly
    }

    /// Bytes of so many polynomials modulo Q_1.
    fn polys(&self, count: usize) -> usize {
        count * self.poly
    }
}
