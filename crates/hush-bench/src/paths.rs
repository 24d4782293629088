//! `hush-bench onion`, `tfhe`, `packed`, `colpack`: tables by index, their build, every step of an answer by itself, and whole
//! answers, as multiples of the sum of their steps.

use std::{error::Error, fs, num::NonZeroUsize, path::Path, sync::Arc};

use hush_build::{builder::BuildOptions, planner::operands::Random};
use hush_client::{Acceptance, Table as ClientTable};
use hush_cpu::Cpu;
use hush_engine::host_batch;
use hush_he::params::{ONION_M31, ONION_S, RingParams};
use hush_ops::{path::batch_bytes, steps::sample::Operands, tiling::DbBytes};
use hush_protocol::{
    Protocol,
    any_page::TableParams,
    descriptor::Descriptor,
    facts::{DB_FILE, DbForm, HINT_FILE},
    hosted::Hosted,
    page::Page,
    registry::Visitor,
    share::Share,
};
use hush_store::snapshot::Header;

use super::{
    Args,
    lookups::Lookups,
    ntt, probe,
    report::Report,
    row::Row,
    table_files::TableFiles,
    tables::{self, resident},
    timing::timed,
};

/// The batches of steps and whole answers.
const BATCHES: [usize; 3] = [1, 8, 32];

/// The bytes of a record, unless plaintexts are longer.
const RECORD_BYTES: usize = 4096;

/// The bytes of a record of `tfhe`, a quarter of a plaintext.
const SHORT_RECORD_BYTES: usize = 256;

/// Tables of one shape, one for each of several protocols.
#[derive(Clone)]
pub(super) struct Paths {
    /// The protocols. The first one determines the shape.
    protocols: &'static [Protocol],
    /// The parameter set; `None` is the default one.
    preset: Option<&'static str>,
    /// The form in which plaintexts are stored, where there is a choice.
    form: Option<DbForm>,
    /// The bytes of a record.
    record_bytes: usize,
}

/// Returns the tables of `tfhe`: short records, transformed for every batch, or stored in evaluation form.
pub(super) fn tfhe() -> Vec<Paths> {
    [DbForm::Symbols, DbForm::Evaluation]
        .map(|form| Paths {
            protocols: &[Protocol::Tfhe],
            preset: None,
            form: Some(form),
            record_bytes: SHORT_RECORD_BYTES,
        })
        .to_vec()
}

/// Returns the tables of `onion`: records of two plaintexts.
pub(super) fn onion() -> Vec<Paths> {
    [ONION_M31, ONION_S]
        .map(|set: RingParams| Paths {
            protocols: &[Protocol::Onion],
            preset: Some(set.name()),
            form: None,
            record_bytes: 2 * set.plaintext_bytes(),
        })
        .to_vec()
}

/// Returns the tables whose answers are packed by evaluation keys: records of one plaintext.
pub(super) fn packed() -> Vec<Paths> {
    let protocols = &[Protocol::Hybrid, Protocol::ExppackS, Protocol::DoublePack];
    vec![Paths { protocols, preset: None, form: None, record_bytes: RECORD_BYTES }]
}

/// Returns the tables of column packing: records of two plaintexts.
pub(super) fn colpack() -> Vec<Paths> {
    vec![Paths {
        protocols: &[Protocol::Colpack, Protocol::ColpackS],
        preset: None,
        form: None,
        record_bytes: RECORD_BYTES,
    }]
}

pub(super) fn run(args: &Args, all: Vec<Paths>, report: &mut Report) -> Result<(), Box<dyn Error>> {
    all.into_iter().try_for_each(|paths| paths.run(args, report))
}

impl Paths {
    fn run(&self, args: &Args, report: &mut Report) -> Result<(), Box<dyn Error>> {
        let scratch = tempfile::tempdir()?;
        let dir = scratch.path().join("table");
        let mut columns = args.columns.map(NonZeroUsize::get);
        for &protocol in self.protocols {
            let options = BuildOptions {
                preset: self.preset.map(str::to_owned),
                form: self.form,
                columns,
                ..tables::options(protocol)
            };
            let label = self.preset.unwrap_or_else(|| protocol.name());
            let header = tables::build_by_index(args.size, self.record_bytes, &options, label, &dir, report)?;
            columns = Some(header.descriptor.columns);
            let served = Served::new(&dir, &header, self.record_bytes)?;
            tables::describe(&header, served.client.facts(), report);
            let most = host_batch(&served.params);
            report.note(&format!("a server answers {most} queries of {protocol} at once at most"));
            for threads in args.thread_counts() {
                let cpu = Arc::new(Cpu::new(threads)?);
                let seconds = served.steps(&cpu, report)?;
                served.answers(&cpu, &seconds, report)?;
            }
            // The next protocol has another public matrix, and so other files.
            drop(served);
            fs::remove_dir_all(&dir)?;
        }
        Ok(())
    }
}

