//! What the steps take of the host's memory.

use hush_he::params::RingParams;
use hush_ops::{
    contract::SentPoly,
    path::{Content, Footprint, StepShape},
};

use crate::Cpu;

/// Queries of which a fold over bytes has a tile of its own: what one pass takes.
const FOLD_QUERIES: usize = 64;
/// Queries of which one pass over a database in evaluation form is worth while.
const EXPANDED_QUERIES: usize = 8;

/// Bytes of a word.
const WORD: usize = size_of::<u32>();

impl Footprint for Cpu {
    fn largest_batch(step: &StepShape) -> usize {
        match step {
            StepShape::Expand { .. }
            | StepShape::Pack { .. }
            | StepShape::RlweFold { .. }
            | StepShape::SymbolFold { .. } => EXPANDED_QUERIES,
            StepShape::LweFold { .. }
            | StepShape::FoldOnline { .. }
            | StepShape::LweHint { .. }
            | StepShape::ReinterpretLwe { .. }
            | StepShape::LiftHint { .. }
            | StepShape::PackOnline { .. }
            | StepShape::AddRlwe { .. }
            | StepShape::ReinterpretRlwe { .. }
            | StepShape::RgswFold { .. }
            | StepShape::Rotate { .. }
            | StepShape::PrivateKeySwitch { .. }
            | StepShape::RingSwitch { .. }
            | StepShape::PackColumns { .. }
            | StepShape::RgswPowerFold { .. }
            | StepShape::SendWords { .. }
            | StepShape::Respond { .. } => FOLD_QUERIES,
        }
    }

    fn footprint(step: &StepShape, batch: usize) -> usize {
        let poly = |ring: &RingParams| WORD * ring.kept_limbs() * ring.degree();
        batch
            * match *step {
                StepShape::LweFold { db } => WORD * (db.cols() + db.rows()),
                StepShape::FoldOnline { db } => WORD * (db.cols() + (batch + 1) * db.rows()),
                StepShape::LweHint { db, matrix, parts } => WORD * matrix.n() * db.rows().div_ceil(parts),
                StepShape::ReinterpretLwe { db, .. } => db.bytes(),
                // Selectors are counted with the database that they meet.
                StepShape::Expand { ring, folds, .. } => folds * 4 * ring.fold_gadget().digits * poly(&ring),
                StepShape::LiftHint { ring, n, columns, .. } => n * columns * poly(&ring),
                StepShape::Pack { hint: db, .. } | StepShape::RlweFold { db, .. } => db.fold_bytes(),
                StepShape::PackOnline { ring, hint, rows, parts } => {
                    WORD * rows + parts * hint.columns() * 2 * poly(&ring)
                }
                StepShape::AddRlwe { .. } => 0,
                StepShape::ReinterpretRlwe { ring, count, db } => count * answer_bytes(&ring) + db.bytes(),
                // What is left of each part is kept for the last rounds.
                StepShape::RgswFold { ring, entries, planes, parts } => {
                    (entries.div_ceil(parts).div_ceil(2) + parts) * planes * 2 * poly(&ring)
                }
                StepShape::SymbolFold { ring, db, parts } => {
                    (db.rows() + db.columns().div_ceil(parts)) * 2 * poly(&ring)
                }
                // Twice: as they are made, and apart. Selectors are counted with the database that they meet.
                StepShape::PrivateKeySwitch { ring, folds, .. } => {
                    2 * folds * 4 * ring.fold_gadget().digits * poly(&ring)
                }
                // As it was, turned, and folded.
                StepShape::Rotate { ring, count, .. } => 3 * count * 2 * poly(&ring),
                StepShape::RingSwitch { ring } => 2 * size_of::<u64>() * ring.degree(),
                // Of the keys words and polynomials, as they came and as they are read; of the results a word a row.
                StepShape::PackColumns { ring, columns, .. } => {
                    WORD * (columns.cols() + columns.rows()) + 8 * poly(&ring)
                }
                StepShape::RgswPowerFold { ring, shape } => shape.planes() * 2 * poly(&ring),
                // Parts of an answer, and all of it.
                StepShape::SendWords { bytes, .. } => 2 * bytes,
                StepShape::Respond { ring, plaintexts } => 2 * plaintexts * answer_bytes(&ring),
            }
    }

    fn resident(content: &Content) -> usize {
        match content {
            Content::Bytes(tiling) => tiling.bytes(),
            Content::Eval(tiling) => tiling.bytes(),
            Content::Symbols { db, .. } => db.bytes(),
            Content::Chain { .. } => content.bytes() as usize,
            Content::Download { .. } => 0,
        }
    }

    fn staging(_: &Content) -> usize {
        0
    }

    fn keys(ring: &RingParams) -> usize {
        let limbs = ring.kept_limbs() + usize::from(ring.dropped_factor() > 1);
        let digits: usize =
            ring.levels().iter().chain([&ring.square_gadget()]).map(|gadget| gadget.digits).sum();
        let packing = 6 * ring.pack_gadget().digits * ring.kept_limbs();
        let private = ring.tlwe().map_or(0, |tlwe| 4 * tlwe.key_rows() * limbs);
        let switch = ring.switch().map_or(0, |switch| switch.key_words(ring.degree()));
        WORD * (ring.degree() * (2 * digits * limbs + packing + private) + switch)
    }
}

/// Bytes of both halves of a ciphertext at the widths of an answer.
fn answer_bytes(ring: &RingParams) -> usize {
    SentPoly::halves(ring).iter().map(SentPoly::bytes).sum()
}
