//! A snapshot that is made beside its place, and goes on after a kill.

pub(super) mod journal;
pub(super) mod lock;
pub(super) mod partial;
pub(super) mod phase;
pub(super) mod resume;
pub(super) mod segment;
pub(super) mod target;
pub(super) mod writer;
