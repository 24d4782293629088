//! The memory of tables whose hint is computed.

use hush_cuda::CudaDb;
use hush_he::entities::PublicMatrix;
use hush_ops::tiling::{GROUP_ROWS, Tiling};
use hush_protocol::{
    column_table::ColumnTable,
    lwe_table::LweTable,
    pack_table::PackTable,
    table::{Protocol, TableParams},
};

use super::{
    MemoryPlan, Part,
    batches::{RingBytes, WORD, db_staging, matrix},
};
use crate::build::hint::STEP_ROWS;

impl MemoryPlan {
    /// A table whose hint is computed, and what comes of it.
    pub(crate) fn to_build(table: &TableParams) -> Self {
        match table {
            TableParams::Lwe(table) => lwe(table),
            TableParams::Pack(table) => pack(table),
            TableParams::Column(table) => column(table),
            TableParams::Ring(_) => plan(Vec::new(), Tiling::new(0, 0), 0),
        }
    }
}

/// The hint of a database that is read.
struct Hint {
    matrix: PublicMatrix,
    tiling: Tiling,
}

impl Hint {
    /// The database and the matrix.
    fn parts(&self) -> Vec<Part> {
        vec![
            Part { name: "database", bytes: CudaDb::bytes_for(self.tiling) },
            Part { name: "matrix", bytes: matrix(&self.matrix) },
        ]
    }

    /// Some rows of the hint: those that a step makes, and those of them that are kept.
    fn rows(&self, rows: usize) -> usize {
        let whole = rows.next_multiple_of(GROUP_ROWS) + 2 * GROUP_ROWS;
        WORD * self.matrix.n() * (whole + rows + STEP_ROWS).min(3 * self.tiling.rows().max(rows))
    }
}

fn plan(parts: Vec<Part>, first: Tiling, working: usize) -> MemoryPlan {
    let (staging, upload) = (db_staging(first), first.bytes());
    let batches = vec![working];
    MemoryPlan { parts, keys: 0, keys_promised: 0, staging, upload, one: "working memory", batches }
}

fn lwe(table: &LweTable) -> MemoryPlan {
    let tiling = table.tiling();
    let hint = Hint { matrix: table.first_matrix(), tiling };
    let mut parts = hint.parts();
    if table.protocol() == Protocol::Double {
        parts.push(Part { name: "second database", bytes: CudaDb::bytes_for(table.second_tiling()) });
        parts.push(Part { name: "second matrix", bytes: matrix(&table.second_matrix()) });
    }
    plan(parts, tiling, hint.rows(STEP_ROWS))
}

fn pack(table: &PackTable) -> MemoryPlan {
    let (tiling, n, shape) = (table.tiling(), table.params().lwe().n(), table.hint_shape());
    let ring = RingBytes::new(table.params().ring());
    let hint = Hint { matrix: table.first_matrix(), tiling };
    let mut parts = hint.parts();
    if table.protocol() == Protocol::ExppackD {
        parts.push(Part { name: "second database", bytes: CudaDb::bytes_for(table.second_tiling()) });
        parts.push(Part { name: "second matrix", bytes: matrix(&table.second_matrix()) });
    }
    plan(parts, tiling, ring.lift_tile(n, &shape) + hint.rows(STEP_ROWS))
}

fn column(table: &ColumnTable) -> MemoryPlan {
    let ring = table.params().ring();
    let hint = Hint { matrix: table.matrix(), tiling: table.tiling() };
    // As many at once as there is room for, but at least one: its hint, two matrices of residues, its columns.
    let chain = (2 + 2 * ring.kept_limbs()) * WORD * ring.degree() * ring.degree();
    plan(hint.parts(), table.tiling(), chain + 2 * hint.rows(ring.degree()))
}
