//! `hush-bench build`: a key table of 1-KiB values, stage by stage, and the hint of a square table.

use std::{
    error::Error,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use hush_cpu::{AlignedBuffer, Cpu};
use hush_engine::{
    Backends, Progress,
    build::{BuildOptions, build},
};
use hush_he::{
    entities::MatrixDomain,
    params::{DEFAULT_LWE, LWE_N1280_STD3_2_PLAIN},
};
use hush_ops::{
    contract::LweOps,
    tiling::{TiledDb, Tiling},
};
use hush_protocol::{keyword::FilterKind, table::Protocol};
use hush_store::{
    ingest::{OnDuplicate, Record, Spool, SpooledRecords},
    snapshot::{Header, SnapshotWriter},
};

use super::{
    Args, backends, fill,
    lookups::value,
    row::{Row, Table},
    threads,
};

/// Bytes of a value.
pub(super) const VALUE_BYTES: usize = 1024;

pub(super) fn run(args: &Args, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let threads = threads(args.threads);
    let backends = backends(args.backend, threads)?;
    table.note(&format!("{} threads, {}", threads, backends.cpu().level()));
    hints(args, backends.cpu(), table)?;
    for protocol in args.protocols() {
        let scratch = tempfile::tempdir()?;
        for filter in [FilterKind::Band256, FilterKind::Fuse3, FilterKind::Fuse4] {
            let stages = Stages::default();
            let start = Instant::now();
            let out = scratch.path().join(filter.name());
            let header = key_table(args.size, protocol, filter, &out, &backends, &stages)?;
            let total = start.elapsed().as_secs_f64();
            let bytes = header.payload_bytes;
            for (stage, seconds) in stages.finish() {
                let row = Row::new(format!("{filter}: {stage}"), threads, 1, bytes, seconds);
                table.push(&row.protocol(protocol));
            }
            table.push(&Row::new(format!("{filter}: all"), threads, 1, bytes, total).protocol(protocol));
            let params = header.descriptor.params()?;
            table.note(&format!(
                "{protocol} {filter}: {} keys, encoded {:.4}x payload, {:.4} slots a key",
                header.descriptor.records,
                params.encoded_bytes() as f64 / bytes as f64,
                (params.shape().columns * params.shape().blocks) as f64 / header.descriptor.records as f64
            ));
        }
    }
    Ok(())
}

/// The hint of a square table, for both structures of A.
fn hints(args: &Args, cpu: &Cpu, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let side = ((args.size as f64).sqrt() as usize).next_multiple_of(64);
    let tiling = Tiling::new(args.size / side, side);
    let mut buffer = AlignedBuffer::<u8>::zeroed(tiling.bytes());
    fill(&mut buffer);
    let db = cpu.open_db(TiledDb::new(tiling, Arc::new(buffer))?)?;
    for lwe in [DEFAULT_LWE, LWE_N1280_STD3_2_PLAIN] {
        let matrix = lwe.public_matrix(MatrixDomain::First, side);
        let start = Instant::now();
        // Row groups one after the other, as a build does.
        let step = 2048;
        for first in (0..tiling.rows()).step_by(step) {
            let hint = cpu.lwe_hint(&db, &matrix, first..tiling.rows().min(first + step))?;
            assert!(!hint.is_empty());
        }
        let seconds = start.elapsed().as_secs_f64();
        table.push(&Row::new(
            format!("hint {}", lwe.name()),
            cpu.threads(),
            1,
            tiling.bytes() as u64,
            seconds,
        ));
    }
    Ok(())
}

/// Builds a table of `size / VALUE_BYTES` keys `key-0`, `key-1`, ... with random values ([`value`]).
pub(super) fn key_table(
    size: usize,
    protocol: Protocol,
    filter: FilterKind,
    out: &Path,
    backends: &Backends,
    progress: &dyn Progress,
) -> Result<Header, Box<dyn Error>> {
    let writer = SnapshotWriter::create(out, false)?;
    let records = spool(size / VALUE_BYTES, writer.partial_dir().to_owned())?;
    let options = BuildOptions { filter, ..options(protocol) };
    Ok(build(&records, true, "bench", &options, writer, backends, progress)?)
}

/// A build for `protocol` with the default parameter sets, key filter, fingerprint and shape.
pub(super) fn options(protocol: Protocol) -> BuildOptions {
    BuildOptions {
        protocol: Some(protocol),
        lwe: DEFAULT_LWE,
        ring: None,
        pack: None,
        column: None,
        filter: FilterKind::Band256,
        fingerprint_bytes: 8,
        columns: None,
    }
}

fn spool(keys: usize, dir: PathBuf) -> Result<SpooledRecords, Box<dyn Error>> {
    let mut spool = Spool::create(&dir)?;
    for index in 0..keys {
        spool.push(&Record { key: Some(key(index)), value: value(index, VALUE_BYTES) })?;
    }
    Ok(spool.finish(OnDuplicate::Error)?)
}

/// Key `index` of the table.
pub(super) fn key(index: usize) -> Vec<u8> {
    format!("key-{index}").into_bytes()
}

/// Seconds of each stage.
#[derive(Default)]
pub(super) struct Stages(Mutex<Vec<(String, Instant)>>);

impl Progress for Stages {
    fn start(&self, stage: &str, _: u64, _: &'static str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((stage.to_owned(), Instant::now()));
    }

    fn advance(&self, _: u64) {}
}

impl Stages {
    pub(super) fn finish(self) -> Vec<(String, f64)> {
        let stages = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let ends = stages.iter().skip(1).map(|&(_, start)| start).chain([Instant::now()]);
        stages
            .iter()
            .zip(ends)
            .map(|((name, start), end)| (name.clone(), (end - *start).as_secs_f64()))
            .collect()
    }
}
