//! The file in which a server keeps the evaluation keys of its clients.

use std::{
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use etcetera::BaseStrategy;
use hush_store::snapshot::{Snapshot, Verify};

/// Returns the given file, or the default one of this user if a table in `dirs` may need keys, and creates its folder. Otherwise
/// the user's folders are not touched.
pub(super) fn path(asked: Option<&Path>, dirs: &[PathBuf]) -> Result<Option<PathBuf>, String> {
    if let Some(asked) = asked {
        return Ok(Some(asked.to_owned()));
    }
    // The header of a remote table is not known yet.
    if !dirs.iter().any(|dir| dir.to_string_lossy().contains("://") || needs_keys(dir)) {
        return Ok(None);
    }
    let folder = folder()
        .ok_or("no home directory is known to keep the keys of clients in: choose a file with --keys")?;
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(|error| {
        format!("cannot keep the keys of clients in {}: {error}: choose a file with --keys", folder.display())
    })?;
    Ok(Some(folder.join("hushdb-keys.redb")))
}

/// Returns the default folder of this user for the file, if there is one.
pub(super) fn folder() -> Option<PathBuf> {
    Some(etcetera::choose_base_strategy().ok()?.state_dir()?.join("hushdb"))
}

/// Returns whether a table needs keys. A table that cannot be opened is reported when it is loaded.
fn needs_keys(dir: &Path) -> bool {
    let snapshot = Snapshot::open(dir, Verify::Header);
    snapshot.is_ok_and(|snapshot| {
        snapshot.header().descriptor.params().is_ok_and(|params| params.facts().keys.is_some())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_chosen_only_if_a_table_needs_it() {
        let nowhere = [PathBuf::from("/nowhere/at/all")];
        assert_eq!(path(None, &nowhere), Ok(None));
        assert_eq!(path(Some(Path::new("/keys")), &nowhere), Ok(Some("/keys".into())));
    }
}
