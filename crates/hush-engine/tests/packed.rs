//! Tables whose answers are packed, built and served: the hint that is written tile by tile is the one that is lifted at once,
//! every stage reports all its units, and what is opened answers a batch.

use std::{
    ops::Range,
    path::Path,
    sync::{Arc, Mutex},
};

use hush_cpu::Cpu;
use hush_engine::{
    Backends, Engine, Progress, Silent,
    build::{BuildOptions, build},
    open,
};
use hush_he::params::{DEFAULT_LWE, INSECURE_PACK_N256, RingContext};
use hush_math::csprng::Csprng;
use hush_ops::{
    contract::{LweOps, PackOps, RingOps},
    tiling::{GROUP_ROWS, TiledDb, Tiling},
};
use hush_protocol::{
    Target,
    descriptor::Descriptor,
    keyword::FilterKind,
    layout,
    pack_table::PackTable,
    packing,
    ring_keys::RingKeys,
    table::{Protocol, TableParams},
    wire,
};
use hush_store::{
    ingest::{OnDuplicate, Record, Spool},
    snapshot::{DB_FILE, LIFTED_FILE, SECOND_DB_FILE, Snapshot, SnapshotWriter, Verify},
};
use tempfile::TempDir;

fn on_cpu() -> Backends {
    Backends::cpu_only(Arc::new(Cpu::new(2).unwrap()))
}

/// A folder with the snapshot of a table by index, and its records.
struct Built {
    dir: TempDir,
    records: Vec<Vec<u8>>,
    stages: Stages,
}

/// The stages of a build: name, units in all, units done.
#[derive(Default)]
struct Stages(Mutex<Vec<(String, u64, u64)>>);

impl Progress for Stages {
    fn start(&self, stage: &str, total: u64, _: &'static str) {
        self.0.lock().unwrap().push((stage.into(), total, 0));
    }

    fn advance(&self, units: u64) {
        self.0.lock().unwrap().last_mut().expect("a stage").2 += units;
    }
}

impl Built {
    /// `records` random records of `bytes` bytes each, in about `columns` columns.
    fn new(backends: &Backends, protocol: Protocol, records: usize, bytes: usize, columns: usize) -> Self {
        let (dir, rng) = (tempfile::tempdir().unwrap(), &mut Csprng::insecure_from_seed(3));
        let mut spool = Spool::create(dir.path()).unwrap();
        let records: Vec<Vec<u8>> = (0..records)
            .map(|_| {
                let mut value = vec![0; bytes];
                rng.fill_bytes(&mut value);
                spool.push(&Record { key: None, value: value.clone() }).unwrap();
                value
            })
            .collect();
        let spooled = spool.finish(OnDuplicate::Error).unwrap();
        let options = BuildOptions {
            protocol: Some(protocol),
            lwe: DEFAULT_LWE,
            ring: None,
            pack: Some(INSECURE_PACK_N256),
            column: None,
            filter: FilterKind::Band128,
            fingerprint_bytes: 8,
            columns: Some(columns),
        };
        let writer = SnapshotWriter::create(&dir.path().join("table"), false).unwrap();
        let stages = Stages::default();
        build(&spooled, false, "records", &options, writer, backends, &stages).unwrap();
        Self { dir, records, stages }
    }

    fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("table")
    }

    fn table(&self) -> PackTable {
        let snapshot = Snapshot::open(&self.path(), Verify::Full).unwrap();
        pack_table(&snapshot.header().descriptor)
    }
}

fn pack_table(descriptor: &Descriptor) -> PackTable {
    match descriptor.params().unwrap() {
        TableParams::Pack(table) => table,
        other => panic!("{other:?} is not packed"),
    }
}

fn file(dir: &Path, name: &str) -> Vec<u8> {
    Snapshot::open(dir, Verify::Full).unwrap().take(name).unwrap().as_ref().to_vec()
}

/// The hint of the whole database, lifted at once.
fn lifted(cpu: &Cpu, dir: &Path, table: &PackTable) -> Vec<u8> {
    let exppack_d = table.protocol() == Protocol::ExppackD;
    let (name, tiling, matrix) = match exppack_d {
        true => {
            let tiling = Tiling::new(table.second_hint_rows(), table.shape().blocks);
            (SECOND_DB_FILE, tiling, table.second_matrix())
        }
        false => (DB_FILE, table.tiling(), table.first_matrix()),
    };
    let (n, shape) = (table.params().lwe().n(), table.hint_shape());
    let db = cpu.open_db(TiledDb::new(tiling, Arc::new(file(dir, name))).unwrap()).unwrap();
    let mut hint = cpu.lwe_hint(&db, &matrix, 0..tiling.rows()).unwrap().to_vec();
    hint.resize(shape.rows() * n, 0);
    let ring = cpu.open_ring(Arc::new(RingContext::new(*table.params().ring()))).unwrap();
    cpu.lift_hint(&ring, &hint.into(), n, &shape, 0..shape.plaintexts()).unwrap().bytes().to_vec()
}

