//! A snapshot that is open: its files in memory, or mapped.

pub(super) mod guard;
pub(super) mod mapped;
pub(super) mod reader;
pub(super) mod regular;
pub(super) mod resident;
pub(super) mod stored;
