//! The partial folder of a build: its owner, and its permissions.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::Path,
};

use crate::snapshot::SnapshotError;

/// The mode of an unfinished table's folder: only the owner can read it.
const OWNER_ONLY: u32 = 0o700;
/// The bits of a mode that let users other than the owner write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Creates the folder, accessible to its owner only.
pub(in crate::snapshot) fn create(path: &Path) -> Result<(), SnapshotError> {
    let made = DirBuilder::new().mode(OWNER_ONLY).create(path);
    made.map_err(SnapshotError::io(path, "create the folder"))
}

/// Refuses anything at `path` except a folder that this user owns and no other user can write to. Files in another folder might
/// come from any user, and would become a table. A path at which there is nothing is accepted.
pub(in crate::snapshot) fn check(path: &Path) -> Result<(), SnapshotError> {
    // SAFETY: a system call without arguments that cannot fail.
    check_for(path, unsafe { libc::geteuid() })
}

fn check_for(path: &Path, user: u32) -> Result<(), SnapshotError> {
    let metadata = match fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        metadata => metadata.map_err(SnapshotError::io(path, "read"))?,
    };
    let reason = if metadata.is_symlink() {
        "is a symbolic link".into()
    } else if !metadata.is_dir() {
        "is not a folder".into()
    } else if metadata.uid() != user {
        format!("belongs to the user {}, not to {user}", metadata.uid())
    } else if metadata.mode() & WRITABLE_BY_OTHERS != 0 {
        format!("can be written by others (mode {:03o})", metadata.mode() & 0o777)
    } else {
        return Ok(());
    };
    Err(SnapshotError::NotOurs { path: path.to_owned(), reason })
}

/// Gives the folder the default mode of new folders, because readers of the finished table may be other users.
pub(in crate::snapshot) fn open_to_readers(path: &Path) -> Result<(), SnapshotError> {
    let failed = |action| SnapshotError::io(path, action);
    let sample = path.join(".mode");
    fs::create_dir(&sample).map_err(failed("create a folder in"))?;
    let permissions = fs::metadata(&sample).map(|metadata| metadata.permissions());
    fs::remove_dir(&sample).map_err(failed("remove a folder from"))?;
    let set = permissions.and_then(|permissions| fs::set_permissions(path, permissions));
    set.map_err(failed("set the mode of"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn refused(path: &Path, user: u32) -> String {
        check_for(path, user).unwrap_err().to_string()
    }

    #[test]
    fn only_a_folder_of_this_user_alone_is_gone_on_from() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("partial");
        let user = fs::metadata(dir.path()).unwrap().uid();
        check_for(&path, user).unwrap();
        create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, OWNER_ONLY);
        check_for(&path, user).unwrap();
        let message = refused(&path, user + 1);
        assert!(message.contains(&format!("belongs to the user {user}, not to {}", user + 1)), "{message}");
        assert!(message.contains("remove it"), "{message}");
        for mode in [0o720, 0o702, 0o777] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(refused(&path, user).contains(&format!("can be written by others (mode {mode:o})")));
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        check_for(&path, user).unwrap();
        let link = dir.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(refused(&link, user).contains("is a symbolic link"));
        let file = dir.path().join("file");
        fs::write(&file, b"").unwrap();
        assert!(refused(&file, user).contains("is not a folder"));
    }
}
