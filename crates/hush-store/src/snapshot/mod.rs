//! Snapshots: a table on disk, immutable, checked, content-addressed.
//!
//! See `crates/hush-store/README.md` for every file and field.

mod arriving;
mod changes;
mod checksum;
mod envelope;
mod error;
mod guard;
mod header;
mod journal;
mod kept;
mod lock;
mod mapped;
mod partial;
mod phase;
mod reader;
mod regular;
mod resident;
mod resume;
mod segment;
mod sparse;
mod stored;
mod target;
mod writer;

pub use arriving::{ArrivingSnapshot, Piece, Trust};
pub use changes::{CHANGES_FILE, ChangeCount, Changes};
pub use checksum::CHUNK_BYTES;
pub use error::SnapshotError;
pub use header::{Choice, FORMAT_VERSION, FileEntry, HEADER_FILE, Header, MAX_HEADER_BYTES};
pub use journal::Journal;
pub use kept::{KEYS_FILE, KeptRecords, VALUES_FILE, keys};
pub use mapped::MappedFile;
pub use phase::{Phase, SharedPhase};
pub use reader::{Snapshot, Verified, Verify};
pub use resident::{Checksums, ResidentFile};
pub use resume::{Identity, State};
pub use segment::{SegmentWriter, segment_file, segment_of};
pub use sparse::{Missing, SparseFolder};
pub use stored::{Stamp, StoredFile};
pub use writer::{MappedOutput, Release, Scratch, SnapshotWriter};

pub use hush_protocol::facts::{
    CHAIN_FILE, COLUMNS_FILE, DB_FILE, DICTIONARY_FILE, HINT_FILE, LIFTED_FILE, SECOND_DB_FILE,
};
