//! Going on where a build of the same records was killed.

use hush_engine::Progress;
use hush_ingest::SpooledRecords;
use hush_store::snapshot::{FORMAT_VERSION, Identity, SnapshotWriter, State};

use super::{BuildError, BuildOptions, WRITTEN_BY};

/// Returns the identity of a build: all that the table depends on.
pub(super) fn identity(records: &SpooledRecords, by_key: bool, options: &BuildOptions) -> Identity {
    Identity {
        program: format!("{WRITTEN_BY}, snapshot format {FORMAT_VERSION}"),
        // Derived, so that no option is forgotten: parameter sets are there with all their numbers.
        options: format!("by key: {by_key}, {options:?}"),
        records: records.digest(),
    }
}

/// Returns the layout that a killed build left, if it was of the same identity.
pub(super) fn take_over(
    identity: &Identity,
    writer: &SnapshotWriter,
    progress: &dyn Progress,
) -> Result<Option<State>, BuildError> {
    let state = writer.take_over(identity, |bytes| progress.start("check", bytes, "bytes"))?;
    if let Some(state) = &state {
        let descriptor = &state.descriptor;
        progress.advance(state.file_bytes());
        progress.start("layout", descriptor.records, "records");
        progress.resume(descriptor.records);
    }
    Ok(state)
}
