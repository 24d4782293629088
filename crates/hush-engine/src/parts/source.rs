//! The place of a table in parts: a folder, or an object store or web server, of which the ranges that are read are fetched.

use std::{
    ops::Range,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use hush_ops::tiling::DbBytes;
use hush_protocol::{
    ProtocolError,
    any_page::SegmentParams,
    descriptor::Descriptor,
    facts::{ADDED_FENCES_FILE, DICTIONARY_FILE, FENCES_FILE, HINT_FILE},
    page::Files,
};
use hush_store::snapshot::{
    Checksums, FileEntry, MappedFile, ResidentFile, Snapshot, StoredFile, Verified, Verify, segment_file,
};

use crate::{MemoryChoice, OpenError, Silent, memory::mapped_files::MappedFiles, stored::Stored};

/// The place of a table.
#[derive(Clone)]
pub enum Source {
    /// A folder, and how much of the data read from it is checked.
    Folder(PathBuf, Verify),
    /// A remote table.
    Remote(Arc<dyn RemoteTable>),
}

/// A remote table, of which ranges of files are fetched to a local folder before they are read.
pub trait RemoteTable: Send + Sync {
    /// Returns the descriptor of the table that is there now.
    ///
    /// # Errors
    /// [`OpenError::Fetch`] if the table cannot be reached.
    fn descriptor(&self) -> Result<Descriptor, OpenError>;

    /// Opens the local folder of the table that is there now, or creates it.
    ///
    /// # Errors
    /// [`OpenError::Fetch`] if the table cannot be reached.
    fn begin(&self) -> Result<Box<dyn SparseFiles>, OpenError>;
}

/// A folder with the files of a table, each in its full length, with holes where nothing has been fetched yet.
pub trait SparseFiles: Send + Sync {
    /// Returns the folder.
    fn folder(&self) -> &Path;

    /// Fetches the missing bytes of some ranges of a file, and checks them.
    ///
    /// # Errors
    /// [`OpenError::Fetch`] if bytes cannot be fetched.
    fn bring(&self, entry: &FileEntry, ranges: &[Range<usize>]) -> Result<(), OpenError>;

    /// Removes the folders of older epochs.
    fn forget_others(&self);
}

impl Source {
    /// Returns the descriptor of the table that is there now.
    ///
    /// # Errors
    /// [`OpenError`] names the file and the reason.
    pub fn descriptor(&self) -> Result<Descriptor, OpenError> {
        match self {
            Self::Folder(dir, _) => Ok(Snapshot::open(dir, Verify::Header)?.header().descriptor.clone()),
            Self::Remote(table) => table.descriptor(),
        }
    }

    /// Opens the table, without reading any file yet.
    pub(super) fn open(&self) -> Result<Opened, OpenError> {
        let (dir, from) = match self {
            Self::Folder(dir, verify) => (dir.clone(), From::Folder(*verify)),
            Self::Remote(table) => {
                let files = table.begin()?;
                (files.folder().to_owned(), From::Remote(files))
            }
        };
        let stored = Stored::open(&dir)?;
        Ok(Opened { stored, from: Arc::new(from), mapped: MappedFiles::default() })
    }
}

/// A table of which no file has been read.
pub(super) struct Opened {
    pub(super) stored: Stored,
    from: Arc<From>,
    mapped: MappedFiles,
}

impl Opened {
    /// Returns the files of every segment. Nothing is read before a page asks for it, and then it is kept in memory as `memory`
    /// says.
    pub(super) fn files(&mut self, memory: MemoryChoice) -> Result<Vec<SegmentFiles>, OpenError> {
        let specs: Vec<_> = self.stored.params.segments().iter().map(SegmentParams::files).collect();
        let mut all = Vec::new();
        for (segment, specs) in specs.iter().enumerate() {
            let held = specs.iter().filter(|spec| spec.content.is_held());
            let files = held.map(|spec| -> Result<_, OpenError> {
                let (entry, file) = self.stored.take(&segment_file(segment, spec.name))?;
                Ok(SegmentFile { name: spec.name, entry, file })
            });
            all.push(SegmentFiles {
                files: files.collect::<Result<_, _>>()?,
                from: self.from.clone(),
                memory,
                read: Mutex::default(),
                mapped: self.mapped.clone(),
            });
        }
        Ok(all)
    }

    /// Returns the files that have been mapped until now.
    pub(super) fn mapped(&self) -> MappedFiles {
        self.mapped.clone()
    }

    /// Fetches and checks the files that clients may download, whole.
    pub(super) fn bring_blobs(&self) -> Result<(), OpenError> {
        let hints = (0..self.stored.params.segments().len()).map(|segment| segment_file(segment, HINT_FILE));
        for name in hints.chain([DICTIONARY_FILE, FENCES_FILE, ADDED_FENCES_FILE].map(String::from)) {
            if let Some((entry, file)) = self.stored.file(&name) {
                self.from.bring(entry, file, &[0..entry.bytes as usize])?;
            }
        }
        Ok(())
    }

    /// Removes the local files of other epochs, once this one is open.
    pub(super) fn forget_others(&self) {
        if let From::Remote(files) = &*self.from {
            files.forget_others();
        }
    }
}

/// The origin of bytes, which decides what is done before they are read.
enum From {
    /// The bytes are in a folder, and are checked to this extent.
    Folder(Verify),
    /// The bytes are fetched, and checked as they arrive.
    Remote(Box<dyn SparseFiles>),
}

impl From {
    /// Fetches some ranges of a file if they are remote, and checks them.
    fn bring(&self, entry: &FileEntry, file: &StoredFile, ranges: &[Range<usize>]) -> Result<(), OpenError> {
        match self.arrived(entry, file, ranges)? {
            Checksums::Compare => Ok(file.verify(entry, ranges)?),
            Checksums::Skip | Checksums::Known | Checksums::Fetched => Ok(()),
        }
    }

    /// Fetches some ranges of a file if they are remote, and returns what is left to be done about their checksums.
    fn arrived(
        &self,
        entry: &FileEntry,
        file: &StoredFile,
        ranges: &[Range<usize>],
    ) -> Result<Checksums, OpenError> {
        match self {
            Self::Folder(verify) => Ok(Verified::default().checksums(*verify, file, entry)),
            Self::Remote(files) => {
                files.bring(entry, ranges)?;
                Ok(Checksums::Fetched)
            }
        }
    }

    /// Maps a file.
    fn map(&self, file: &StoredFile) -> Result<MappedFile, OpenError> {
        let mapped = file.again()?.map()?;
        match self {
            Self::Folder(_) => Ok(mapped),
            Self::Remote(_) => Ok(mapped.filled_by_others()),
        }
    }
}

struct SegmentFile {
    name: &'static str,
    entry: FileEntry,
    file: StoredFile,
}

/// The files of a segment; ranges are fetched before they are read.
pub(super) struct SegmentFiles {
    files: Vec<SegmentFile>,
    from: Arc<From>,
    memory: MemoryChoice,
    /// The files that are in memory by now, kept so that later readers share them.
    read: Mutex<Vec<Arc<ResidentFile>>>,
    mapped: MappedFiles,
}

impl Files for SegmentFiles {
    type Error = OpenError;

    fn bytes(&self, name: &'static str) -> Result<DbBytes, OpenError> {
        self.part(name, &[0..usize::MAX])
    }

    fn part(&self, name: &'static str, ranges: &[Range<usize>]) -> Result<DbBytes, OpenError> {
        let found = self.files.iter().find(|file| file.name == name);
        let SegmentFile { entry, file, .. } =
            found.ok_or_else(|| ProtocolError::Descriptor(format!("the table has no file {name}")))?;
        let end = entry.bytes as usize;
        let ranges: Vec<_> =
            ranges.iter().map(|range: &Range<usize>| range.start.min(end)..range.end.min(end)).collect();
        let checksums = self.from.arrived(entry, file, &ranges)?;
        // A page copies several ranges, and reads a single one in place.
        if let [range] = &ranges[..]
            && self.memory.is_resident(range.len() as u64, &Silent)?
        {
            let read = file.read(entry, &ranges, checksums)?;
            self.read.lock().unwrap_or_else(PoisonError::into_inner).push(read.clone());
            return Ok(read);
        }
        if checksums == Checksums::Compare {
            file.verify(entry, &ranges)?;
        }
        let file = Arc::new(self.from.map(file)?);
        self.mapped.push(file.clone());
        // The first query is then as fast as the next.
        ranges.iter().try_for_each(|range| file.make_part_resident(range.clone()))?;
        Ok(file)
    }
}
