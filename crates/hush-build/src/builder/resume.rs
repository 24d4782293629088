//! Resumes a killed build of the same records.

use hush_engine::Progress;
use hush_ingest::SpooledRecords;
use hush_store::snapshot::{FORMAT_VERSION, Identity, SnapshotWriter, State};

use super::{BuildError, BuildOptions, WRITTEN_BY};

/// Returns the identity of a build: everything that the table depends on.
pub(super) fn identity(records: &SpooledRecords, by_key: bool, options: &BuildOptions) -> Identity {
    Identity {
        program: format!("{WRITTEN_BY}, snapshot format {FORMAT_VERSION}"),
        // `Debug` is derived, so that no option is forgotten: parameter sets are included with all their numbers.
        options: format!("by key: {by_key}, {options:?}"),
        records: records.digest(),
    }
}

/// Returns the saved layout of a killed build, if that build had the same identity.
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
