//! A stored table: its snapshot, and which of its files are in memory.

use std::{collections::HashMap, path::Path, sync::Arc};

use hush_ops::tiling::DbBytes;
use hush_protocol::{
    any_page::{SegmentParams, TableParams},
    descriptor::{BlobRef, Descriptor},
    facts::{ADDED_FENCES_FILE, DICTIONARY_FILE, FENCES_FILE, HINT_FILE},
    sorted::Sorted,
};
use hush_store::snapshot::{FileEntry, ResidentFile, Snapshot, StoredFile, Verified, Verify, segment_file};

use crate::{
    Blob, KeySpec, MemoryChoice, OpenError, Placement, Progress, Served, memory::mapped_files::MappedFiles,
};

/// The options for reading the files of a table.
pub(crate) struct Reading<'a> {
    pub(crate) verify: Verify,
    /// The files that were checked before; afterwards, those of this table.
    pub(crate) verified: &'a mut Verified,
    pub(crate) memory: MemoryChoice,
    pub(crate) progress: &'a dyn Progress,
}

/// A table as it is stored.
pub(crate) struct Stored {
    snapshot: Snapshot,
    pub(crate) descriptor: Descriptor,
    pub(crate) params: TableParams,
    /// The files that are in memory, by their names in the snapshot.
    resident: HashMap<String, Arc<ResidentFile>>,
}

impl Stored {
    /// Opens a table, without reading or checking any file yet.
    pub(crate) fn open(dir: &Path) -> Result<Self, OpenError> {
        let snapshot = Snapshot::open(dir, Verify::Header)?;
        let descriptor = snapshot.header().descriptor.clone();
        descriptor.check()?;
        let params = descriptor.params()?;
        Ok(Self { snapshot, descriptor, params, resident: HashMap::new() })
    }

    /// Reads the files that the host reads for every batch into memory, if there is enough. Checks all other files.
    pub(crate) fn load(&mut self, reading: &mut Reading<'_>, placement: &Placement) -> Result<(), OpenError> {
        let segments = self.params.segments().iter().map(SegmentParams::files).enumerate();
        let scanned = segments.flat_map(|(segment, specs)| {
            let held = specs
                .into_iter()
                .filter(|spec| spec.content.is_held() && placement.is_read_by_host(&spec.content));
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
            let resident = &self.resident;
            self.snapshot.verify(reading.verified, |entry| !resident.contains_key(&*entry.name))?;
            *reading.verified = self.snapshot.as_verified();
        }
        Ok(())
    }

    /// Returns a file, unless it has been taken out.
    pub(crate) fn file(&self, name: &str) -> Option<(&FileEntry, &StoredFile)> {
        self.snapshot.file(name)
    }

    /// Takes a file out.
    pub(crate) fn take(&mut self, name: &str) -> Result<(FileEntry, StoredFile), OpenError> {
        let entry = self.snapshot.file(name).map(|(entry, _)| entry.clone());
        let file = self.snapshot.take_file(name)?;
        Ok((entry.expect("it was there"), file))
    }

    /// Returns the properties of the table that a server needs, and takes out the files that clients download.
    pub(crate) fn served(&mut self, placement: Placement, max_batch: usize) -> Result<Served, OpenError> {
        let mut blobs = Vec::new();
        if let Some(compression) = &self.descriptor.compression {
            let BlobRef { blake3: hash, bytes } = compression.dictionary;
            blobs.push(Blob::new(hash, self.snapshot.take_file(DICTIONARY_FILE)?.into_file(), bytes));
        }
        let sorted = self.descriptor.sorted.iter().flat_map(Sorted::files);
        for (file, name) in sorted.zip([FENCES_FILE, ADDED_FENCES_FILE]) {
            let BlobRef { blake3: hash, bytes } = file.blob;
            blobs.push(Blob::new(hash, self.snapshot.take_file(name)?.into_file(), bytes));
        }
        for (segment, (hint, _)) in self.descriptor.given().enumerate() {
            let Some(hint) = hint else { continue };
            let file = self.snapshot.take_file(&segment_file(segment, HINT_FILE))?.into_file();
            blobs.push(Blob::new(hint.blake3, file, hint.bytes));
        }
        let facts = self.params.facts();
        let keys = facts.keys.map(|set| KeySpec {
            preset: set.name().into(),
            bytes: facts.key_bytes,
            devices: placement.devices(),
        });
        Ok(Served {
            descriptor_json: self.descriptor.to_json().into(),
            epoch: self.descriptor.epoch,
            asked: self.descriptor.asked(),
            records: self.descriptor.rows(),
            protocol: facts.protocol.name().into(),
            query: facts.query,
            answer_bytes: facts.answer_bytes,
            placement,
            max_batch,
            keys,
            blobs,
        })
    }

    /// Takes out the files of every segment that a backend reads: from memory if they are there, else mapped. Mapped files are
    /// read into the system's cache if the host scans them.
    pub(crate) fn files(&mut self, placement: &Placement) -> Result<(Vec<Files>, MappedFiles), OpenError> {
        let mapped = MappedFiles::default();
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
                if placement.is_on_cpu() {
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
