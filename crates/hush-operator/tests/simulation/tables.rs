//! The tables, in several epochs each, and what a look-up must find in each.

use std::{path::PathBuf, sync::Arc};

use hush_build::builder::{Applied, BuildOptions, ChangeRoom, Tiers, apply, build};
use hush_client::Wanted;
use hush_cpu::Cpu;
use hush_engine::{Backends, Engine, Silent, open, parts::Source};
use hush_ingest::{OnDuplicate, Record, Spool};
use hush_protocol::{Name, Protocol, keyword::FilterKind};
use hush_store::snapshot::{Changes, Snapshot, SnapshotWriter, Verify};
use tempfile::TempDir;

use super::parts::{Network, head};

/// The records of each table. As many keys again are in none.
const RECORDS: u64 = 40;
/// The epochs of each table.
const EPOCHS: u64 = 3;
const VALUE_BYTES: usize = 9;

/// A kind of table.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    protocol: Protocol,
    preset: &'static str,
    by_key: bool,
    /// Whether an epoch follows from the one before by changes. Otherwise each is built anew.
    changes: bool,
    /// Whether its parts are elsewhere.
    in_parts: bool,
}

const fn kind(name: &'static str, protocol: Protocol, preset: &'static str) -> Kind {
    Kind { name, protocol, preset, by_key: true, changes: false, in_parts: false }
}

const KINDS: [Kind; 7] = [
    Kind { by_key: false, ..kind("hinted", Protocol::Simple, "LWE_N1280_STD3_2_RING256") },
    Kind { changes: true, ..kind("changed", Protocol::Colpack, "INSECURE_COLPACK_N256") },
    Kind { in_parts: true, ..kind("parts", Protocol::Colpack, "INSECURE_COLPACK_N256") },
    kind("keyed", Protocol::Onion, "INSECURE_RING_N256"),
    kind("packed", Protocol::ExppackS, "INSECURE_PACK_N256"),
    kind("local", Protocol::Download, "DOWNLOAD"),
    Kind {
        by_key: false,
        changes: true,
        ..kind("changed-list", Protocol::ColpackS, "INSECURE_COLPACK_N256")
    },
];

/// The tables on disk.
pub(crate) struct Built {
    dir: TempDir,
}

/// The tables, opened.
pub(crate) struct Tables {
    pub(crate) all: Vec<Table>,
    pub(crate) network: Arc<Network>,
}

/// A table in its epochs.
pub(crate) struct Table {
    pub(crate) name: Name,
    pub(crate) epochs: Vec<Arc<dyn Engine>>,
    pub(crate) preset: &'static str,
    kind: Kind,
}

fn key(index: u64) -> Vec<u8> {
    format!("key {index}").into_bytes()
}

/// Returns the value of a record that an epoch gave it.
fn value(epoch: u64, index: u64) -> Vec<u8> {
    let mut value = vec![epoch as u8, index as u8];
    value.resize(VALUE_BYTES, b'0' + (index * 7 % 64) as u8);
    value
}

/// Returns whether an epoch changed a record of a table that changes.
fn is_changed(epoch: u64, index: u64) -> bool {
    (index + epoch).is_multiple_of(4)
}

impl Built {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let backends = Backends::cpu_only(Arc::new(Cpu::new(1).unwrap()));
        for kind in KINDS {
            for epoch in 0..EPOCHS {
                kind.build(&dir, &backends, epoch);
            }
        }
        Self { dir }
    }

    pub(crate) fn open(&self) -> Tables {
        let cpu = Arc::new(Cpu::new(1).unwrap());
        let backends = Backends::cpu_only(cpu.clone());
        let network = Arc::new(Network::default());
        let all = KINDS.map(|kind| {
            let folders: Vec<_> = (0..EPOCHS).map(|epoch| kind.folder(&self.dir, epoch)).collect();
            let sources =
                || folders.iter().map(|folder| Source::Folder(folder.clone(), Verify::Full)).collect();
            let epochs = if kind.in_parts {
                head(sources(), &network, &cpu, &backends)
            } else {
                folders.iter().map(|folder| open(folder, Verify::Full, &backends, &Silent).unwrap()).collect()
            };
            Table { name: kind.name.parse().unwrap(), epochs, preset: kind.preset, kind }
        });
        Tables { all: all.into(), network }
    }
}

