//! A built table, a client of it, and measurements of both: the work of the client, each step of an answer, and whole answers.

use std::{
    error::Error,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use hush_build::planner::operands::Random;
use hush_client::{Acceptance, Table as ClientTable};
use hush_cpu::Cpu;
use hush_engine::{
    Backends, ClientKeys, Engine, Silent, host_batch,
    parts::{PartEngine, Share, Source, Unavailable, Workers, open_head, open_part},
};
use hush_ops::{path::batch_bytes, steps::sample::Operands, tiling::DbBytes};
use hush_protocol::{
    any_page::TableParams,
    facts::{Content, DB_FILE, HINT_FILE},
    wire::Query,
};
use hush_store::snapshot::{Checksums, Header, MappedFile, ResidentFile, Snapshot, SnapshotError, Verify};
use prost::bytes::Bytes;

use super::{
    lookups::Lookups,
    ntt, probe,
    report::Report,
    row::Row,
    subject::{Subject, value},
    table_files::TableFiles,
    timing::{RUNS, quantile, timed},
};

/// A table on disk, and a client of it.
pub(crate) struct Served {
    subject: Subject,
    dir: PathBuf,
    pub(crate) params: TableParams,
    client: ClientTable,
}

impl Served {
    /// Creates the client of the table that `subject` has built in `dir`.
    pub(crate) fn new(subject: Subject, dir: PathBuf, header: &Header) -> Result<Self, Box<dyn Error>> {
        let descriptor = header.descriptor.clone();
        let params = descriptor.params()?;
        let hint = match params.facts().hint_bytes {
            0 => None,
            _ => Some(Arc::new(MappedFile::open(&dir.join(HINT_FILE))?) as DbBytes),
        };
        // The papers' sets are measured too, whatever their security.
        let acceptance = Acceptance::of_weak(params.facts().preset);
        let mut client = ClientTable::new(descriptor, hint, &acceptance)?;
        client.use_keys(&[1; 32])?;
        Ok(Self { subject, dir, params, client })
    }

    /// Returns a row with this name and the table's protocol.
    pub(crate) fn row(&self, name: &str) -> Row {
        Row::named(name).of(self.subject.protocol)
    }

    /// Returns the most queries that a server answers at once.
    pub(crate) fn most(&self) -> usize {
        host_batch(&self.params)
    }

    /// Returns the bytes that every answer scans.
    fn scanned_bytes(&self) -> usize {
        let contents = self.params.files().into_iter().map(|spec| spec.content);
        contents.filter(Content::is_scanned).map(|content| content.bytes() as usize).sum()
    }

    /// Returns look-ups of `batch` records.
    pub(crate) fn lookups(&self, batch: usize) -> Result<Lookups<'_>, Box<dyn Error>> {
        Lookups::new(&self.client, &self.subject, batch)
    }

    /// Measures the work of a client on one thread: a query, the decoding of its answer, and the evaluation keys if there are any.
    pub(crate) fn client(&self, engine: &dyn Engine, report: &mut Report) -> Result<(), Box<dyn Error>> {
        let wanted = self.subject.wanted(0);
        let (seconds, _) = timed(|| self.client.query(&wanted))?;
        report.push(&self.row("query").pass(1, self.params.facts().query.total(), seconds));
        let lookups = self.lookups(1)?;
        let answers = self.ask(engine, &lookups.queries)?;
        let seconds = lookups.decode_seconds(&answers[0])?;
        report.push(&self.row("decode").pass(1, self.params.facts().answer_bytes, seconds));
        if self.params.facts().prepared_bytes > 0 {
            self.prepared(engine, report)?;
        }
        if self.client.key_upload().is_some() {
            let mut client = self.client.clone();
            let (seconds, ()) = timed(|| client.use_keys(&[2; 32]))?;
            report.push(&self.row("keys").pass(1, self.params.facts().key_bytes, seconds));
        }
        Ok(())
    }

    /// Measures a query that was prepared, and the decoding of its answer.
    fn prepared(&self, engine: &dyn Engine, report: &mut Report) -> Result<(), Box<dyn Error>> {
        let facts = self.params.facts();
        let (seconds, _) = timed(|| self.client.prepare())?;
        report.push(&self.row("prepare").pass(1, facts.prepared_bytes, seconds));
        let wanted = self.subject.wanted(0);
        let mut seconds = Vec::new();
        for _ in 0..RUNS {
            let prepared = self.client.prepare()?;
            let start = Instant::now();
            self.client.query_prepared(&wanted, prepared)?;
            seconds.push(start.elapsed().as_secs_f64());
        }
        report.push(&self.row("query, prepared").pass(1, facts.query.total(), quantile(seconds, 0.5)));
        let (query, pending) = self.client.query_prepared(&wanted, self.client.prepare()?)?;
        let answers = self.ask(engine, &[query])?;
        let (seconds, found) = timed(|| self.client.decode(&pending, &answers[0]))?;
        if found != Some(value(0, self.subject.value_bytes)) {
            return Err("the answer to a prepared query is wrong".into());
        }
        report.push(&self.row("decode, prepared").pass(1, facts.answer_bytes, seconds));
        Ok(())
    }

    /// Answers queries under the client's keys.
    fn ask(&self, engine: &dyn Engine, queries: &[Query]) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
        Ok(engine.answer(queries, &self.keys(engine, queries.len())?)?)
    }

    /// Returns the client's keys, opened once, for each query of a batch.
    fn keys(&self, engine: &dyn Engine, batch: usize) -> Result<Vec<Option<ClientKeys>>, Box<dyn Error>> {
        let keys = self.client.key_upload().map(|(_, body)| engine.open_keys(&body)).transpose()?;
        Ok(vec![keys; batch])
    }

    /// Returns the seconds of an answer to a batch, under keys that are open.
    pub(crate) fn answer_seconds(&self, engine: &dyn Engine, batch: usize) -> Result<f64, Box<dyn Error>> {
        let keys = self.keys(engine, batch)?;
        self.lookups(batch)?.timed(|queries| engine.answer(queries, &keys))
    }

    /// Measures every step of an answer by itself. Returns the seconds of all steps for each batch whose operands fit the memory.
    pub(crate) fn steps(
        &self,
        cpu: &Arc<Cpu>,
        batches: &[usize],
        report: &mut Report,
    ) -> Result<Vec<(usize, f64)>, Box<dyn Error>> {
        let specs = self.params.files();
        let mut files = Vec::with_capacity(specs.len());
        for spec in &specs {
            files.push((spec.name, self.resident(spec.name)? as DbBytes));
        }
        let operands = TableFiles { specs: &specs, bytes: &files, others: Random::default() };
        let path = self.params.path();
        let rings = path.iter().find_map(|step| step.shape.ring());
        let forward = rings.map(|ring| ntt::ntt_rates(cpu.level(), ring.kept_primes()[0], ring.degree()));
        let forward = forward.transpose()?.map(|rates| rates.forward_ns / 1e9);
        let mut sums = Vec::new();
        let mut alone = Vec::new();
        for &batch in batches {
            // The operands need memory, and results and buffers as much again.
            if hush_engine::memory()
                .is_some_and(|memory| 2 * batch_bytes::<Cpu>(&path, batch) as u64 > memory.available)
            {
                report.skip(&self.row("steps").batch(batch), "memory is short");
                break;
            }
            let mut sum = 0.0;
            for (place, step) in path.iter().enumerate() {
                let (seconds, ()) = timed(operands.step(cpu, &step.shape, batch)?)?;
                let work = step.shape.work(batch);
                let row = self.row(step.shape.name()).batch(batch);
                let row = row.pass(cpu.threads(), work.bytes as usize, seconds);
                let row = match (work.transforms > 0.0, forward) {
                    (true, Some(forward)) => row.transforms(forward),
                    _ => row,
                };
                report.push(&match alone.get(place) {
                    Some(&alone) if batch > 1 => row.query_share(alone),
                    _ => row,
                });
                if batch == 1 {
                    alone.push(seconds);
                }
                sum += seconds;
            }
            sums.push((batch, sum));
        }
        Ok(sums)
    }

    /// Opens the table, and returns it with the seconds that this takes.
    pub(crate) fn open(&self, backends: &Backends) -> Result<(Arc<dyn Engine>, f64), Box<dyn Error>> {
        let start = Instant::now();
        let engine = hush_engine::open(&self.dir, Verify::Full, backends, &Silent)?;
        Ok((engine, start.elapsed().as_secs_f64()))
    }

    /// Measures whole answers: each batch with the seconds of its steps, if they were measured, against the time to read the
    /// scanned bytes once.
    pub(crate) fn answers(
        &self,
        engine: &dyn Engine,
        threads: usize,
        batches: &[(usize, Option<f64>)],
        report: &mut Report,
    ) -> Result<(), Box<dyn Error>> {
        let db = self.resident(DB_FILE)?;
        let stream = probe::stream_read_gbps((*db).as_ref(), threads);
        drop(db);
        report.note(&format!("{}, {threads} threads: stream {stream:.1} GB/s", self.subject.protocol));
        for &(batch, steps) in batches {
            let seconds = self.answer_seconds(engine, batch)?;
            let row = self.row("answer").batch(batch).pass(threads, self.scanned_bytes(), seconds);
            report.push(&row.answer(stream, steps));
        }
        Ok(())
    }

    /// Measures an answer of a table in parts: the scan of each part by one thread, one after the other, and the head, which
    /// finishes.
    pub(crate) fn parts(&self, weights: &[u32], report: &mut Report) -> Result<(), Box<dyn Error>> {
        let backends = Backends::cpu_only(Arc::new(Cpu::new(1)?));
        let source = Source::Folder(self.dir.clone(), Verify::Header);
        let open = |index| {
            let share = Share { index, weights: weights.to_vec() };
            open_part(&source, &share, &backends, &Silent)
        };
        let parts = (0..weights.len()).map(open).collect::<Result<Vec<_>, _>>()?;
        let parts = Arc::new(InProcess { parts, seconds: Mutex::default() });
        let head = open_head(&source, parts.clone(), backends.cpu().clone())?;
        let all = self.answer_seconds(&*head, 1)?;
        let scans = parts.seconds.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (part, (seconds, weight)) in scans.iter().zip(weights).enumerate() {
            let row = self.row(&format!("part {part}, weight {weight}")).batch(1);
            let bytes = self.scanned_bytes() * *weight as usize / weights.iter().sum::<u32>() as usize;
            report.push(&row.pass(1, bytes, *seconds));
        }
        let head = all - scans.iter().sum::<f64>();
        report.push(&self.row("head").pass(1, 0, head));
        let slowest = scans.iter().copied().fold(0.0, f64::max);
        report.push(&self.row("answer, parts at once").pass(1, self.scanned_bytes(), slowest + head));
        Ok(())
    }

    /// Returns a file of the table, read into memory.
    fn resident(&self, name: &str) -> Result<Arc<ResidentFile>, SnapshotError> {
        let mut snapshot = Snapshot::open(&self.dir, Verify::Header)?;
        let entry = snapshot.file(name).map(|(entry, _)| entry.clone());
        let file = snapshot.take_file(name)?;
        let entry = entry.expect("it was there");
        file.read(&entry, &[0..entry.bytes as usize], Checksums::Skip)
    }
}

/// The parts of a table in this process, and the seconds of their last scans.
struct InProcess {
    parts: Vec<Arc<dyn PartEngine>>,
    seconds: Mutex<Vec<f64>>,
}

impl Workers for InProcess {
    fn scan(&self, batch: Bytes) -> Result<Vec<Bytes>, Unavailable> {
        let mut seconds = Vec::new();
        let mut replies = Vec::new();
        for part in &self.parts {
            let start = Instant::now();
            replies.push(part.scan(batch.clone()).into());
            seconds.push(start.elapsed().as_secs_f64());
        }
        *self.seconds.lock().unwrap_or_else(PoisonError::into_inner) = seconds;
        Ok(replies)
    }
}
