//! Copies of a snapshot that are fetched in chunks: of the whole snapshot, or of some ranges.

pub(super) mod arriving;
pub(super) mod sparse;
