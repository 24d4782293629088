//! Tables of random records as they are built, and clients of the engines that serve them.
#![allow(dead_code, reason = "no binary of tests uses every part")]

use std::{
    collections::BTreeMap,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    thread,
};

use hush_build::builder::{Applied, BuildError, BuildOptions, ChangeRoom, Compress, Tiers, apply, build};
use hush_client::{Acceptance, PendingLookup, Table as Client, Wanted as LookUp};
use hush_cpu::Cpu;
use hush_engine::{Backends, ClientKeys, Engine, EngineError, OpenError, Progress, Silent, open};
use hush_ingest::{OnDuplicate, Record, Spool};
use hush_math::csprng::Csprng;
use hush_protocol::{
    Protocol,
    client::Hint,
    descriptor::Descriptor,
    facts::DbForm,
    keyword::{FilterKind, position_key},
    wire::Query,
};
use hush_store::snapshot::{Changes, Header, Snapshot, SnapshotWriter, Verify};
use tempfile::TempDir;

pub(crate) mod here;

/// The small parameter sets.
const SMALL_SETS: [&str; 6] = [
    "INSECURE_LWE_N64",
    "INSECURE_COLPACK_N256",
    "INSECURE_PACK_N256",
    "INSECURE_RING_N256",
    "INSECURE_TFHE_N256",
    "INSECURE_PRIVKS_N256",
];

/// The table to build: random records of one length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) protocol: Protocol,
    /// A parameter set; `None` is the small one of the protocol, if it has one.
    pub(crate) preset: Option<&'static str>,
    pub(crate) by_key: bool,
    pub(crate) records: usize,
    /// The bytes of a record.
    pub(crate) bytes: usize,
    /// About as many, where that is a choice.
    pub(crate) columns: usize,
    /// Where length tiers end, of values as long as these and shorter; none for values of one length in one segment.
    pub(crate) tiers: &'static [usize],
    /// Whether values are compressed.
    pub(crate) compress: Compress,
    /// How plaintexts are kept, where that is a choice.
    pub(crate) form: Option<DbForm>,
    /// How many changes there is room for, if any.
    pub(crate) room: Option<usize>,
}

/// Changes of some records, by their index; `None` of one that is deleted.
pub(crate) type Changed = BTreeMap<usize, Option<Vec<u8>>>;

impl Wanted {
    /// Returns a table by index, under the small set.
    pub(crate) fn by_index(protocol: Protocol, records: usize, bytes: usize, columns: usize) -> Self {
        Self {
            protocol,
            preset: None,
            by_key: false,
            records,
            bytes,
            columns,
            tiers: &[],
            compress: Compress::None,
            form: None,
            room: None,
        }
    }

    /// Returns the length of a record: of a hundred 12 go on in the second tier, two in the last, one to its very end.
    fn length(&self, index: usize) -> usize {
        let [first, second, ..] = *self.tiers else { return self.bytes };
        let (last, before) = (self.tiers[self.tiers.len() - 1], self.tiers[self.tiers.len() - 2]);
        match index % 100 {
            0 => last,
            1 => before + 1 + index * 13 % (last - before),
            2..=12 => first + 1 + index * 13 % (second - first),
            _ => index * 7 % (first + 1),
        }
    }

    pub(crate) fn options(&self) -> BuildOptions {
        let page = self.protocol.page();
        BuildOptions {
            protocol: Some(self.protocol),
            preset: self
                .preset
                .or_else(|| SMALL_SETS.into_iter().find(|set| page.has_set(set)))
                .map(str::to_owned),
            filter: Some(match (self.tiers, self.room) {
                ([], None) => FilterKind::Fuse3,
                _ => FilterKind::Band64,
            }),
            compress: self.compress,
            form: self.form,
            tiers: if self.tiers.is_empty() { Tiers::AtMost(1) } else { Tiers::Ends(self.tiers.to_vec()) },
            columns: page.has_columns().then_some(self.columns),
            changes: self.room.map(ChangeRoom::For),
            ..BuildOptions::default()
        }
    }
}

/// So many threads of the CPU.
pub(crate) fn on_cpu(threads: usize) -> Backends {
    Backends::cpu_only(Arc::new(Cpu::new(threads).unwrap()))
}