/// A table, and a client of it.
pub(super) struct Served {
    descriptor: Descriptor,
    pub(super) params: TableParams,
    files: Vec<(&'static str, DbBytes)>,
    client: ClientTable,
    record_bytes: usize,
}

impl Served {
    pub(super) fn new(dir: &Path, header: &Header, record_bytes: usize) -> Result<Self, Box<dyn Error>> {
        let descriptor = header.descriptor.clone();
        let params = header.descriptor.params()?;
        let specs = params.files();
        let mut files = Vec::with_capacity(specs.len());
        for spec in &specs {
            files.push((spec.name, resident(dir, spec.name)? as DbBytes));
        }
        let has_hint = params.facts().hint_bytes > 0;
        let hint = has_hint.then(|| resident(dir, HINT_FILE).map(|hint| hint as DbBytes)).transpose()?;
        let mut client = ClientTable::new(descriptor.clone(), hint, &Acceptance::default())?;
        client.use_keys(&[1; 32])?;
        Ok(Self { descriptor, params, files, client, record_bytes })
    }

    /// Measures every step by itself. Returns each batch that fits into memory, with the sum of the seconds of its steps.
    fn steps(&self, cpu: &Cpu, report: &mut Report) -> Result<Vec<(usize, f64)>, Box<dyn Error>> {
        let specs = self.params.files();
        let path = self.params.path();
        let protocol = self.descriptor.protocol;
        let operands = TableFiles { specs: &specs, bytes: &self.files, others: Random::default() };
        let rings = path.iter().find_map(|step| step.shape.ring());
        let forward = rings.map(|ring| ntt::ntt_rates(cpu.level(), ring.kept_primes()[0], ring.degree()));
        let forward = forward.transpose()?.map(|rates| rates.forward_ns / 1e9);
        let mut sums = Vec::new();
        let mut alone = Vec::new();
        for batch in BATCHES {
            // The operands need memory, and results and buffers as much again.
            if hush_engine::memory()
                .is_some_and(|memory| 2 * batch_bytes::<Cpu>(&path, batch) as u64 > memory.available)
            {
                report.skip(&Row::named("steps").of(protocol).batch(batch), "memory is short");
                break;
            }
            let mut sum = 0.0;
            for (place, step) in path.iter().enumerate() {
                let (seconds, ()) = timed(operands.step(cpu, &step.shape, batch)?)?;
                let row = Row::named(step.shape.name()).of(protocol).batch(batch);
                let row = row.pass(cpu.threads(), step.shape.work(batch).bytes as usize, seconds);
                let row = match (step.shape.work(batch).transforms > 0.0, forward) {
                    (true, Some(forward)) => row.transforms(forward),
                    _ => row,
                };
                report.push(&if batch > 1 { row.query_share(alone[place]) } else { row });
                if batch == 1 {
                    alone.push(seconds);
                }
                sum += seconds;
            }
            sums.push((batch, sum));
        }
        Ok(sums)
    }

    /// Returns the seconds of an answer to a batch.
    pub(super) fn answer_seconds(&self, cpu: &Arc<Cpu>, batch: usize) -> Result<f64, Box<dyn Error>> {
        let lookups = Lookups::by_index(&self.client, self.record_bytes, batch)?;
        self.descriptor.protocol.visit(Answers { served: self, cpu, lookups: &lookups })
    }

    /// Measures whole answers, as multiples of the time to read the table once, without anything beside it, and of the sum of
    /// their steps.
    fn answers(
        &self,
        cpu: &Arc<Cpu>,
        sums: &[(usize, f64)],
        report: &mut Report,
    ) -> Result<(), Box<dyn Error>> {
        let table = self.params.facts().encoded_bytes as usize;
        let db = &self.files.iter().find(|(name, _)| *name == DB_FILE).ok_or("a table has a database")?.1;
        for &(batch, sum) in sums {
            let seconds = self.answer_seconds(cpu, batch)?;
            let stream = probe::stream_read_gbps((**db).as_ref(), cpu.threads());
            let row = Row::named("answer").of(self.descriptor.protocol).batch(batch);
            report.push(&row.pass(cpu.threads(), table, seconds).answer(stream, sum));
        }
        Ok(())
    }
}

/// A visitor that times the answers of any page.
struct Answers<'a> {
    served: &'a Served,
    cpu: &'a Arc<Cpu>,
    lookups: &'a Lookups<'a>,
}

impl Visitor for Answers<'_> {
    type Output = Result<f64, Box<dyn Error>>;

    fn visit<P: Page>(self) -> Self::Output {
        let Self { served, cpu, lookups } = self;
        let tables = served.descriptor.tables::<P>()?;
        let seed = served.descriptor.public_seed();
        let files = std::slice::from_ref(&served.files);
        let table = Hosted::<P, Cpu>::open_share(cpu.clone(), tables, seed, &Share::whole(), files)?;
        let keys = served.client.key_upload().map(|(_, body)| table.share().open_keys(&body)).transpose()?;
        let keys: Vec<_> = keys.iter().cycle().take(lookups.queries.len() * keys.iter().len()).collect();
        lookups.timed(|queries| table.answer(queries, &keys))
    }
}
