//! The header of a snapshot: `header.json`.

use std::{
    collections::{BTreeMap, HashSet},
    io::{ErrorKind, Read},
    path::Path,
};

use hush_protocol::{Name, descriptor::Descriptor};
use serde::{Deserialize, Serialize};

use crate::cancel::{Cancel, Cancelled};
use crate::snapshot::{CHUNK_BYTES, ChangeCount, SnapshotError, envelope, reading::regular};

/// The name of the header file.
pub const HEADER_FILE: &str = "header.json";
/// The version of the snapshot format.
pub const FORMAT_VERSION: u32 = 2;
/// The maximum bytes of a header that is read.
pub const MAX_HEADER_BYTES: u64 = 256 << 20;

/// The header of a snapshot.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Header {
    /// The version of the format, [`FORMAT_VERSION`].
    pub version: u32,
    /// The program that wrote the snapshot.
    pub written_by: String,
    /// The descriptor, for clients.
    pub descriptor: Descriptor,
    /// The bytes of all values before encoding.
    pub payload_bytes: u64,
    /// The name of the input, without its folder.
    pub source: String,
    /// The reasons for this table, if there was a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// The count of changes, in a table that has room for changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<ChangeCount>,
    /// The position up to which the changes of a database are in the table, if it follows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub followed: Option<FollowedPosition>,
    /// The other files.
    pub files: Vec<FileEntry>,
    /// In an object store: the names of the files' objects, where they differ from the names of the files. On a disk it is always
    /// empty.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub objects: BTreeMap<Name, Name>,
}

/// A position in the changes of a database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowedPosition {
    /// The name of the replication slot; `None` of a table that was built from the database, and has followed no slot yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
    /// The number of the table within the database; 0 of a table that was built.
    #[serde(default)]
    pub relation: u32,
    /// The position.
    pub position: u64,
}

/// The reasons for the choice of a table, for people: what it was planned for, what was chosen, and the next best.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The goal of the choice.
    pub goal: String,
    /// The machine by whose times tables were judged.
    pub machine: String,
    /// The size of the table and of its look-ups.
    pub chosen: String,
    /// The next best table of another protocol, with its size and its look-ups, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A file of a snapshot, with its checksums.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// The name within the folder.
    pub name: Name,
    /// The length in bytes.
    pub bytes: u64,
    /// The bytes that each checksum covers.
    pub chunk_bytes: u64,
    /// The BLAKE3 hashes of all chunks, 32 bytes each, one after another. In JSON they are hex.
    #[serde(with = "hex")]
    pub chunks: Vec<u8>,
}

impl FileEntry {
    /// Creates the entry of a file that holds `content`.
    pub(super) fn new(name: &Name, content: &[u8], cancel: &Cancel) -> Result<Self, Cancelled> {
        let hashes = super::checksum::chunk_hashes(content, cancel)?;
        let chunks = hashes.iter().flat_map(|hash| *hash.as_bytes()).collect();
        Ok(Self { name: name.clone(), bytes: content.len() as u64, chunk_bytes: CHUNK_BYTES as u64, chunks })
    }

    /// Returns one hash for the whole content: the BLAKE3 hash of the checksums.
    pub fn digest(&self) -> [u8; 32] {
        *blake3::hash(&self.chunks).as_bytes()
    }

    /// Checks that there is one checksum for every chunk.
    fn check(&self) -> Result<(), String> {
        let chunks = self.bytes.div_ceil(CHUNK_BYTES as u64);
        if self.chunk_bytes != CHUNK_BYTES as u64 || chunks * 32 != self.chunks.len() as u64 {
            return Err(format!("the checksums of {} do not fit its length", self.name));
        }
        Ok(())
    }

    /// Returns the range of bytes in chunk number `chunk`.
    pub(super) fn chunk(&self, chunk: usize) -> std::ops::Range<usize> {
        let end = self.bytes as usize;
        (chunk * CHUNK_BYTES).min(end)..((chunk + 1) * CHUNK_BYTES).min(end)
    }

    /// Returns the checksums of the chunks, in order.
    pub(super) fn hashes(&self) -> &[[u8; 32]] {
        self.chunks.as_chunks().0
    }
}

impl Header {
    /// Returns the text of `header.json`.
    pub fn to_text(&self) -> String {
        envelope::close(self)
    }

    /// Reads and checks the header of the snapshot in `dir`.
    pub(super) fn read(dir: &Path) -> Result<Self, SnapshotError> {
        let path = dir.join(HEADER_FILE);
        let file = regular::open(&path).map_err(|error| match error {
            SnapshotError::Io { source, .. }
                if matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                SnapshotError::Missing { path: dir.to_owned() }
            }
            error => error,
        })?;
        let length = file.metadata().map_err(SnapshotError::io(&path, "read"))?.len();
        if length > MAX_HEADER_BYTES {
            return Err(SnapshotError::Header { path, reason: format!("{length} bytes is no header") });
        }
        let mut bytes = Vec::with_capacity(length as usize);
        file.take(MAX_HEADER_BYTES).read_to_end(&mut bytes).map_err(SnapshotError::io(&path, "read"))?;
        let header = Self::parse(&bytes, &path)?;
        if header.objects.is_empty() {
            return Ok(header);
        }
        Err(SnapshotError::InStore { path })
    }

    /// Parses the content of `header.json`. `path` is used in messages only.
    ///
    /// # Errors
    /// [`SnapshotError::Header`] if the content is damaged; [`SnapshotError::Version`] if it has another format version.
    pub fn parse(content: &[u8], path: &Path) -> Result<Self, SnapshotError> {
        let damaged = |reason: String| SnapshotError::Header { path: path.to_owned(), reason };
        let text = str::from_utf8(content).map_err(|e| damaged(e.to_string()))?;
        let body = envelope::open(text).map_err(damaged)?;
        #[derive(Deserialize)]
        struct Version {
            version: u64,
        }
        let Version { version } = serde_json::from_str(body).map_err(|e| damaged(e.to_string()))?;
        if version != u64::from(FORMAT_VERSION) {
            let path = path.to_owned();
            return Err(SnapshotError::Version { path, expected: FORMAT_VERSION, actual: version });
        }
        let header: Self = serde_json::from_str(body).map_err(|e| damaged(e.to_string()))?;
        header.check().map_err(damaged)?;
        Ok(header)
    }

    /// Checks that the names of the listed files are distinct and not the header's, and that every file has all its checksums.
    fn check(&self) -> Result<(), String> {
        let mut names = HashSet::from([HEADER_FILE]);
        for file in &self.files {
            if !names.insert(&file.name) {
                return Err(format!("it lists {} as a file of its own, or twice", file.name));
            }
            file.check()?;
        }
        Ok(())
    }
}
