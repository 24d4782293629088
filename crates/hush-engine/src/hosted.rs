//! A snapshot on a backend: static inside, `dyn` once.

use std::{any::Any, collections::HashMap, path::Path, sync::Arc};

use hush_cpu::Cpu;
use hush_ops::{
    OpsError,
    path::{Content, largest_batch},
    tiling::DbBytes,
};
use hush_protocol::{
    ProtocolError,
    any_page::{SegmentParams, TableParams},
    descriptor::{BlobRef, Descriptor},
    facts::{DICTIONARY_FILE, HINT_FILE},
    hosted::Hosted,
    page::Page,
    registry::Visitor,
    share::Share,
    wire,
};
use hush_store::snapshot::{
    FileEntry, ResidentFile, Snapshot, SnapshotError, StoredFile, Verified, Verify, segment_file,
};
use thiserror::Error;

use crate::{
    Blob, ClientKeys, DoesNotFit, Engine, EngineError, KeySpec, MemoryChoice, Place, Progress, Served,
    memory::mapped_files::MappedFiles, place::Hosting,
};

/// What the queries and answers of a batch may always take.
const BATCH_BYTES: usize = 1 << 30;

/// Why a snapshot could not be served.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Reading it.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// Its descriptor.
    #[error(transparent)]
    Protocol(ProtocolError),
    /// The backend.
    #[error(transparent)]
    Ops(#[from] OpsError),
    /// Files that are to be in memory, for which there is none.
    #[error(
        "the table needs {needed} of memory, and {room} are free: stop what else takes memory, or have its files mapped"
    )]
    NoRoom {
        /// The memory that they take.
        needed: String,
        /// The memory that is free.
        room: String,
    },
    /// The GPU that was asked for.
    #[error(transparent)]
    Memory(#[from] DoesNotFit),
    /// Fetching what a part reads.
    #[error(transparent)]
    Fetch(Box<dyn std::error::Error + Send + Sync>),
}

impl From<ProtocolError> for OpenError {
    /// The backend's errors are its own, whichever way they come.
    fn from(error: ProtocolError) -> Self {
        match error {
            ProtocolError::Ops(error) => Self::Ops(error),
            error => Self::Protocol(error),
        }
    }
}

/// Queries that one scan on the CPU answers at most: of which it holds no more beside the files than a quarter of them, or 1 GiB.
pub fn host_batch(params: &TableParams) -> usize {
    let files = params.files().into_iter().map(|file| file.content);
    let scanned: u64 = files.filter(Content::is_scanned).map(|content| content.bytes()).sum();
    let room = BATCH_BYTES.max(scanned as usize / 4);
    // Segments are answered one after another.
    let batches = params.segments().iter().map(|segment| largest_batch::<Cpu>(&segment.path(), room));
    batches.min().unwrap_or(1)
}

/// How the files of a table are read.
pub(crate) struct Reading<'a> {
    pub(crate) verify: Verify,
    /// Files that were checked before; then those of this table.
    pub(crate) verified: &'a mut Verified,
    pub(crate) memory: MemoryChoice,
    pub(crate) progress: &'a dyn Progress,
}

/// A table as it is stored.
pub(crate) struct Stored {
    snapshot: Snapshot,
    pub(crate) descriptor: Descriptor,
    pub(crate) params: TableParams,
    /// Files that are in memory, by their names in the snapshot.
    resident: HashMap<String, Arc<ResidentFile>>,
}

impl Stored {
    /// Opens a table of which nothing is read or checked yet.
    pub(crate) fn open(dir: &Path) -> Result<Self, OpenError> {
        let snapshot = Snapshot::open(dir, Verify::Header)?;
        let descriptor = snapshot.header().descriptor.clone();
        descriptor.check()?;
        let params = descriptor.params()?;
        Ok(Self { snapshot, descriptor, params, resident: HashMap::new() })
    }

    /// Reads into memory what a backend scans there, and is in content `on_host`, if there is room; checks all other files.
    pub(crate) fn load(
        &mut self,
        reading: &mut Reading<'_>,
        on_host: impl Fn(&Content) -> bool,
    ) -> Result<(), OpenError> {
        let segments = self.params.segments().iter().map(SegmentParams::files).enumerate();
        let scanned = segments.flat_map(|(segment, specs)| {
            let held = specs.into_iter().filter(|spec| spec.content.is_held() && on_host(&spec.content));
            held.map(move |spec| segment_file(segment, spec.name)).collect::<Vec<_>>()
        });
        let scanned: Vec<String> = scanned.collect();
        let files = || scanned.iter().filter_map(|name| self.snapshot.file(name));
        let checksums = |(entry, file): &(&FileEntry, &StoredFile)| {
            reading.verified.checksums(reading.verify, file, entry)
        };
        let missing = files().filter(|found| !found.1.is_resident(found.0, checksums(found)));
        let missing: u64 = missing.map(|(entry, _)| entry.bytes).sum();
        if !scanned.is_empty() && reading.memory.is_resident(missing, reading.progress)? {
            let read = files().map(|found| -> Result<_, OpenError> {
                let (entry, file) = found;
                Ok((entry.name.to_string(), file.read(entry, &[0..entry.bytes as usize], checksums(&found))?))
            });
            self.resident = read.collect::<Result<_, _>>()?;
        }
        if reading.verify == Verify::Full {
            let is_read = |entry: &FileEntry| self.resident.contains_key(&*entry.name);
            self.snapshot.verify(reading.verified, |entry| !is_read(entry))?;
            *reading.verified = self.snapshot.as_verified();
        }
        Ok(())
    }
}

