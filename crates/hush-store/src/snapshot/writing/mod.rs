//! Writing a snapshot: in a folder beside the target, from which a killed build can be resumed.

pub(super) mod journal;
pub(super) mod lock;
pub(super) mod partial;
pub(super) mod phase;
pub(super) mod resume;
pub(super) mod segment;
pub(super) mod target;
pub(super) mod writer;
