//! Bytes of device memory that the steps take beside what they are given: upper bounds, as the CUDA backend allocates them.

use std::ops::Range;

use hush_cuda::{CudaDb, ring::CudaNttDb};
use hush_he::params::RingParams;
use hush_ops::{
    ntt_tiling::{MAX_TILE_WIDTH, NttTiling},
    pack_shape::PackShape,
    tiling::Tiling,
};

/// Bytes of a word.
pub(super) const WORD: usize = size_of::<u32>();
/// Columns of a tile of a database, to which queries are padded.
const TILE_COLS: usize = 128;
/// Fewest queries that a pass is padded to.
const FEWEST_QUERIES: usize = 4;
/// Columns of A that a pass takes at most.
const PASS: usize = 64;
/// What a step sets aside for what it does in parts, at most: trees of an expansion, digits of a fold, sums, polynomials.
const WORKSPACE: usize = 2 << 30;
/// Bytes of the terms that a fold by powers has at once, in one copy.
const POWER_TERMS: usize = WORD << 27;
/// Bytes of a hint, or a database in evaluation form, that are on their way between layouts at once.
const CHUNK: usize = 256 << 20;
/// Bytes of A that are uploaded at once, at most.
const MATRIX_STAGING: usize = 48 << 20;

/// `batch` vectors of `cols` words: as they came, and prepared for a fold.
pub(super) fn vectors(batch: usize, cols: usize) -> usize {
    let padded = batch.next_power_of_two().max(FEWEST_QUERIES);
    WORD * (batch * cols + padded * cols.next_multiple_of(TILE_COLS))
}

/// `lwe_fold` with its queries and results.
pub(super) fn lwe_fold(batch: usize, tiling: Tiling) -> usize {
    vectors(batch, tiling.cols()) + WORD * batch * tiling.rows()
}

/// A matrix of n columns, prepared for a fold, and what is made of it at once.
pub(super) fn matrix(n: usize, cols: usize) -> usize {
    let words = n.next_multiple_of(PASS) * cols.next_multiple_of(TILE_COLS);
    WORD * words + MATRIX_STAGING.min(WORD * words)
}

/// `reinterpret_lwe`, a fold of its result, and the hint of that.
pub(super) fn second_stage(n: usize, tiling: Tiling) -> usize {
    CudaDb::bytes_for(tiling) + lwe_fold(1, tiling) + WORD * n * tiling.rows() + matrix(n, tiling.cols())
}

/// What is uploaded at once of a database.
pub(super) fn db_staging(tiling: Tiling) -> usize {
    if tiling.groups() == 0 { 0 } else { tiling.group_bytes(0).len() }
}

/// What is uploaded at once of a database in evaluation form.
pub(super) fn ntt_db_staging(tiling: NttTiling) -> usize {
    tiling.bytes().min(CHUNK.max(WORD * tiling.group_words()))
}

/// The RLWE set, in bytes.
pub(super) struct RingBytes<'a> {
    ring: &'a RingParams,
    /// A polynomial of one word a coefficient.
    word_poly: usize,
    /// A polynomial modulo Q_1.
    poly: usize,
    /// A polynomial modulo Q_e.
    full_poly: usize,
}

impl<'a> RingBytes<'a> {
    pub(super) fn new(ring: &'a RingParams) -> Self {
        let word_poly = WORD * ring.degree();
        let full_limbs = ring.kept_limbs() + usize::from(ring.dropped_factor() > 1);
        Self { ring, word_poly, poly: word_poly * ring.kept_limbs(), full_poly: word_poly * full_limbs }
    }

    /// A client's evaluation keys.
    pub(super) fn keys(&self) -> usize {
        let rows = |digits: usize| 2 * digits * self.full_poly;
        let levels: usize = self.ring.levels().iter().map(|gadget| rows(gadget.digits)).sum();
        levels + rows(self.ring.square_gadget().digits) + 6 * self.ring.pack_gadget().digits * self.poly
    }

    /// `expand`: trees with their digits and bottom rows, as many as are done at once; the bits of the folds. Selectors are counted
    /// by [`RingBytes::rlwe_fold`].
    pub(super) fn expand(&self, batch: usize, leaves: usize, folds: usize) -> usize {
        let digits =
            self.ring.levels().iter().chain([&self.ring.square_gadget()]).map(|gadget| gadget.digits).max();
        // Two levels of nodes and the digits of a level, or leaves, bottom rows and their digits.
        let node = 4 * self.full_poly + digits.unwrap_or(0) * self.word_poly;
        let tree = leaves * node;
        let trees = (WORKSPACE / (4 * leaves * self.full_poly).max(1)).clamp(1, batch);
        trees * tree + batch * 4 * folds * self.ring.fold_gadget().digits * self.poly
    }

