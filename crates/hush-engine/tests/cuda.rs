//! Tables of all protocols on an emulated GPU: builds make the same files as on the CPU, engines give the same answers, and what
//! the memory plan promises is kept.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use hush_client::{Table as Client, Wanted};
use hush_cpu::Cpu;
use hush_cuda::device::{Device, Emulation};
use hush_engine::{
    Backend, BackendChoice, Backends, ClientKeys, Engine, OpenError, Progress, Silent,
    build::{BuildError, BuildOptions, build},
    open,
};
use hush_he::params::{DEFAULT_LWE, INSECURE_COLPACK_N256, INSECURE_PACK_N256, INSECURE_RING_N256};
use hush_math::csprng::Csprng;
use hush_protocol::{descriptor::Descriptor, keyword::FilterKind, table::Protocol};
use hush_store::{
    ingest::{OnDuplicate, Record, Spool},
    snapshot::{HINT_FILE, MappedFile, SnapshotWriter, Verify},
};
use tempfile::TempDir;

/// A protocol, and the bytes of its records: several lanes, planes and entries where there are such.
const TABLES: [(Protocol, usize); 10] = [
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
const RECORDS: usize = 75;
const MIB: usize = 1 << 20;

fn cpu() -> Arc<Cpu> {
    Arc::new(Cpu::new(2).unwrap())
}

fn on_cpu() -> Backends {
    Backends::cpu_only(cpu())
}

/// An emulated GPU with so much memory.
fn on_gpu(choice: BackendChoice, memory: usize) -> Backends {
    Backends::with_device(choice, cpu(), Device::emulated_with_memory(Emulation::default(), memory))
}

/// A folder to build tables by index in.
struct Place {
    dir: TempDir,
    protocol: Protocol,
    values: Vec<Vec<u8>>,
}

impl Place {
    fn new(protocol: Protocol, bytes: usize) -> Self {
        let rng = &mut Csprng::insecure_from_seed(5);
        let mut value = vec![0; bytes];
        let values = (0..RECORDS).map(|_| {
            rng.fill_bytes(&mut value);
            value.clone()
        });
        Self { values: values.collect(), protocol, dir: tempfile::tempdir().unwrap() }
    }

    /// Builds the table in a folder of this name.
    fn build(&self, name: &str, backends: &Backends, progress: &dyn Progress) -> Result<PathBuf, BuildError> {
        let mut spool = Spool::create(self.dir.path()).unwrap();
        for value in &self.values {
            spool.push(&Record { key: None, value: value.clone() }).unwrap();
        }
        let records = spool.finish(OnDuplicate::Error).unwrap();
        let options = BuildOptions {
            protocol: Some(self.protocol),
            lwe: DEFAULT_LWE,
            ring: Some(INSECURE_RING_N256),
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

    /// Asks both engines the same, and checks the records.
    fn ask(&self, target: &Path, [one, other]: [&dyn Engine; 2], batch: usize) {
        let descriptor = Descriptor::from_json(&one.descriptor_json()).unwrap();
        let hint = descriptor.hint.is_some().then(|| MappedFile::open(&target.join(HINT_FILE)).unwrap());
        let hint = hint.map(|file| Arc::new(file) as Arc<_>);
        let mut client = Client::new(descriptor, hint, true).unwrap();
        client.use_keys(&[1; 32]);
        let indices: Vec<usize> = (0..batch).map(|query| query * 37 % RECORDS).collect();
        let asked = indices.iter().map(|&index| client.query(&Wanted::Index(index as u64)).unwrap());
        let (queries, pending): (Vec<_>, Vec<_>) = asked.unzip();
        let answers = |engine: &dyn Engine| {
            let body = client.key_upload().map(|(_, body)| body);
            let keys: Option<ClientKeys> = body.map(|body| engine.open_keys(&body).unwrap());
            engine.answer(&queries, &vec![keys; batch]).unwrap()
        };
        let (ours, theirs) = (answers(one), answers(other));
        assert!(ours == theirs, "{}: answers of both backends, bit by bit", self.protocol);
        for ((index, pending), answer) in indices.iter().zip(&pending).zip(&ours) {
            let found = client.decode(pending, answer).unwrap();
            assert_eq!(found.as_ref(), Some(&self.values[*index]), "{}, record {index}", self.protocol);
        }
    }
}

/// What is told of a build or an upload.
#[derive(Default)]
struct Told {
    notes: Mutex<Vec<String>>,
    /// Stage, units in all, units done.
    stages: Mutex<Vec<(String, u64, u64)>>,
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

fn files(target: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(target).unwrap().map(|entry| entry.unwrap());
    let content =
        |entry: fs::DirEntry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap());
    let mut files: Vec<_> = entries.map(content).collect();
    files.sort();
    files
}

#[test]
fn tables_are_the_same_and_answer_alike() {
    for (protocol, bytes) in TABLES {
        let place = Place::new(protocol, bytes);
        let gpu = on_gpu(BackendChoice::Cuda, 1 << 30);
        let target = place.build("cpu", &on_cpu(), &Silent).unwrap();
        // The whitening of a table over rings is drawn.
        if protocol != Protocol::Onion {
            let built = Told::default();
            let other = place.build("gpu", &gpu, &built).unwrap();
            assert!(files(&target) == files(&other), "{protocol}: the files");
            assert!(built.notes.into_inner().unwrap().is_empty(), "{protocol}");
        }
        let told = Told::default();
        let on_gpu = open(&target, Verify::Full, &gpu, &told).unwrap();
        let on_cpu = open(&target, Verify::Full, &on_cpu(), &Silent).unwrap();
        assert_eq!((on_gpu.backend(), on_cpu.backend()), (Backend::Cuda, Backend::Cpu));
        check_told(protocol, told, on_gpu.max_batch());
        if let (Some(one), Some(other)) = (on_gpu.keys(), on_cpu.keys()) {
            assert_eq!((&one.preset, one.bytes), (&other.preset, other.bytes));
            assert_ne!(one, other, "keys that one backend opened are of no use to another");
        }
        for batch in [1, 5] {
            place.ask(&target, [&*on_gpu, &*on_cpu], batch);
        }
    }
}

fn check_told(protocol: Protocol, told: Told, batch: usize) {
    let notes = told.notes.into_inner().unwrap();
    assert!(notes[0].starts_with("on emulator, "), "{notes:?}");
    assert!(notes[1].starts_with("  database  "), "{notes:?}");
    let queries = format!("  a batch of {batch} queries ");
    assert!(notes.iter().any(|line| line.starts_with(&queries)), "{protocol}: {notes:?}");
    assert!(notes.last().unwrap().starts_with("  in all  "), "{notes:?}");
    let [(stage, total, done)] = &told.stages.into_inner().unwrap()[..] else { panic!("one stage") };
    assert_eq!((stage.as_str(), total), ("upload", done), "{protocol}");
    assert!(*total > 0);
}

/// The least memory, in steps of an eighth, with which a device takes the table and batches of `batch` queries.
fn least_memory(target: &Path, batch: usize) -> (usize, Arc<dyn Engine>) {
    let mut memory = MIB / 64;
    loop {
        match open(target, Verify::Header, &on_gpu(BackendChoice::Cuda, memory), &Silent) {
            Ok(engine) if engine.max_batch() >= batch => return (memory, engine),
            Ok(_) => {}
            Err(OpenError::Memory(refused)) => {
                let text = refused.to_string();
                assert!(text.starts_with("the table needs ") && text.contains("(database "), "{text}");
                assert!(
                    text.contains(" are free on emulator: use --backend cpu, or a table of at most"),
                    "{text}"
                );
            }
            Err(error) => panic!("with {memory} bytes: {error}"),
        }
        memory += memory / 8;
    }
}

#[test]
fn what_the_plan_has_room_for_can_be_done() {
    for (protocol, bytes) in TABLES {
        let place = Place::new(protocol, bytes);
        let target = place.build("table", &on_cpu(), &Silent).unwrap();
        let on_cpu = open(&target, Verify::Header, &on_cpu(), &Silent).unwrap();
        for batch in [1, 3] {
            let (memory, engine) = least_memory(&target, batch);
            let most = engine.max_batch();
            assert!(most <= 4 + batch, "{protocol}: {most} queries in {memory} bytes");
            place.ask(&target, [&*engine, &*on_cpu], most);
        }
        // A table that does not fit is the CPU's, where the choice is free.
        let told = Told::default();
        let engine = open(&target, Verify::Header, &on_gpu(BackendChoice::Auto, MIB / 64), &told).unwrap();
        assert_eq!((engine.backend(), engine.max_batch()), (Backend::Cpu, on_cpu.max_batch()));
        let notes = told.notes.into_inner().unwrap();
        assert!(notes.len() == 1 && notes[0].starts_with("on the CPU: the table needs "), "{notes:?}");
    }
}

#[test]
fn tables_share_a_device() {
    let place = Place::new(Protocol::Simple, 300);
    let target = place.build("table", &on_cpu(), &Silent).unwrap();
    let (memory, _) = least_memory(&target, 1);
    let gpu = on_gpu(BackendChoice::Auto, 3 * memory);
    let open = || open(&target, Verify::Header, &gpu, &Silent).unwrap();
    let (mut tables, mut batches) = (Vec::new(), Vec::new());
    while tables.last().is_none_or(|table: &Arc<dyn Engine>| table.backend() == Backend::Cuda) {
        tables.push(open());
        batches.push(tables[tables.len() - 1].max_batch());
    }
    // Each leaves half of the room to the next.
    let on_gpu = tables.len() - 1;
    assert!(on_gpu >= 2, "{on_gpu} tables");
    assert!(batches[..on_gpu].is_sorted_by(|one, next| one > next), "{batches:?}");
    for table in &tables {
        place.ask(&target, [&**table, &*tables[0]], table.max_batch().min(8));
    }
}

#[test]
fn a_build_that_does_not_fit() {
    let place = Place::new(Protocol::Hybrid, 300);
    let told = Told::default();
    let expected = place.build("cpu", &on_cpu(), &Silent).unwrap();
    let target = place.build("auto", &on_gpu(BackendChoice::Auto, MIB), &told).unwrap();
    assert!(files(&expected) == files(&target));
    let notes = told.notes.into_inner().unwrap();
    assert!(notes.len() == 1 && notes[0].contains("working memory"), "{notes:?}");
    let refused = place.build("cuda", &on_gpu(BackendChoice::Cuda, MIB), &Silent).unwrap_err();
    assert!(matches!(refused, BuildError::Memory(_)), "{refused}");
    assert!(!place.dir.path().join("cuda").exists());
}
