//! Tables of random values that the benchmarks build.

use std::{
    error::Error,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use hush_build::builder::{BuildOptions, Tiers, build};
use hush_cpu::Cpu;
use hush_engine::{Backends, Progress};
use hush_ingest::{OnDuplicate, Record, Spool};
use hush_math::csprng::Csprng;
use hush_protocol::{Protocol, facts::Facts};
use hush_store::snapshot::{
    Checksums, Header, ResidentFile, Snapshot, SnapshotError, SnapshotWriter, Verify,
};

use super::{report::Report, row::Row, threads};

/// Returns the options of a build for `protocol` with the default parameter sets, key filter, fingerprint and shape.
pub(crate) fn options(protocol: Protocol) -> BuildOptions {
    BuildOptions { protocol: Some(protocol), tiers: Tiers::AtMost(1), ..BuildOptions::default() }
}

/// The stages of a build, and the seconds of each.
pub(crate) type Stages = Vec<(String, f64)>;

/// The records of a table: as many of `length` bytes as fit `size` bytes.
#[derive(Clone, Copy)]
pub(crate) struct Records {
    pub(crate) size: usize,
    pub(crate) length: usize,
    /// Whether the records have keys ([`key`]).
    pub(crate) keyed: bool,
}

impl Records {
    /// Builds the table of the records in `dir`. Returns its header, and the seconds of each stage.
    pub(crate) fn build(
        &self,
        options: &BuildOptions,
        dir: &Path,
        backends: &Backends,
    ) -> Result<(Header, Stages), Box<dyn Error>> {
        let writer = SnapshotWriter::create(dir, false)?;
        let mut spool = Spool::create(writer.partial_dir())?;
        for index in 0..self.size / self.length {
            let key = self.keyed.then(|| key(index));
            spool.push(&Record { key, value: value(index, self.length) })?;
        }
        let records = spool.finish(OnDuplicate::Error)?;
        let watch = Watch::default();
        let header = build(&records, self.keyed, "bench", options, writer, backends, &watch)?;
        Ok((header, watch.finish()))
    }
}

/// Builds a table of records of `length` bytes by index on all cores. Prints a row of `label` for each stage, and one for all.
pub(crate) fn build_by_index(
    size: usize,
    length: usize,
    options: &BuildOptions,
    label: &str,
    dir: &Path,
    report: &mut Report,
) -> Result<Header, Box<dyn Error>> {
    let backends = Backends::cpu_only(Arc::new(Cpu::new(threads(None))?));
    let (header, mut stages) = Records { size, length, keyed: false }.build(options, dir, &backends)?;
    stages.push(("build".into(), stages.iter().map(|(_, seconds)| seconds).sum()));
    push_stages(&stages, &header, &Row::named("").of(label), backends.cpu().threads(), report);
    Ok(header)
}

/// Prints a row for each stage of a build, under the name of `row` and of the stage.
pub(crate) fn push_stages(stages: &Stages, header: &Header, row: &Row, threads: usize, report: &mut Report) {
    for (stage, seconds) in stages {
        let row = row.renamed(format!("{}{stage}", row.name));
        report.push(&row.pass(threads, header.payload_bytes as usize, *seconds));
    }
}

/// Prints a note about a table: its shape, and the bytes that are stored and sent.
pub(crate) fn describe(header: &Header, facts: &Facts, report: &Report) {
    let payload = header.payload_bytes as f64;
    let records = header.descriptor.records;
    let shape = facts.shape;
    let files = header.files.iter().map(|file| file.bytes).sum::<u64>();
    report.note(&format!(
        "{} with {}: {records} records, payload {:.0} MiB, D0 = {}, {:.4} slots a record; encoded {:.4}x payload, all files \
         {:.3}x; query {} B, answer {} B, keys {} B",
        facts.protocol,
        facts.preset,
        payload / f64::from(1 << 20),
        shape.columns,
        (shape.columns * shape.blocks) as f64 / records as f64,
        facts.encoded_bytes as f64 / payload,
        files as f64 / payload,
        facts.query.total(),
        facts.answer_bytes,
        facts.key_bytes,
    ));
}

/// Returns key `index` of a table.
pub(crate) fn key(index: usize) -> Vec<u8> {
    format!("key-{index}").into_bytes()
}

/// Returns value `index` of a table of values of `length` bytes.
pub(crate) fn value(index: usize, length: usize) -> Vec<u8> {
    let mut value = vec![0; length];
    Csprng::insecure_from_seed(index as u64).fill_bytes(&mut value);
    value
}

/// The time at which each stage began.
#[derive(Default)]
struct Watch(Mutex<Vec<(String, Instant)>>);

impl Progress for Watch {
    fn start(&self, stage: &str, _: u64, _: &'static str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((stage.to_owned(), Instant::now()));
    }

    fn advance(&self, _: u64) {}
}

impl Watch {
    /// Returns the seconds of each stage.
    fn finish(self) -> Stages {
        let stages = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let ends = stages.iter().skip(1).map(|&(_, start)| start).chain([Instant::now()]);
        stages
            .iter()
            .zip(ends)
            .map(|((stage, start), end): (&(String, Instant), Instant)| {
                (stage.clone(), (end - *start).as_secs_f64())
            })
            .collect()
    }
}

/// Returns a file of a table, read into memory.
pub(crate) fn resident(dir: &Path, name: &str) -> Result<Arc<ResidentFile>, SnapshotError> {
    let mut snapshot = Snapshot::open(dir, Verify::Header)?;
    let entry = snapshot.file(name).map(|(entry, _)| entry.clone());
    let file = snapshot.take_file(name)?;
    let entry = entry.expect("it was there");
    file.read(&entry, &[0..entry.bytes as usize], Checksums::Skip)
}
