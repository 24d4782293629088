//! `hush-bench build`: tables as the caller describes them, stage by stage. `hush-bench hint`: the hint of a square table.

use std::{error::Error, time::Instant};

use hush_build::planner::operands::random_db;
use hush_cpu::Cpu;
use hush_he::{
    entities::{MatrixDomain, PublicMatrix, PublicSeed},
    params::{DEFAULT_LWE, LWE_N1280_STD3_2_PLAIN},
};
use hush_ops::contract::LweOps;

use super::{Args, backends, report::Report, row::Row, scan::square, threads};

pub(super) fn run(args: &Args, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let threads = threads(args.threads);
    let backends = backends(args.backend, threads)?;
    for subject in args.subjects()? {
        let scratch = tempfile::tempdir()?;
        subject.build_and_report(&scratch.path().join("table"), &backends, report)?;
    }
    Ok(())
}

/// Measures the hint of a square table, for both structures of A.
pub(super) fn hints(args: &Args, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let cpu = Cpu::new(threads(args.threads))?;
    let tiling = square(args.size);
    let db = cpu.open_db(random_db(tiling)?)?;
    for lwe in [DEFAULT_LWE, LWE_N1280_STD3_2_PLAIN] {
        let shape = lwe.matrix_shape(MatrixDomain::First, tiling.cols());
        let matrix = PublicMatrix::new(PublicSeed([1; 32]), shape);
        let start = Instant::now();
        // Row groups come one after the other, as in a build.
        let step = 2048;
        for first in (0..tiling.rows()).step_by(step) {
            let hint = cpu.lwe_hint(&db, &matrix, first..tiling.rows().min(first + step))?;
            assert!(!hint.is_empty());
        }
        let seconds = start.elapsed().as_secs_f64();
        let row = Row::named(format!("hint {}", lwe.name()));
        report.push(&row.pass(cpu.threads(), tiling.bytes(), seconds));
    }
    Ok(())
}