impl Kind {
    fn folder(self, dir: &TempDir, epoch: u64) -> PathBuf {
        dir.path().join(format!("{}-{epoch}", self.name))
    }

    fn build(self, dir: &TempDir, backends: &Backends, epoch: u64) {
        let target = self.folder(dir, epoch);
        if self.changes && epoch > 0 {
            return self.change(dir, backends, epoch);
        }
        let mut spool = Spool::create(dir.path()).unwrap();
        for index in 0..RECORDS {
            let key = self.by_key.then(|| key(index));
            spool.push(&Record { key, value: value(epoch, index) }).unwrap();
        }
        let records = spool.finish(OnDuplicate::Error).unwrap();
        let writer = SnapshotWriter::create(&target, false).unwrap();
        let has_columns = self.protocol.page().has_columns();
        let options = BuildOptions {
            protocol: Some(self.protocol),
            preset: Some(self.preset.into()),
            filter: Some(if self.changes { FilterKind::Band64 } else { FilterKind::Fuse3 }),
            tiers: Tiers::AtMost(1),
            columns: has_columns.then_some(16),
            changes: self.changes.then_some(ChangeRoom::For(RECORDS as usize)),
            ..BuildOptions::default()
        };
        build(&records, self.by_key, "records", &options, writer, backends, &Silent)
            .unwrap_or_else(|error| panic!("{}: {error}", self.name));
    }

    /// Makes an epoch out of the one before.
    fn change(self, dir: &TempDir, backends: &Backends, epoch: u64) {
        let (before, target) = (self.folder(dir, epoch - 1), self.folder(dir, epoch));
        std::fs::create_dir(&target).unwrap();
        for entry in std::fs::read_dir(before).unwrap() {
            let path = entry.unwrap().path();
            std::fs::copy(&path, target.join(path.file_name().unwrap())).unwrap();
        }
        let all = (0..RECORDS).filter(|&index| (1..=epoch).any(|epoch| is_changed(epoch, index)));
        let key = |index| {
            if self.by_key { key(index) } else { hush_protocol::keyword::position_key(index).to_vec() }
        };
        let changes = Changes(all.map(|index| (key(index), self.value(epoch, index))).collect());
        let writer = SnapshotWriter::create(&target, true).unwrap();
        let snapshot = Snapshot::open(&target, Verify::Full).unwrap();
        let applied = Applied { changes: &changes, sorted: None, followed: None };
        apply(&target, snapshot, applied, None, writer, backends, &Silent)
            .unwrap_or_else(|error| panic!("{}: {error}", self.name));
    }

    /// Returns what a record is in an epoch, or `None` if it is not there.
    fn value(self, epoch: u64, index: u64) -> Option<Vec<u8>> {
        let since = match self.changes {
            true => (1..=epoch).rev().find(|&epoch| is_changed(epoch, index)).unwrap_or(0),
            false => epoch,
        };
        // The last change of every tenth record took it away.
        let is_gone =
            index >= RECORDS || since > 0 && self.changes && self.by_key && index.is_multiple_of(10);
        (!is_gone).then(|| value(since, index))
    }
}

impl Table {
    /// Returns the number of records that can be asked for, present or not.
    pub(crate) fn askable(&self) -> u64 {
        if self.kind.by_key { 2 * RECORDS } else { RECORDS }
    }

    /// Returns whether an epoch may take the place of another record by record.
    pub(crate) fn changes(&self) -> bool {
        self.kind.changes
    }

    pub(crate) fn wanted(&self, index: u64) -> Wanted {
        if self.kind.by_key { Wanted::Key(key(index)) } else { Wanted::Index(index) }
    }

    /// Returns what a look-up of a record must find in an epoch.
    pub(crate) fn expected(&self, epoch: usize, index: u64) -> Option<Vec<u8>> {
        self.kind.value(epoch as u64, index)
    }
}