/// Where a table goes: a backend, and its room there.
pub(crate) struct Berth<B> {
    pub(crate) backend: Arc<B>,
    pub(crate) place: Place,
    /// Held as long as the table.
    pub(crate) room: Option<Box<dyn Any + Send + Sync>>,
}

/// Makes a table resident, where one scan answers at most `max_batch` queries.
pub(crate) fn host<B: Hosting>(
    berth: Berth<B>,
    mut stored: Stored,
    max_batch: usize,
) -> Result<Arc<dyn Engine>, OpenError> {
    let served = stored.served(berth.place, max_batch)?;
    let (files, mapped) = stored.files(berth.place)?;
    let Stored { descriptor, .. } = stored;
    descriptor.protocol.visit(Host { berth, descriptor, served, files, mapped })
}

impl Stored {
    /// One of the files, unless it has been taken out.
    pub(crate) fn file(&self, name: &str) -> Option<(&FileEntry, &StoredFile)> {
        self.snapshot.file(name)
    }

    /// Takes one out.
    pub(crate) fn take(&mut self, name: &str) -> Result<(FileEntry, StoredFile), OpenError> {
        let entry = self.snapshot.file(name).map(|(entry, _)| entry.clone());
        let file = self.snapshot.take_file(name)?;
        Ok((entry.expect("it was there"), file))
    }

    /// What a server is told.
    pub(crate) fn served(&mut self, place: Place, max_batch: usize) -> Result<Served, OpenError> {
        let mut blobs = Vec::new();
        if let Some(compression) = &self.descriptor.compression {
            let file = Arc::new(self.snapshot.take_file(DICTIONARY_FILE)?.into_file());
            let BlobRef { blake3: hash, bytes } = compression.dictionary;
            blobs.push(Blob { hash, file, bytes });
        }
        for (segment, (hint, _)) in self.descriptor.given().enumerate() {
            let Some(hint) = hint else { continue };
            let file = Arc::new(self.snapshot.take_file(&segment_file(segment, HINT_FILE))?.into_file());
            blobs.push(Blob { hash: hint.blake3, file, bytes: hint.bytes });
        }
        let facts = self.params.facts();
        let keys = facts.keys.map(|set| KeySpec { preset: set.name().into(), bytes: facts.key_bytes, place });
        Ok(Served {
            descriptor_json: self.descriptor.to_json().into(),
            epoch: self.descriptor.epoch,
            asked: self.descriptor.asked(),
            records: self.descriptor.records,
            protocol: facts.protocol.name().into(),
            query: facts.query,
            answer_bytes: facts.answer_bytes,
            place,
            max_batch,
            keys,
            blobs,
        })
    }

    /// Takes the files of every segment out that a backend reads: those that are in memory, and the others mapped. Mapped files are
    /// read into the system's cache if the host scans them.
    pub(crate) fn files(&mut self, place: Place) -> Result<(Vec<Files>, MappedFiles), OpenError> {
        let mut mapped = MappedFiles::default();
        let specs: Vec<_> = self.params.segments().iter().map(SegmentParams::files).collect();
        let mut all = Vec::new();
        for (segment, specs) in specs.iter().enumerate() {
            let read = specs.iter().filter(|spec| spec.content.is_held());
            let files = read.map(|spec| -> Result<_, OpenError> {
                let name = segment_file(segment, spec.name);
                if let Some(file) = self.resident.remove(&name) {
                    return Ok((spec.name, file as DbBytes));
                }
                let file = Arc::new(self.snapshot.take(&name)?);
                mapped.push(file.clone());
                if place == Place::Cpu {
                    file.make_resident()?;
                }
                Ok((spec.name, file as DbBytes))
            });
            all.push(files.collect::<Result<_, _>>()?);
        }
        Ok((all, mapped))
    }
}

