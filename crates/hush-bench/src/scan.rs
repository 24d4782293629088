//! `hush-bench scan`: the fold against the read bandwidth of the same buffer.

use std::{error::Error, sync::Arc};

use hush_cpu::{AlignedBuffer, Cpu, probe};
use hush_math::csprng::Csprng;
use hush_ops::{
    contract::{LweOps, LweQueries},
    reference::Reference,
    tiling::{TiledDb, Tiling},
};

use super::{
    Args, fill, median_seconds,
    row::{Row, Table},
};

/// Columns of the wide shape.
const WIDE: usize = 65_536;

pub(super) fn run(args: &Args, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let square = ((args.size as f64).sqrt() as usize).next_multiple_of(64);
    let mut shapes = vec![Tiling::new(args.size / square, square), Tiling::new(args.size / WIDE, WIDE)];
    shapes.dedup();
    let bytes = shapes.iter().map(Tiling::bytes).max().unwrap_or(0);
    let mut buffer = AlignedBuffer::<u8>::zeroed(bytes);
    fill(&mut buffer);
    let buffer = Arc::new(buffer);
    for threads in args.thread_counts() {
        let cpu = Cpu::new(threads)?;
        let peak = probe::int8_peak_tops(cpu.level(), threads)?;
        for &tiling in &shapes {
            let bytes = Arc::new(Prefix { buffer: buffer.clone(), bytes: tiling.bytes() });
            let stream = probe::stream_read_gbps((*bytes).as_ref(), threads);
            table.note(&format!(
                "{} x {}, {} threads, {}: stream {stream:.1} GB/s, peak {peak:.2} TOPS",
                tiling.rows(),
                tiling.cols(),
                threads,
                cpu.level()
            ));
            let db = cpu.open_db(TiledDb::new(tiling, bytes)?)?;
            for &batch in args.batches() {
                let row = measure(&cpu, &db, tiling, batch)?.stream(stream).arithmetic(peak);
                table.push(&row);
            }
        }
    }
    Ok(())
}

fn measure(cpu: &Cpu, db: &TiledDb, tiling: Tiling, batch: usize) -> Result<Row, Box<dyn Error>> {
    let mut words = vec![0; batch * tiling.cols()];
    Csprng::insecure_from_seed(batch as u64).fill_u32(&mut words);
    let queries = LweQueries { cols: tiling.cols(), words };
    check(cpu, &queries)?;
    let mut out = cpu.lwe_fold(db, &queries)?;
    let seconds = median_seconds(5, || {
        if let Ok(result) = cpu.lwe_fold(db, &queries) {
            out = result;
        }
    });
    assert_eq!(out.words.len(), batch * tiling.rows());
    Ok(Row::new(format!("scan D0={}", tiling.cols()), cpu.threads(), batch, tiling.bytes() as u64, seconds))
}

/// A wrong fast answer is a failure: the first panel against the reference.
fn check(cpu: &Cpu, queries: &LweQueries) -> Result<(), Box<dyn Error>> {
    let mut matrix = vec![0; 40 * queries.cols];
    fill(&mut matrix);
    let db = TiledDb::from_matrix(40, queries.cols, &matrix);
    if cpu.lwe_fold(&db, queries)? != Reference.lwe_fold(&db, queries)? {
        return Err("the fold is wrong: nothing was measured".into());
    }
    Ok(())
}

/// The start of a shared buffer.
struct Prefix {
    buffer: Arc<AlignedBuffer<u8>>,
    bytes: usize,
}

impl AsRef<[u8]> for Prefix {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[..self.bytes]
    }
}
