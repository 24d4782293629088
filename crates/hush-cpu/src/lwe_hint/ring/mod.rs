//! The hint for an A of negacyclic blocks, by number-theoretic transforms.
//!
//! With db_j(X) the polynomial of the columns of block j and alpha_{j,k} the ring elements of A, column block k of
//! the hint is `sum_j db_j(X) alpha_{j,k}(1/X)` in Z\[X\]/(X^d + 1). Both factors are small: with alpha centred, a sum
//! over 2^16 columns is below 2^54 in absolute value. So the sum is computed exactly modulo two primes of 28 bits,
//! and then reduced modulo 2^32. Wider tables are summed up in segments.

use std::ops::Range;

use hush_he::entities::PublicMatrix;
use hush_ops::tiling::TiledDb;
use rayon::prelude::*;

use crate::{Cpu, lanes::vector_loop};

mod kernel;
mod plan;
mod transform;

use plan::RingPlan;

/// The number of rows of a unit of work.
const UNIT_ROWS: usize = 16;

/// Computes `db[rows] * A`, row-major, for `rows` of whole groups. `None` if there are no two primes for this degree.
pub(super) fn lwe_hint(
    cpu: &Cpu,
    db: &TiledDb,
    a: &PublicMatrix,
    degree: usize,
    rows: Range<usize>,
) -> Option<Vec<u32>> {
    let n = a.n();
    let mut out = vec![0; rows.len() * n];
    if out.is_empty() || a.cols() == 0 {
        return Some(out);
    }
    let plan = RingPlan::new(a, degree)?;
    cpu.install(|| {
        out.par_chunks_mut(UNIT_ROWS * n).enumerate().with_max_len(1).for_each(|(unit, out)| {
            let rows = UnitRows { db, first: rows.start + unit * UNIT_ROWS };
            cpu.with_workspace(|workspace| {
                vector_loop::run(cpu.level(), kernel::Unit { plan: &plan, rows: &rows, workspace, out });
            });
        });
    });
    Some(out)
}

/// Rows `first .. first + 16` of a database, padding rows included; `first` is a multiple of 16.
pub(crate) struct UnitRows<'a> {
    db: &'a TiledDb,
    first: usize,
}