/// The files of a segment, by their names.
pub(crate) type Files = Vec<(&'static str, DbBytes)>;

/// Hosts a table of whichever page.
struct Host<B> {
    berth: Berth<B>,
    descriptor: Descriptor,
    served: Served,
    /// Of every segment.
    files: Vec<Files>,
    mapped: MappedFiles,
}

impl<B: Hosting> Visitor for Host<B> {
    type Output = Result<Arc<dyn Engine>, OpenError>;

    fn visit<P: Page>(self) -> Self::Output {
        let Self { berth, descriptor, served, files, mut mapped } = self;
        let (tables, seed) = (descriptor.tables::<P>()?, descriptor.public_seed());
        let table = Hosted::<P, B>::open_share(berth.backend, tables, seed, &Share::whole(), &files);
        // What was read of a file that is not whole any more is no table, whatever came of it.
        mapped.check()?;
        let table = table?;
        drop(files);
        mapped.forget_unused();
        Ok(Arc::new(HostedTable { table, served, mapped, _room: berth.room }))
    }
}

/// A table on a backend: what it says, and what answers.
struct HostedTable<P: Page, B: Hosting> {
    table: Hosted<P, B>,
    served: Served,
    /// What every scan reads where it is on disk.
    mapped: MappedFiles,
    /// Dropped after the table.
    _room: Option<Box<dyn Any + Send + Sync>>,
}

impl<P: Page, B: Hosting> HostedTable<P, B> {
    /// The error, by who is to blame: a query, the keys, the engine, or a device that has failed for good.
    fn judge(&self, error: ProtocolError) -> EngineError {
        match (error.into(), self.lost()) {
            (query @ EngineError::Query { .. }, _) => query,
            (_, Some(reason)) => EngineError::Lost { reason },
            (error, None) => error,
        }
    }
}

impl<P: Page, B: Hosting> Engine for HostedTable<P, B>
where
    B::Keys: 'static,
{
    fn served(&self) -> &Served {
        &self.served
    }

    fn open_keys(&self, body: &[u8]) -> Result<ClientKeys, EngineError> {
        let opened = self.table.share().open_keys(body).map_err(|error| match EngineError::of_keys(&error) {
            EngineError::Internal(_) => self.judge(error),
            refused => refused,
        });
        Ok(ClientKeys { place: self.served.place, keys: Arc::new(opened?) })
    }

    fn answer(
        &self,
        queries: &[wire::Query],
        keys: &[Option<ClientKeys>],
    ) -> Result<Vec<Vec<u8>>, EngineError> {
        let keys = self.served.keys_of(keys)?;
        let answers = self.table.answer(queries, &keys);
        // After the scan, and before anybody sees what came of it.
        self.mapped.check().map_err(|error| EngineError::Damaged { reason: error.to_string() })?;
        answers.map_err(|error| self.judge(error))
    }

    fn lost(&self) -> Option<String> {
        self.table.share().backend().lost()
    }

    fn damaged(&self) -> Option<String> {
        Some(self.mapped.check().err()?.to_string())
    }
}

#[cfg(test)]
mod tests {
    use hush_protocol::{Protocol, table::TableShape};

    use super::*;

    const MIB: usize = 1 << 20;

    /// Columns, blocks and bytes of a slot; how many queries fit, which is what 1 GiB or a quarter of the files holds.
    #[test]
    fn batches_are_as_large_as_memory_allows() {
        let (colpack, colpack_s) = (Protocol::Colpack, Protocol::ColpackS);
        let (large, small) = ("COLPACK_N2048_Q52", "INSECURE_COLPACK_N256");
        for (protocol, preset, (columns, blocks, slot_bytes), expected) in [
            // Many short entries, and the longest table that answers hold whole.
            (colpack, large, (1 << 16, 64, 4096), 64),
            (colpack, large, (1 << 10, 1 << 15, 60), 64),
            (colpack_s, large, (1 << 16, 1 << 12, 4096), 64),
            // The longest queries that the bound of failure allows: 64 of 8 MiB.
            (colpack, large, (1 << 21, 1, 1), 64),
            // One entry of 1 MiB: of each query 8 MiB of words, 16 MiB of chosen planes, the answer and its parts.
            (colpack, small, (1 << 10, 1, MIB), 32),
            (colpack_s, small, (1 << 10, 1, MIB), 64),
            // Words of 480 MiB, 197 MiB for the answer and its parts, and 15.9 GiB for all.
            (colpack_s, small, (64, 1 << 20, 60), 24),
            (Protocol::Hybrid, "PACK_M31", (1 << 15, 8, 4096), 8),
            (Protocol::Simple, "LWE_N1280_STD3_2_RING256", (1 << 15, 8, 4096), 64),
        ] {
            let shape = TableShape { columns, blocks, slot_bytes };
            let params = protocol.page().table(preset, shape).expect("within the limits");
            assert_eq!(host_batch(&params), expected, "{protocol}, {preset}, {shape:?}");
        }
    }
}
