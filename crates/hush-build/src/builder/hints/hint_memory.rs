//! The GPU memory that the computation of a hint takes.

use hush_cuda::{Cuda, CudaDb, lift_tile_bytes, matrix_bytes};
use hush_engine::{MemoryPlan, Part};
use hush_he::entities::MatrixShape;
use hush_ops::{
    path::{Content, Footprint},
    tiling::{GROUP_ROWS, Tiling},
};
use hush_protocol::facts::{HintPlan, HintProduct};

use super::hint::STEP_ROWS;

/// The bytes of a word.
const WORD: usize = size_of::<u32>();

/// Returns the memory that the computation of a hint and of its product takes.
pub(in crate::builder) fn plan(hint: &HintPlan) -> MemoryPlan {
    let db = Tiling::new(hint.rows, hint.matrix.cols());
    let mut parts = vec![
        Part { name: "database", bytes: CudaDb::bytes_for(db) },
        Part { name: "matrix", bytes: matrix_bytes(&hint.matrix) },
    ];
    if let Some(second) = &hint.second {
        parts.push(Part { name: "second database", bytes: CudaDb::bytes_for(second.tiling) });
        parts.push(Part { name: "second matrix", bytes: matrix_bytes(&second.matrix) });
    }
    let rows = |rows| hint_rows(&hint.matrix, db, rows);
    let working = match hint.product {
        HintProduct::Download { .. } => rows(STEP_ROWS),
        HintProduct::Lifted { ring, shape } => {
            lift_tile_bytes(&ring, hint.matrix.n(), &shape) + rows(STEP_ROWS)
        }
        HintProduct::Chained { params, .. } => {
            // The GPU takes as many plaintexts at once as fit, at least one: its hint, two matrices of residues, its pack columns.
            let ring = params.ring();
            let chain = (2 + 2 * ring.kept_limbs()) * WORD * ring.degree() * ring.degree();
            chain + 2 * rows(ring.degree())
        }
    };
    let staging = Cuda::staging(&Content::Bytes(db));
    let upload = db.bytes();
    MemoryPlan::of_work(parts, staging, upload, working)
}

/// Returns the bytes of `rows` rows of the hint of `db`: the rows that a step computes, and the rows that are kept.
fn hint_rows(matrix: &MatrixShape, db: Tiling, rows: usize) -> usize {
    let whole = rows.next_multiple_of(GROUP_ROWS) + 2 * GROUP_ROWS;
    WORD * matrix.n() * (whole + rows + STEP_ROWS).min(3 * db.rows().max(rows))
}
