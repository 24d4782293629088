//! Tables by index that the benchmarks build.

use std::{error::Error, path::Path, sync::Arc, time::Instant};

use hush_engine::{
    Backends,
    build::{BuildOptions, build},
};
use hush_store::{
    ingest::{OnDuplicate, Record, Spool},
    snapshot::{Header, MappedFile, SnapshotError, SnapshotWriter},
};

use super::{
    build::Stages,
    lookups::value,
    row::{Row, Table},
};

/// Builds a table of as many records of `length` bytes as fit `size`, with a row a stage, named `label`.
pub(super) fn build_table(
    size: usize,
    length: usize,
    options: &BuildOptions,
    label: &str,
    dir: &Path,
    backends: &Backends,
    table: &mut Table,
) -> Result<Header, Box<dyn Error>> {
    let writer = SnapshotWriter::create(dir, false)?;
    let mut spool = Spool::create(writer.partial_dir())?;
    for index in 0..size / length {
        spool.push(&Record { key: None, value: value(index, length) })?;
    }
    let records = spool.finish(OnDuplicate::Error)?;
    let (stages, start) = (Stages::default(), Instant::now());
    let header = build(&records, false, "bench", options, writer, backends, &stages)?;
    let threads = backends.cpu().threads();
    let total = start.elapsed().as_secs_f64();
    for (stage, seconds) in stages.finish() {
        table.push(&Row::new(stage, threads, 1, header.payload_bytes, seconds).protocol(label));
    }
    table.push(&Row::new("build", threads, 1, header.payload_bytes, total).protocol(label));
    Ok(header)
}

/// A file of a table, read into memory.
pub(super) fn resident(dir: &Path, name: &str) -> Result<Arc<MappedFile>, SnapshotError> {
    let file = MappedFile::open(&dir.join(name))?;
    file.make_resident()?;
    Ok(Arc::new(file))
}
