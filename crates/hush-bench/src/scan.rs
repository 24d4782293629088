//! `hush-bench scan`: the fold against the read bandwidth of the same buffer.

use std::error::Error;

use hush_build::planner::operands::random_db;
use hush_cpu::Cpu;
use hush_math::csprng::Csprng;
use hush_ops::{
    contract::LweOps,
    reference::Reference,
    steps::sample::random_queries,
    tiling::{TiledDb, Tiling},
};

use super::{Args, probe, report::Report, row::Row, timing::timed};

/// The columns of the wide shape.
const WIDE: usize = 65_536;

pub(super) fn run(args: &Args, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let mut shapes = vec![square(args.size), Tiling::new(args.size / WIDE, WIDE)];
    shapes.dedup();
    for tiling in shapes {
        let db = random_db(tiling)?;
        for threads in args.thread_counts() {
            let cpu = Cpu::new(threads)?;
            let peak = probe::int8_peak_tops(cpu.level(), threads)?;
            let stream = probe::stream_read_gbps(db.bytes(), threads);
            report.note(&format!(
                "{} x {}, {} threads, {}: stream {stream:.1} GB/s, peak {peak:.2} TOPS",
                tiling.rows(),
                tiling.cols(),
                threads,
                cpu.level()
            ));
            let db = cpu.open_db(db.clone())?;
            for &batch in args.batches() {
                let row = measure(&cpu, &db, tiling, batch)?;
                report.push(&row.stream(stream).arithmetic(peak));
            }
        }
    }
    Ok(())
}

/// Returns the shape of a table of `size` bytes that has about as many rows as columns.
pub(super) fn square(size: usize) -> Tiling {
    let side = ((size as f64).sqrt() as usize).next_multiple_of(64);
    Tiling::new(size / side, side)
}

/// Measures the fold of a batch. Fails if its words differ from those of the reference.
fn measure(cpu: &Cpu, db: &TiledDb, tiling: Tiling, batch: usize) -> Result<Row, Box<dyn Error>> {
    let queries = random_queries(tiling.cols(), batch);
    // A wrong fast answer is a failure: the first panel against the reference.
    let mut panel = vec![0; 40 * tiling.cols()];
    Csprng::insecure_from_seed(1).fill_bytes(&mut panel);
    let panel = TiledDb::from_matrix(40, tiling.cols(), &panel);
    if cpu.lwe_fold(&panel, &queries)? != Reference.lwe_fold(&panel, &queries)? {
        return Err("the fold is wrong: nothing was measured".into());
    }
    let (seconds, folded) = timed(|| cpu.lwe_fold(db, &queries))?;
    assert_eq!(folded.words.len(), batch * tiling.rows());
    let row = Row::named(format!("scan D0={}", tiling.cols())).batch(batch);
    Ok(row.pass(cpu.threads(), tiling.bytes(), seconds))
}
