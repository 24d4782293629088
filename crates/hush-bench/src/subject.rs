//! The tables of random values that benchmarks build, and their builds.

use std::{
    error::Error,
    path::Path,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use hush_build::builder::{BuildOptions, Tiers, build};
use hush_client::Wanted;
use hush_engine::{Backends, Progress};
use hush_ingest::{OnDuplicate, Record, Spool};
use hush_math::csprng::Csprng;
use hush_protocol::{
    Protocol,
    facts::{DbForm, Facts},
    keyword::FilterKind,
};
use hush_store::snapshot::{Header, SnapshotWriter};

use super::{
    report::Report,
    row::{Row, SubjectFacts},
};

/// The bytes of a value, unless the caller chooses.
pub(crate) const VALUE_BYTES: usize = 1024;

/// The stages of a build, and the seconds of each.
pub(crate) type Stages = Vec<(String, f64)>;

/// A table that a benchmark builds. `None` leaves the choice to the builder.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) protocol: Protocol,
    pub(crate) preset: Option<String>,
    /// The key filter; without one, the table is by index.
    pub(crate) filter: Option<FilterKind>,
    pub(crate) form: Option<DbForm>,
    pub(crate) columns: Option<usize>,
    pub(crate) records: usize,
    pub(crate) value_bytes: usize,
}

impl Subject {
    /// Creates a table by index with default parameters: as many values of `value_bytes` bytes as fit `size` bytes.
    pub(crate) fn by_index(protocol: Protocol, size: usize, value_bytes: usize) -> Self {
        let records = size / value_bytes;
        Self { protocol, preset: None, filter: None, form: None, columns: None, records, value_bytes }
    }

    /// Returns what asks for a record.
    pub(crate) fn wanted(&self, index: usize) -> Wanted {
        match self.filter {
            Some(_) => Wanted::Key(key(index)),
            None => Wanted::Index(index as u64),
        }
    }

    /// Builds the table in `dir`. Returns its header, and the seconds of each stage.
    pub(crate) fn build(&self, dir: &Path, backends: &Backends) -> Result<(Header, Stages), Box<dyn Error>> {
        let options = BuildOptions {
            protocol: Some(self.protocol),
            preset: self.preset.clone(),
            filter: self.filter,
            form: self.form,
            columns: self.columns,
            tiers: Tiers::AtMost(1),
            ..BuildOptions::default()
        };
        let is_keyed = self.filter.is_some();
        let writer = SnapshotWriter::create(dir, false)?;
        let mut spool = Spool::create(writer.partial_dir())?;
        for index in 0..self.records {
            let key = is_keyed.then(|| key(index));
            spool.push(&Record { key, value: value(index, self.value_bytes) })?;
        }
        let records = spool.finish(OnDuplicate::Error)?;
        let watch = Watch::default();
        let header = build(&records, is_keyed, "bench", &options, writer, backends, &watch)?;
        Ok((header, watch.finish()))
    }

    /// Builds the table in `dir`, and prints a row for each stage, one for all stages, and one with the facts of the table.
    pub(crate) fn build_and_report(
        &self,
        dir: &Path,
        backends: &Backends,
        report: &mut Report,
    ) -> Result<Header, Box<dyn Error>> {
        let (header, mut stages) = self.build(dir, backends)?;
        stages.push(("build".into(), stages.iter().map(|(_, seconds)| seconds).sum()));
        let row = Row::named("").of(self.protocol);
        for (stage, seconds) in &stages {
            let row = row.renamed(stage.as_str());
            report.push(&row.pass(backends.cpu().threads(), header.payload_bytes as usize, *seconds));
        }
        self.describe(&header, header.descriptor.params()?.facts(), report);
        Ok(header)
    }

    /// Prints the facts of the table: its shape, and the bytes that are stored and sent.
    fn describe(&self, header: &Header, facts: &Facts, report: &mut Report) {
        let shape = facts.shape;
        let table = SubjectFacts {
            preset: facts.preset.to_string(),
            filter: self.filter.map(FilterKind::name),
            records: self.records,
            value_bytes: self.value_bytes,
            columns: shape.columns,
            slots: shape.columns * shape.blocks,
            lanes: facts.lanes,
            encoded_bytes: facts.encoded_bytes,
            file_bytes: header.files.iter().map(|file| file.bytes).sum(),
            query_bytes: facts.query.total(),
            answer_bytes: facts.answer_bytes,
            key_bytes: facts.key_bytes,
            hint_bytes: facts.hint_bytes,
        };
        report.push(&Row { facts: Some(table), ..Row::named("table").of(self.protocol) });
    }
}

/// Returns key `index` of a table.
fn key(index: usize) -> Vec<u8> {
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