    /// `rlwe_fold`: selectors, results, and both again by points.
    pub(super) fn rlwe_fold(&self, batch: usize, tiling: NttTiling) -> usize {
        let padded = tiling.rows().next_multiple_of(32) + tiling.columns().next_multiple_of(64);
        let by_points = 2 * batch * padded * self.poly;
        // Half of a workspace, but for some points of a very long database.
        let least = by_points / tiling.poly_words().max(1) * 32;
        batch * tiling.fold_bytes() + by_points.min((WORKSPACE / 2).max(least))
    }

    /// `rgsw_fold` of `entries` entries of `planes` planes to one, and what is left of it.
    pub(super) fn rgsw_fold(&self, batch: usize, entries: usize, planes: usize) -> usize {
        let items = |rounds: u32| batch * planes * entries.div_ceil(1 << rounds);
        let rooms = (items(1) + items(2) + items(0).min(batch * planes)) * 2 * self.poly;
        rooms + self.digits(batch, items(1) / batch)
    }

    /// Digits of both halves of so many ciphertexts of each query, by the gadget of folds.
    pub(super) fn digits(&self, batch: usize, items: usize) -> usize {
        let query = items * 2 * self.ring.fold_gadget().digits * self.word_poly;
        (batch * query).min(WORKSPACE.max(query))
    }

    /// An answer of so many plaintexts of each query: pairs with their digits, and what is switched.
    pub(super) fn respond(&self, batch: usize, plaintexts: usize) -> usize {
        let pack = 3 * self.poly + 2 * self.ring.pack_gadget().digits * self.word_poly;
        batch * plaintexts * (pack + 2 * 2 * self.word_poly)
    }

    /// A hint of some columns that is lifted: its rows twice, the words and polynomials that are on their way, the result.
    pub(super) fn lift_hint(&self, n: usize, columns: usize) -> usize {
        let tiling = NttTiling::new(self.ring.degree(), self.ring.kept_limbs(), n, columns);
        let lifted = tiling.map_or(0, CudaNttDb::bytes_for);
        let tile = n.next_multiple_of(32) * columns * (self.poly + self.word_poly);
        2 * n * columns * self.word_poly + lifted + tile.min(2 * CHUNK.max(32 * columns * self.poly))
    }

    /// The same for the hint of a tile of columns of the shape; what is lifted is read back, too.
    pub(super) fn lift_tile(&self, n: usize, shape: &PackShape) -> usize {
        let columns = shape.plaintexts().min(MAX_TILE_WIDTH);
        self.lift_hint(n, columns) + CHUNK.min(n * columns * self.poly)
    }

    /// `pack_columns` of all plaintexts, for queries with keys of `key_words` words.
    pub(super) fn pack_columns(&self, batch: usize, key_words: usize) -> usize {
        vectors(batch, key_words) + batch * self.poly
    }

    /// `rgsw_power_fold` with its RGSW ciphertexts: the terms of as many planes as are folded at once, twice.
    pub(super) fn rgsw_power_fold(&self, batch: usize, shape: &PackShape) -> usize {
        let (planes, plane) = (batch * shape.planes(), shape.entries().next_power_of_two() * self.poly);
        let at_once = planes.min((POWER_TERMS / plane).max(1));
        let rgsw = batch * 4 * self.ring.fold_gadget().digits * self.poly;
        2 * at_once * plane + rgsw + planes * 2 * self.poly
    }

    /// The polynomials of a chain: digits, and the masks of terms where entries are folded.
    pub(super) fn chain(&self, shape: &PackShape, folds: bool) -> usize {
        let masks = if folds { shape.planes() * shape.entries().next_power_of_two() } else { 0 };
        (shape.plaintexts() + masks) * self.poly
    }

    /// Bytes of so many polynomials modulo Q_1.
    pub(super) fn polys(&self, count: usize) -> usize {
        count * self.poly
    }
}

/// A batch that is packed with a hint of each query's own, of which `columns` are done at once: `rows x cols` bytes are folded,
/// whose hint has n words a row.
pub(super) fn pack_online(ring: &RingBytes<'_>, n: usize, tiling: Tiling, columns: Range<usize>) -> usize {
    let rows = tiling.rows().max(1);
    CudaDb::bytes_for(tiling)
        + lwe_fold(1, tiling)
        + matrix(n, tiling.cols())
        + ring.lift_hint(n, columns.len())
        + 2 * WORD * rows
}
