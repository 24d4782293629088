//! The return of an epoch that was kept.

use std::path::Path;

use hush_store::snapshot::{Header, KeptEpoch, SnapshotWriter};

use super::{BuildError, Signing, WRITTEN_BY, sign::seal};

/// Puts a kept epoch in the place of the table in `dir`. It is signed anew if `signing` is given: clients refuse the old serial.
///
/// # Errors
/// A file cannot be linked or copied; the errors of signing. The target is then unchanged.
pub fn put_back(
    dir: &Path,
    epoch: &KeptEpoch,
    signing: Option<&Signing>,
    writer: SnapshotWriter,
) -> Result<Header, BuildError> {
    let mut header = epoch.header.clone();
    for file in &header.files {
        writer.take_file(&epoch.path, file)?;
    }
    seal(&mut header.descriptor, signing, dir)?;
    header.written_by = WRITTEN_BY.into();
    writer.commit(&header)?;
    Ok(header)
}