/// A folder to build tables in, and their records: the same for the same number and length of records.
pub(crate) struct Folder {
    pub(crate) dir: TempDir,
    pub(crate) wanted: Wanted,
    pub(crate) records: Vec<Vec<u8>>,
    /// The changes since the build.
    pub(crate) changed: Changed,
}

impl Folder {
    pub(crate) fn new(wanted: Wanted) -> Self {
        let rng = &mut Csprng::insecure_from_seed(3);
        let records = (0..wanted.records).map(|index| {
            let mut value = vec![0; wanted.length(index)];
            rng.fill_bytes(&mut value);
            value
        });
        Self {
            records: records.collect(),
            changed: Changed::new(),
            wanted,
            dir: tempfile::tempdir().unwrap(),
        }
    }

    /// Returns a folder with the table.
    pub(crate) fn with_table(backends: &Backends, wanted: Wanted) -> Self {
        let folder = Self::new(wanted);
        folder.build("table", backends, &Silent).unwrap_or_else(|error| panic!("{wanted:?}: {error}"));
        folder
    }

    /// Builds the table in a folder of this name.
    pub(crate) fn build(
        &self,
        name: &str,
        backends: &Backends,
        progress: &dyn Progress,
    ) -> Result<PathBuf, BuildError> {
        let mut spool = Spool::create(self.dir.path()).unwrap();
        for (index, value) in self.records.iter().enumerate() {
            let key = self.wanted.by_key.then(|| key(index));
            spool.push(&Record { key, value: value.clone() }).unwrap();
        }
        let records = spool.finish(OnDuplicate::Error).unwrap();
        let target = self.dir.path().join(name);
        let writer = SnapshotWriter::create(&target, false).unwrap();
        let (by_key, options) = (self.wanted.by_key, self.wanted.options());
        build(&records, by_key, "records", &options, writer, backends, progress)?;
        Ok(target)
    }

    /// Makes changes to the table, beside those that were made before.
    pub(crate) fn apply(&mut self, backends: &Backends, changed: Changed) -> Result<Header, BuildError> {
        let all: Changed = self.changed.clone().into_iter().chain(changed).collect();
        let key = |index: usize| {
            if self.wanted.by_key { key(index) } else { position_key(index as u64).to_vec() }
        };
        let changes = Changes(all.iter().map(|(&index, value)| (key(index), value.clone())).collect());
        let (table, silent) = (self.table(), &Silent);
        let writer = SnapshotWriter::create(&table, true).unwrap();
        let snapshot = Snapshot::open(&table, Verify::Full).unwrap();
        let header = apply(
            &table,
            snapshot,
            Applied { changes: &changes, sorted: None, followed: None },
            None,
            writer,
            backends,
            silent,
        )?;
        self.changed = all;
        Ok(header)
    }

    /// Returns the value that a look-up of a record should find.
    pub(crate) fn expected(&self, index: usize) -> Option<&Vec<u8>> {
        self.changed.get(&index).map_or_else(|| self.records.get(index), Option::as_ref)
    }

    /// Returns the look-up that finds a record.
    pub(crate) fn look_up(&self, index: usize) -> LookUp {
        if self.wanted.by_key { LookUp::Key(key(index)) } else { LookUp::Index(index as u64) }
    }

    /// Returns where the table is.
    pub(crate) fn table(&self) -> PathBuf {
        self.dir.path().join("table")
    }

    pub(crate) fn descriptor(&self) -> Descriptor {
        Snapshot::open(&self.table(), Verify::Full).unwrap().header().descriptor.clone()
    }

    /// Returns the content of a file of the table.
    pub(crate) fn file(&self, name: &str) -> Vec<u8> {
        Snapshot::open(&self.table(), Verify::Full).unwrap().take(name).unwrap().as_ref().to_vec()
    }

    /// Returns the engine that serves the table.
    pub(crate) fn open(&self, backends: &Backends) -> Result<Arc<dyn Engine>, OpenError> {
        open(&self.table(), Verify::Header, backends, &Silent)
    }

