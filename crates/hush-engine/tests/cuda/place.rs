//! Backends, tables, and what is told of them.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    thread,
};

use hush_client::{PendingLookup, Table as Client, Wanted};
use hush_cpu::Cpu;
use hush_cuda::device::{Device, Emulation};
use hush_engine::{
    BackendChoice, Backends, ClientKeys, Engine, EngineError, Progress,
    build::{BuildError, BuildOptions, build},
};
use hush_he::params::{
    DEFAULT_LWE, INSECURE_COLPACK_N256, INSECURE_PACK_N256, INSECURE_RING_N256, RingParams,
};
use hush_math::csprng::Csprng;
use hush_protocol::{descriptor::Descriptor, keyword::FilterKind, table::Protocol, wire::Query};
use hush_store::{
    ingest::{OnDuplicate, Record, Spool},
    snapshot::{HINT_FILE, MappedFile, SnapshotWriter},
};
use tempfile::TempDir;

/// A protocol, and the bytes of its records: several lanes, planes and entries where there are such.
pub(crate) const TABLES: [(Protocol, usize); 10] = [
    (Protocol::Frodo, 20),
    (Protocol::Simple, 300),
    (Protocol::Double, 3),
    (Protocol::ColpackS, 300),
    (Protocol::Colpack, 300),
    (Protocol::ExppackS, 100),
    (Protocol::ExppackD, 3),
    (Protocol::DoublePack, 100),
    (Protocol::Hybrid, 300),
    (Protocol::Onion, 100),
];
pub(crate) const RECORDS: usize = 75;
pub(crate) const MIB: usize = 1 << 20;

pub(crate) fn cpu() -> Arc<Cpu> {
    Arc::new(Cpu::new(2).unwrap())
}

pub(crate) fn on_cpu() -> Backends {
    Backends::cpu_only(cpu())
}

/// An emulated GPU with so much memory.
pub(crate) fn on_gpu(choice: BackendChoice, memory: usize) -> Backends {
    Backends::with_device(choice, cpu(), device(false, memory))
}

/// An emulated device with so much memory, which is rounded up and kept for later or not.
pub(crate) fn device(pooled: bool, memory: usize) -> Device {
    Device::emulated_with_memory(Emulation { pooled, ..Emulation::default() }, memory)
}

/// A folder to build tables by index in.
pub(crate) struct Place {
    pub(crate) dir: TempDir,
    /// The set of `onion`.
    pub(crate) ring: RingParams,
    protocol: Protocol,
    values: Vec<Vec<u8>>,
}

impl Place {
    pub(crate) fn new(protocol: Protocol, bytes: usize) -> Self {
        let rng = &mut Csprng::insecure_from_seed(5);
        let mut value = vec![0; bytes];
        let values = (0..RECORDS).map(|_| {
            rng.fill_bytes(&mut value);
            value.clone()
        });
        let dir = tempfile::tempdir().unwrap();
        Self { values: values.collect(), protocol, ring: INSECURE_RING_N256, dir }
    }

    /// Builds the table in a folder of this name.
    pub(crate) fn build(
        &self,
        name: &str,
        backends: &Backends,
        progress: &dyn Progress,
    ) -> Result<PathBuf, BuildError> {
        let mut spool = Spool::create(self.dir.path()).unwrap();
        for value in &self.values {
            spool.push(&Record { key: None, value: value.clone() }).unwrap();
        }
        let records = spool.finish(OnDuplicate::Error).unwrap();
        let options = BuildOptions {
            protocol: Some(self.protocol),
            lwe: DEFAULT_LWE,
            ring: Some(self.ring),
            pack: Some(INSECURE_PACK_N256),
            column: Some(INSECURE_COLPACK_N256),
            filter: FilterKind::Band256,
            fingerprint_bytes: 8,
            columns: (self.protocol != Protocol::Frodo).then_some(10),
        };
        let target = self.dir.path().join(name);
        let writer = SnapshotWriter::create(&target, false).unwrap();
        build(&records, false, "records", &options, writer, backends, progress)?;
        Ok(target)
    }