/// Protocol, record bytes and blocks, and the plaintexts of the hint that they make.
const TABLES: [(Protocol, usize, usize, usize); 9] = [
    (Protocol::Hybrid, 256, 1, 1),
    // A tile that is not full; a tile with one plaintext after a full one, whose lines are narrower in memory; two of them.
    (Protocol::Hybrid, 256, 9, 9),
    (Protocol::Hybrid, 256, 17, 17),
    (Protocol::ExppackS, 256, 33, 33),
    // Four lanes of 60 bytes: entries start in the middle of a group of rows, and the last one is short.
    (Protocol::Hybrid, 60, 71, 18),
    (Protocol::DoublePack, 50, 86, 18),
    // Three planes an entry, the last of them short.
    (Protocol::DoublePack, 600, 6, 18),
    // 2 * 3 * 64 rows of the hint and 6 of the answer, which start in the middle of the second plaintext.
    (Protocol::ExppackD, 3, 20, 2),
    (Protocol::ExppackD, 33, 5, 17),
];

#[test]
fn the_hint_written_by_tiles_is_the_hint_lifted_at_once() {
    let backends = on_cpu();
    for (protocol, bytes, blocks, plaintexts) in TABLES {
        // The last block is short of two records.
        let built = Built::new(&backends, protocol, 8 * blocks - 2, bytes, 8);
        let table = built.table();
        let name = format!("{protocol}, {blocks} blocks of {bytes} bytes");
        assert_eq!((table.shape().slot_bytes, table.shape().blocks), (bytes, blocks), "{name}");
        assert_eq!(table.hint_tiling().columns(), plaintexts, "{name}");
        assert!(file(&built.path(), LIFTED_FILE) == lifted(backends.cpu(), &built.path(), &table), "{name}");
        for (stage, total, done) in &*built.stages.0.lock().unwrap() {
            assert_eq!(total, done, "{name}: {stage}");
        }
    }
}

/// What the tables above are there for.
#[test]
fn the_tables_cover_the_corners() {
    let backends = on_cpu();
    let table = |(protocol, bytes, blocks, _): (Protocol, usize, usize, usize)| {
        Built::new(&backends, protocol, 8 * blocks, bytes, 8).table()
    };
    let starts = |range: Range<usize>| range.start % GROUP_ROWS;
    let lanes = table(TABLES[4]).hint_shape();
    assert!((0..lanes.plaintexts()).any(|column| starts(lanes.plaintext_rows(column)) != 0));
    assert!(lanes.plaintext_rows(17).len() < lanes.plaintext_rows(0).len());
    let digits = table(TABLES[7]);
    assert_ne!(digits.second_hint_rows() % digits.params().ring().degree(), 0);
    let narrow = table(TABLES[2]).hint_tiling();
    assert_eq!((narrow.tiles(), narrow.tile_columns(1)), (2, 16..17));
}

/// A client of an engine.
struct Client {
    table: PackTable,
    keys: RingKeys,
}

impl Client {
    fn new(engine: &dyn Engine) -> Self {
        let descriptor = Descriptor::from_json(&engine.descriptor_json()).unwrap();
        Self {
            table: pack_table(&descriptor),
            keys: RingKeys::from_seed(INSECURE_PACK_N256.ring(), &[4; 32]),
        }
    }

    fn query(&self, index: usize) -> (wire::Query, packing::Pending) {
        let (block, column) = layout::index_position(&self.table.shape(), index);
        let target = Target { columns: vec![(column as u32, 1)], block };
        packing::query(&self.table, &self.keys, target, &mut Csprng::insecure_from_seed(index as u64))
    }
}

#[test]
fn what_is_built_answers_whole_batches() {
    let backends = on_cpu();
    for (protocol, bytes, blocks, _) in TABLES {
        let name = format!("{protocol}, {blocks} blocks of {bytes} bytes");
        let built = Built::new(&backends, protocol, 8 * blocks - 2, bytes, 8);
        let engine = open(&built.path(), Verify::Full, &backends, &Silent).unwrap();
        let client = Client::new(&*engine);
        let keys = engine.open_keys(client.keys.upload()).unwrap();
        // The first, the last, and some between.
        let batch = engine.max_batch();
        assert!(batch >= 1, "{name}");
        let last = built.records.len() - 1;
        let indices: Vec<usize> = (0..batch).map(|query| last * query / (batch - 1).max(1)).collect();
        let (queries, pending): (Vec<_>, Vec<_>) = indices.iter().map(|&index| client.query(index)).unzip();
        let answers = engine.answer(&queries, &vec![Some(keys.clone()); batch]).unwrap();
        for ((index, pending), answer) in indices.into_iter().zip(pending).zip(answers) {
            assert_eq!(answer.len(), engine.answer_bytes(), "{name}");
            let slot = packing::recover(&client.table, &client.keys, &pending, &answer).unwrap();
            assert_eq!(*slot, built.records[index], "{name}, record {index}");
        }
        let without = engine.answer(&queries[..1], &[None]);
        assert!(without.is_err(), "{name}: a query without keys");
    }
}
