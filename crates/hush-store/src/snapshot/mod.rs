//! Snapshots: tables on disk. A snapshot is immutable, checksummed, and content-addressed.
//!
//! See `crates/hush-store/README.md` for every file and field.

mod changes;
mod checksum;
mod copies;
mod envelope;
mod epochs;
mod error;
mod header;
mod kept;
mod reading;
mod system;
mod writing;

pub use changes::{CHANGES_FILE, ChangeCount, Changes};
pub use checksum::CHUNK_BYTES;
pub use copies::arriving::{ArrivingSnapshot, Piece, Trust};
pub use copies::sparse::{Missing, SparseFolder};
pub use epochs::{CopyBeside, KeptEpoch, keep_epoch, kept_epochs};
pub use error::SnapshotError;
pub use header::{
    Choice, FORMAT_VERSION, FileEntry, FollowedPosition, HEADER_FILE, Header, MAX_HEADER_BYTES,
};
pub use kept::{KEYS_FILE, KeptRecords, VALUES_FILE, keys};
pub use reading::mapped::MappedFile;
pub use reading::reader::{Snapshot, Verified, Verify};
pub use reading::resident::{Checksums, ResidentFile};
pub use reading::stored::{Stamp, StoredFile};
pub use writing::journal::Journal;
pub use writing::phase::{Phase, SharedPhase};
pub use writing::resume::{Identity, State};
pub use writing::segment::{SegmentWriter, segment_file, segment_of};
pub use writing::writer::{MappedOutput, Release, Scratch, SnapshotWriter};

pub use hush_protocol::facts::{
    ADDED_FENCES_FILE, CHAIN_FILE, COLUMNS_FILE, DB_FILE, DICTIONARY_FILE, FENCES_FILE, HINT_FILE,
    LIFTED_FILE, SECOND_DB_FILE,
};
