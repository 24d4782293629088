//! Tables of column packing as they are built, and clients of the engines that serve them.
#![allow(dead_code, reason = "no test looks at every part")]

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use hush_cpu::Cpu;
use hush_engine::{
    Backends, Engine, Silent,
    build::{BuildOptions, build},
};
use hush_he::params::{DEFAULT_LWE, INSECURE_COLPACK_N256};
use hush_math::csprng::Csprng;
use hush_protocol::{
    Target,
    column_packing::{self, ColumnScheme, Pending},
    column_table::ColumnTable,
    descriptor::{Descriptor, Lookup},
    keyword::{FilterKind, FilterParams, KeyDigest},
    layout,
    table::{Protocol, TableParams},
    wire,
};
use hush_store::{
    ingest::{OnDuplicate, Record, Spool},
    snapshot::{Snapshot, SnapshotWriter, Verify},
};
use tempfile::TempDir;

/// What is built: random records of one length, under the small set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) protocol: Protocol,
    pub(crate) by_key: bool,
    pub(crate) records: usize,
    /// Of a record.
    pub(crate) bytes: usize,
    /// About as many.
    pub(crate) columns: usize,
}

/// So many threads of the CPU.
pub(crate) fn on_cpu(threads: usize) -> Backends {
    Backends::cpu_only(Arc::new(Cpu::new(threads).unwrap()))
}

/// A folder with a table, and its records.
pub(crate) struct Built {
    pub(crate) dir: TempDir,
    pub(crate) records: Vec<Vec<u8>>,
}

impl Built {
    pub(crate) fn new(backends: &Backends, wanted: Wanted) -> Self {
        let (dir, rng) = (tempfile::tempdir().unwrap(), &mut Csprng::insecure_from_seed(3));
        let mut spool = Spool::create(dir.path()).unwrap();
        let mut record = |index: usize| {
            let mut value = vec![0; wanted.bytes];
            rng.fill_bytes(&mut value);
            let key = wanted.by_key.then(|| key(index));
            spool.push(&Record { key, value: value.clone() }).unwrap();
            value
        };
        let records = (0..wanted.records).map(&mut record).collect();
        let spooled = spool.finish(OnDuplicate::Error).unwrap();
        let options = BuildOptions {
            protocol: Some(wanted.protocol),
            lwe: DEFAULT_LWE,
            ring: None,
            pack: None,
            column: Some(INSECURE_COLPACK_N256),
            filter: FilterKind::Fuse3,
            fingerprint_bytes: 8,
            columns: Some(wanted.columns),
        };
        let writer = SnapshotWriter::create(&dir.path().join("table"), false).unwrap();
        build(&spooled, wanted.by_key, "records", &options, writer, backends, &Silent).unwrap();
        Self { dir, records }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("table")
    }

    pub(crate) fn table(&self) -> ColumnTable {
        column_table(&Snapshot::open(&self.path(), Verify::Full).unwrap().header().descriptor)
    }
}

/// The key of a record.
pub(crate) fn key(index: usize) -> Vec<u8> {
    format!("key {index}").into_bytes()
}

/// The content of a file of a table.
pub(crate) fn file(table: &Path, name: &str) -> Vec<u8> {
    Snapshot::open(table, Verify::Full).unwrap().take(name).unwrap().as_ref().to_vec()
}

fn column_table(descriptor: &Descriptor) -> ColumnTable {
    match descriptor.params().unwrap() {
        TableParams::Column(table) => table,
        other => panic!("{other:?} is not of column packing"),
    }
}

/// A client of an engine.
pub(crate) struct Client {
    pub(crate) descriptor: Descriptor,
    pub(crate) table: ColumnTable,
    pub(crate) scheme: ColumnScheme,
}

/// What a client keeps of a look-up: what decrypts it, and the fingerprint of its key.
pub(crate) struct Asked(Pending, Vec<u8>);

impl Client {
    pub(crate) fn new(engine: &dyn Engine) -> Self {
        let descriptor = Descriptor::from_json(&engine.descriptor_json()).unwrap();
        let table = column_table(&descriptor);
        Self { descriptor, table, scheme: ColumnScheme::new(table.params()) }
    }

    /// A look-up of record `index`, by its key if the table has keys.
    pub(crate) fn query(&self, index: usize) -> (wire::Query, Asked) {
        let (target, fingerprint) = match &self.descriptor.lookup {
            Lookup::Index => {
                let (block, column) = layout::index_position(&self.table.shape(), index);
                (Target { columns: vec![(column as u32, 1)], block }, Vec::new())
            }
            Lookup::Key(lookup) => {
                let digest = KeyDigest::new(&lookup.seed, &key(index)).unwrap();
                let map = lookup.block_map();
                let block = map.block_of(&digest);
                let filter = FilterParams { kind: lookup.filter, slots: self.table.shape().columns };
                let columns = filter.support(&digest, map.seeds[block]);
                (Target { columns, block }, digest.fingerprint(8).to_vec())
            }
        };
        let (query, pending) =
            column_packing::query(&self.table, &self.scheme, target, &mut Csprng::from_os());
        (query, Asked(pending, fingerprint))
    }

    /// The record that an answer holds, if the fingerprint is that of the key.
    pub(crate) fn recover(&self, Asked(pending, fingerprint): &Asked, answer: &[u8]) -> Option<Vec<u8>> {
        let slot = column_packing::recover(&self.table, &self.scheme, pending, answer).unwrap();
        self.descriptor.slot.decode(fingerprint, &slot).map(<[u8]>::to_vec)
    }
}
