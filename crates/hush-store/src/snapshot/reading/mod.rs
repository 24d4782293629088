//! Reading a snapshot: opens its files, and maps them or reads them into memory.

pub(super) mod guard;
pub(super) mod mapped;
pub(super) mod reader;
pub(super) mod regular;
pub(super) mod resident;
pub(super) mod stored;
