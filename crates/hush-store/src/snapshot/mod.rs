//! Snapshots: a table on disk, immutable, checked, content-addressed.
//!
//! See `crates/hush-store/README.md` for every file and field.

mod checksum;
mod envelope;
mod error;
mod header;
mod journal;
mod phase;
mod reader;
mod resume;
mod writer;

pub use checksum::CHUNK_BYTES;
pub use error::SnapshotError;
pub use header::{FORMAT_VERSION, FileEntry, HEADER_FILE, Header};
pub use journal::Journal;
pub use phase::{Phase, SharedPhase};
pub use reader::{MappedFile, Snapshot, Verify};
pub use resume::{Identity, State};
pub use writer::{MappedOutput, Scratch, SnapshotWriter};

/// The database of the first fold, tiled.
pub const DB_FILE: &str = "db.bin";
/// The database of DoublePIR's second fold, tiled.
pub const SECOND_DB_FILE: &str = "db2.bin";
/// The hint that clients download.
pub const HINT_FILE: &str = "hint.bin";
/// The hint in evaluation form, where answers are packed.
pub const LIFTED_FILE: &str = "lifted.bin";
/// Name of the pack columns, of column packing.
pub const COLUMNS_FILE: &str = "columns.bin";
/// Name of the polynomials of the chain, of column packing.
pub const CHAIN_FILE: &str = "chain.bin";
