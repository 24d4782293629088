//! `hush-bench build`: a key table of 1-KiB values, stage by stage, and the hint of a square table.

use std::{error::Error, time::Instant};

use hush_build::{builder::BuildOptions, planner::operands::random_db};
use hush_cpu::Cpu;
use hush_he::{
    entities::{MatrixDomain, PublicMatrix, PublicSeed},
    params::{DEFAULT_LWE, LWE_N1280_STD3_2_PLAIN},
};
use hush_ops::contract::LweOps;
use hush_protocol::keyword::FilterKind;

use super::{
    Args, backends,
    report::Report,
    row::Row,
    scan::square,
    tables::{self, Records},
    threads,
};

/// The bytes of a value.
pub(super) const VALUE_BYTES: usize = 1024;

pub(super) fn run(args: &Args, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let threads = threads(args.threads);
    let backends = backends(args.backend, threads)?;
    report.note(&format!("{} threads, {}", threads, backends.cpu().level()));
    hints(args, backends.cpu(), report)?;
    for protocol in args.protocols() {
        let scratch = tempfile::tempdir()?;
        for filter in [FilterKind::Band256, FilterKind::Fuse3, FilterKind::Fuse4] {
            let options = BuildOptions { filter: Some(filter), ..tables::options(protocol) };
            let records = Records { size: args.size, length: VALUE_BYTES, keyed: true };
            let start = Instant::now();
            let (header, mut stages) =
                records.build(&options, &scratch.path().join(filter.name()), &backends)?;
            stages.push(("all".into(), start.elapsed().as_secs_f64()));
            let row = Row::named(format!("{filter}: ")).of(protocol);
            tables::push_stages(&stages, &header, &row, threads, report);
            tables::describe(&header, header.descriptor.params()?.facts(), report);
        }
    }
    Ok(())
}

/// Measures the hint of a square table, for both structures of A.
fn hints(args: &Args, cpu: &Cpu, report: &mut Report) -> Result<(), Box<dyn Error>> {
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
