//! A snapshot that comes from elsewhere in chunks: all of it, or some ranges.

pub(super) mod arriving;
pub(super) mod sparse;
