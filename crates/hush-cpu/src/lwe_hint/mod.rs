//! The hint of SimplePIR: the database times the public matrix.

use std::ops::Range;

use hush_he::entities::{MatrixStructure, PublicMatrix};
use hush_ops::tiling::TiledDb;

use crate::Cpu;

mod dense;
mod ring;

/// Computes `db[rows] * A mod 2^32`, row-major, by the structure of A.
pub(crate) fn lwe_hint(cpu: &Cpu, db: &TiledDb, a: &PublicMatrix, rows: Range<usize>) -> Vec<u32> {
    let by_transforms = match a.structure() {
        MatrixStructure::Plain => None,
        MatrixStructure::Ring { degree } => ring::lwe_hint(cpu, db, a, degree, rows.clone()),
    };
    by_transforms.unwrap_or_else(|| dense::lwe_hint(cpu, db, a, rows))
}

hush_ops::footprint!(Cpu: LweHint, |step, batch| {
    batch * size_of::<u32>() * step.matrix.n() * step.db.rows().div_ceil(step.parts)
});