    /// Queries for `batch` records of the table in `target`, which `engine` has opened.
    pub(crate) fn queries(&self, target: &Path, engine: &dyn Engine, batch: usize) -> Asked<'_> {
        let descriptor = Descriptor::from_json(&engine.descriptor_json()).unwrap();
        let hint = descriptor.hint.is_some().then(|| MappedFile::open(&target.join(HINT_FILE)).unwrap());
        let hint = hint.map(|file| Arc::new(file) as Arc<_>);
        let mut client = Client::new(descriptor, hint, true).unwrap();
        client.use_keys(&[1; 32]);
        let indices: Vec<usize> = (0..batch).map(|query| query * 37 % RECORDS).collect();
        let asked = indices.iter().map(|&index| client.query(&Wanted::Index(index as u64)).unwrap());
        let (queries, pending) = asked.unzip();
        Asked { place: self, client, indices, queries, pending }
    }

    /// Asks both engines the same, and checks the records.
    pub(crate) fn ask(&self, target: &Path, [one, other]: [&dyn Engine; 2], batch: usize) {
        let asked = self.queries(target, one, batch);
        let (ours, theirs) = (asked.answers(one).unwrap(), asked.answers(other).unwrap());
        assert!(ours == theirs, "{}: answers of both backends, bit by bit", self.protocol);
        asked.check(&ours);
    }
}

/// What a client asks for.
pub(crate) struct Asked<'a> {
    place: &'a Place,
    client: Client,
    indices: Vec<usize>,
    queries: Vec<Query>,
    pending: Vec<PendingLookup>,
}

impl Asked<'_> {
    /// The client's keys as `engine` opens them, if it needs any.
    pub(crate) fn keys(&self, engine: &dyn Engine) -> Result<Option<ClientKeys>, EngineError> {
        self.client.key_upload().map(|(_, body)| engine.open_keys(&body)).transpose()
    }

    /// The same answers to as many batches as the engine has under way at once.
    pub(crate) fn answers(&self, engine: &dyn Engine) -> Result<Vec<Vec<u8>>, EngineError> {
        let keys = vec![self.keys(engine)?; self.queries.len()];
        let answer = || engine.answer(&self.queries, &keys);
        let batches = 0..engine.backend().batches_in_flight();
        let mut answers = thread::scope(|scope| {
            let batches: Vec<_> = batches.map(|_| scope.spawn(answer)).collect();
            batches.into_iter().map(|batch| batch.join().unwrap()).collect::<Result<Vec<_>, _>>()
        })?;
        assert!(answers.iter().all(|other| *other == answers[0]), "{}", self.place.protocol);
        Ok(answers.remove(0))
    }

    /// Checks that the answers are the records.
    pub(crate) fn check(&self, answers: &[Vec<u8>]) {
        for ((index, pending), answer) in self.indices.iter().zip(&self.pending).zip(answers) {
            let found = self.client.decode(pending, answer).unwrap();
            let Place { values, protocol, .. } = self.place;
            assert_eq!(found.as_ref(), Some(&values[*index]), "{protocol}, record {index}");
        }
    }
}

/// What is told of a build or an upload.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) notes: Mutex<Vec<String>>,
    /// Stage, units in all, units done.
    pub(crate) stages: Mutex<Vec<(String, u64, u64)>>,
}

impl Progress for Told {
    fn start(&self, stage: &str, total: u64, _: &'static str) {
        self.stages.lock().unwrap().push((stage.into(), total, 0));
    }

    fn advance(&self, units: u64) {
        self.stages.lock().unwrap().last_mut().expect("a stage").2 += units;
    }

    fn note(&self, line: &str) {
        self.notes.lock().unwrap().push(line.into());
    }
}
