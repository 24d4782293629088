//! Checks of the folder that a snapshot replaces, before any work: its path, and whether it can be replaced.

use std::{
    ffi::CString,
    fs, io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use crate::snapshot::{HEADER_FILE, SnapshotError, system};

/// The mode bit of a folder in which only owners can rename their files.
const STICKY: u32 = 0o1000;

/// Returns the absolute path of the folder at `target`. A link is followed, so that the link stays and its folder is replaced.
///
/// # Errors
/// [`SnapshotError::DanglingLink`] if a link leads nowhere; the system's error, with the path.
pub(in crate::snapshot) fn resolved(target: &Path) -> Result<PathBuf, SnapshotError> {
    match target.canonicalize() {
        Ok(folder) => return Ok(folder),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
        Err(error) => return Err(SnapshotError::io(target, "resolve")(error)),
    }
    let absolute = std::path::absolute(target).map_err(SnapshotError::io(target, "resolve"))?;
    // The path has no slash at the end, because a slash would follow a link.
    let absolute: PathBuf = absolute.components().collect();
    match fs::read_link(&absolute) {
        Ok(to) => Err(SnapshotError::DanglingLink { path: target.to_owned(), to }),
        Err(_) => Ok(absolute),
    }
}

/// Refuses a resolved target that cannot be replaced, or whose content must not be. `shown` is the path for messages.
pub(in crate::snapshot) fn check(target: &Path, shown: &Path, force: bool) -> Result<(), SnapshotError> {
    let unreadable = |source| SnapshotError::io(shown, "read")(source);
    if target.exists() {
        if is_mount_point(target).map_err(unreadable)? {
            return Err(SnapshotError::MountPoint(shown.to_owned()));
        }
        check_content(target, shown, force)?;
    }
    let folder = target.ancestors().skip(1).find(|folder| folder.exists());
    let folder = folder.ok_or_else(|| SnapshotError::MountPoint(shown.to_owned()))?;
    let refused = |source| SnapshotError::Unwritable { path: folder.to_owned(), source };
    check_writable(folder).map_err(refused)?;
    if target.exists() {
        // SAFETY: a system call without arguments that cannot fail.
        let user = unsafe { libc::geteuid() };
        let [outer, own] = [folder, target].map(|path| path.metadata().map_err(unreadable));
        let outer = outer?;
        let own = own?;
        if outer.mode() & STICKY != 0 && ![0, outer.uid(), own.uid()].contains(&user) {
            return Err(refused(io::Error::from_raw_os_error(libc::EPERM)));
        }
    }
    Ok(())
}

/// Refuses anything at `target` except a snapshot that may be replaced, or an empty folder.
fn check_content(target: &Path, shown: &Path, force: bool) -> Result<(), SnapshotError> {
    let is_snapshot = target.join(HEADER_FILE).is_file();
    let is_empty_dir =
        target.is_dir() && fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_none());
    match (is_snapshot || is_empty_dir, force || is_empty_dir) {
        (false, _) => Err(SnapshotError::NotASnapshot(shown.to_owned())),
        (true, false) => Err(SnapshotError::Exists(shown.to_owned())),
        (true, true) => Ok(()),
    }
}

/// Returns whether a file system is mounted at `path`: such a folder cannot be renamed.
fn is_mount_point(path: &Path) -> io::Result<bool> {
    if let Some(is_mounted) = system::is_mount_root(path) {
        return Ok(is_mounted);
    }
    // A folder on another file system than its parent is a mount point.
    let outside = path.parent().map(Path::metadata).transpose()?;
    let device = path.metadata()?.dev();
    Ok(outside.is_none_or(|outside| outside.dev() != device))
}

/// Refuses a folder in which this user cannot create files.
fn check_writable(folder: &Path) -> io::Result<()> {
    let name = CString::new(folder.as_os_str().as_bytes()).map_err(io::Error::other)?;
    let wanted = libc::W_OK | libc::X_OK;
    if !folder.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::ENOTDIR));
    }
    // SAFETY: the name is a terminated string that lives through the call.
    match unsafe { libc::faccessat(libc::AT_FDCWD, name.as_ptr(), wanted, libc::AT_EACCESS) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