    /// Look-ups of some records of the table that `engine` serves; beyond the last one, of keys that it does not have.
    pub(crate) fn asked(&self, engine: &dyn Engine, indices: Vec<usize>) -> Asked<'_> {
        self.asked_by(client(engine), indices)
    }

    /// Returns the look-ups of one client.
    pub(crate) fn asked_by(&self, client: Client, indices: Vec<usize>) -> Asked<'_> {
        let asked = indices.iter().map(|&index| client.query(&self.look_up(index)).unwrap());
        let (queries, pending) = asked.unzip();
        Asked { folder: self, client, indices, queries, pending }
    }

    /// Look-ups of so many records.
    pub(crate) fn some(&self, engine: &dyn Engine, batch: usize) -> Asked<'_> {
        self.asked(engine, (0..batch).map(|query| query * 37 % self.records.len()).collect())
    }

    /// Asks both engines the same, and checks the records.
    pub(crate) fn ask(&self, [one, other]: [&dyn Engine; 2], batch: usize) {
        let asked = self.some(one, batch);
        let (ours, theirs) = (asked.answers(one).unwrap(), asked.answers(other).unwrap());
        assert!(ours == theirs, "{:?}: answers of both, bit by bit", self.wanted);
        asked.check(&ours);
    }
}

/// Returns the key of a record.
fn key(index: usize) -> Vec<u8> {
    format!("key {index}").into_bytes()
}

/// Returns a client of an engine.
pub(crate) fn client(engine: &dyn Engine) -> Client {
    client_with(engine, &[1; 32])
}

/// Creates a client whose keys come from this seed.
pub(crate) fn client_with(engine: &dyn Engine, seed: &[u8; 32]) -> Client {
    let served = engine.served();
    let hints = served.blobs.iter().map(|blob| {
        let mut bytes = vec![0; blob.bytes as usize];
        blob.file.read_exact_at(&mut bytes, 0).unwrap();
        Arc::new(bytes) as Hint
    });
    let descriptor = Descriptor::from_json(&served.descriptor_json).unwrap();
    let acceptance = Acceptance::of_weak(&descriptor.preset);
    let mut client = Client::new(descriptor, hints, &acceptance).unwrap();
    client.use_keys(seed).unwrap();
    client
}

/// The look-ups of a client.
pub(crate) struct Asked<'a> {
    folder: &'a Folder,
    pub(crate) client: Client,
    indices: Vec<usize>,
    pub(crate) queries: Vec<Query>,
    pending: Vec<PendingLookup>,
}

impl Asked<'_> {
    /// Returns the client's keys as `engine` opens them, if it needs any.
    pub(crate) fn keys(&self, engine: &dyn Engine) -> Result<Option<ClientKeys>, EngineError> {
        self.client.key_upload().map(|(_, body)| engine.open_keys(&body)).transpose()
    }

    /// Asks as many batches at once as the engine has under way, and checks that their answers are equal.
    pub(crate) fn answers(&self, engine: &dyn Engine) -> Result<Vec<Vec<u8>>, EngineError> {
        let keys = vec![self.keys(engine)?; self.queries.len()];
        let batches = 0..engine.served().placement.batches_in_flight();
        let mut answers = thread::scope(|scope| {
            let batches: Vec<_> =
                batches.map(|_| scope.spawn(|| engine.answer(&self.queries, &keys))).collect();
            batches.into_iter().map(|batch| batch.join().unwrap()).collect::<Result<Vec<_>, _>>()
        })?;
        assert!(answers.iter().all(|other| *other == answers[0]), "{:?}", self.folder.wanted);
        Ok(answers.remove(0))
    }

    /// Returns the look-ups as those of a later epoch that has answered them.
    pub(crate) fn adopted(self, folder: &Folder, client: Client) -> Asked<'_> {
        let Self { indices, queries, pending, .. } = self;
        let pending = pending
            .into_iter()
            .zip(&indices)
            .map(|(pending, &index): (_, &usize)| client.adopt(pending, &folder.look_up(index)).unwrap())
            .collect();
        Asked { folder, client, indices, queries, pending }
    }

    /// Checks that the answers are the records.
    pub(crate) fn check(&self, answers: &[Vec<u8>]) {
        let wanted = &self.folder.wanted;
        assert_eq!(answers.len(), self.queries.len(), "{wanted:?}");
        for ((index, pending), answer) in self.indices.iter().zip(&self.pending).zip(answers) {
            let found = self.client.decode(pending, answer).unwrap();
            assert_eq!(found.as_ref(), self.folder.expected(*index), "{wanted:?}, record {index}");
        }
    }
}

/// Returns all files of a table, by name.
pub(crate) fn files(table: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(table).unwrap() {
        let entry = entry.unwrap();
        files.push((entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()));
    }
    files.sort();
    files
}

/// The messages of a build or an upload.
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
