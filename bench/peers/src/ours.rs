//! HushDB's own protocols on the records of a peer: built, opened and asked in this process.

use std::{path::Path, slice::from_ref, sync::Arc, time::Instant};

use hush_build::{
    builder::{BuildOptions, Tiers, build},
    planner::operands::Random,
};
use hush_client::{Acceptance, PendingLookup, Table, Wanted};
use hush_cpu::Cpu;
use hush_engine::{Backends, ClientKeys, Engine, Silent};
use hush_ingest::{OnDuplicate, Record, Spool};
use hush_ops::steps::sample::Operands;
use hush_peers_common::{Answered, Costs, Error, Records, Row, Scheme, measure, median};
use hush_protocol::{Protocol, any_page::TableParams, facts::HINT_FILE, keyword::FilterKind, wire::Query};
use hush_store::snapshot::{Header, MappedFile, SnapshotWriter, Verify};

/// The name of HushDB in rows, before that of the protocol.
const NAME: &str = "HushDB ";

/// A table of HushDB: its server, and a client of it.
struct Ours<'a> {
    records: &'a Records,
    is_keyed: bool,
    engine: Arc<dyn Engine>,
    client: Table,
    keys: Option<ClientKeys>,
    params: TableParams,
}

/// Returns whether a row is of HushDB.
pub(crate) fn is_ours(row: &Row) -> bool {
    row.peer.starts_with(NAME)
}

/// Measures a protocol on `records` with one thread. With a filter, look-ups are by key.
pub(crate) fn run(
    protocol: Protocol,
    filter: Option<FilterKind>,
    records: &Records,
    runs: usize,
) -> Result<Row, Error> {
    let scratch = tempfile::tempdir()?;
    let (mut ours, costs) = Ours::new(protocol, filter, records, &scratch.path().join("table"))?;
    let row = measure(&mut ours, &costs, records, runs);
    let row = row.map_err(|error| format!("{NAME}{protocol}: {error}"))?;
    let facts = ours.params.facts();
    let keyed = filter.map_or_else(String::new, |filter| format!(", keyed by {}", filter.name()));
    let (scan_ms, pack_ms) = ours.step_times(runs)?;
    Ok(Row {
        peer: format!("{NAME}{protocol}"),
        version: env!("CARGO_PKG_VERSION").into(),
        what: format!("{}{keyed}, {:.0}-bit security", facts.preset, facts.security_bits.floor()),
        scan_ms,
        pack_ms,
        ..row
    })
}

impl<'a> Ours<'a> {
    /// Builds a table in `dir` and opens it. Returns it with its fixed costs.
    fn new(
        protocol: Protocol,
        filter: Option<FilterKind>,
        records: &'a Records,
        dir: &Path,
    ) -> Result<(Self, Costs), Error> {
        let backends = Backends::cpu_only(Arc::new(Cpu::new(1)?));
        let start = Instant::now();
        let header = build_table(protocol, filter, records, dir, &backends)?;
        let engine = hush_engine::open(dir, Verify::Full, &backends, &Silent)?;
        let setup_seconds = start.elapsed().as_secs_f64();
        let params = header.descriptor.params()?;
        let hint = match params.facts().hint_bytes {
            0 => None,
            _ => Some(Arc::new(MappedFile::open(&dir.join(HINT_FILE))?) as _),
        };
        let mut client = Table::new(header.descriptor.clone(), hint, &Acceptance::default())?;
        client.use_keys(&[1; 32])?;
        let upload = client.key_upload();
        let keys = upload.as_ref().map(|(_, body)| engine.open_keys(body)).transpose()?;
        let costs = Costs {
            setup_seconds,
            offline_bytes: params.facts().hint_bytes as usize,
            key_bytes: upload.map_or(0, |(_, body)| body.len()),
        };
        Ok((Self { records, is_keyed: filter.is_some(), engine, client, keys, params }, costs))
    }

    /// Returns the milliseconds of the steps that fold the table and that pack columns, each measured by itself on random
    /// operands of the table's shape.
    fn step_times(&self, runs: usize) -> Result<(Option<f64>, Option<f64>), Error> {
        let cpu = Cpu::new(1)?;
        let (mut scan_ms, mut pack_ms) = (None, None);
        for step in self.params.path() {
            let slot = match step.shape.name() {
                "lwe_fold" => &mut scan_ms,
                "pack_columns" => &mut pack_ms,
                _ => continue,
            };
            let operands = Random::default();
            let mut work = operands.step(&cpu, &step.shape, 1)?;
            work()?;
            let mut times = Vec::new();
            for _ in 0..runs {
                let start = Instant::now();
                work()?;
                times.push(start.elapsed().as_secs_f64() * 1e3);
            }
            *slot.get_or_insert(0.0) += median(times);
        }
        Ok((scan_ms, pack_ms))
    }
}

/// Builds a table of `records` in `dir`, with the shape and the parameters that HushDB chooses.
fn build_table(
    protocol: Protocol,
    filter: Option<FilterKind>,
    records: &Records,
    dir: &Path,
    backends: &Backends,
) -> Result<Header, Error> {
    let options =
        BuildOptions { protocol: Some(protocol), filter, tiers: Tiers::AtMost(1), ..BuildOptions::default() };
    let is_keyed = filter.is_some();
    let writer = SnapshotWriter::create(dir, false)?;
    let mut spool = Spool::create(writer.partial_dir())?;
    for index in 0..records.count() {
        let key = is_keyed.then(|| records.key(index));
        spool.push(&Record { key, value: records.record(index).to_vec() })?;
    }
    let spooled = spool.finish(OnDuplicate::Error)?;
    Ok(build(&spooled, is_keyed, "peers", &options, writer, backends, &Silent)?)
}

impl Scheme for Ours<'_> {
    type Query = Query;
    type Pending = PendingLookup;
    type Answer = Vec<u8>;

    fn query(&mut self, index: usize) -> Result<(Query, usize, PendingLookup), Error> {
        let wanted = match self.is_keyed {
            true => Wanted::Key(self.records.key(index)),
            false => Wanted::Index(index as u64),
        };
        let (query, pending) = self.client.query(&wanted)?;
        Ok((query, self.params.facts().query.total(), pending))
    }

    fn answer(&mut self, query: &Query) -> Result<Answered<Vec<u8>>, Error> {
        let mut answers = self.engine.answer(from_ref(query), from_ref(&self.keys))?;
        let answer = answers.pop().ok_or("the batch has no answer")?;
        Ok(Answered { bytes: answer.len(), answer, ..Answered::default() })
    }

    fn decode(&mut self, pending: PendingLookup, answer: &Vec<u8>) -> Result<Vec<u8>, Error> {
        Ok(self.client.decode(&pending, answer)?.ok_or("the record was not found")?)
    }
}
