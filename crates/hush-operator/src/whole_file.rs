//! Files that are written whole or not at all.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::{FlockOperation, flock};

/// Puts `text` in the place of the file at `path`, with the permissions `mode`.
///
/// # Errors
/// What the system says; the file is then as it was.
pub fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let partial = path.with_extension(format!("{}.partial", std::process::id()));
    let mut options = OpenOptions::new();
    let written = options.write(true).create_new(true).mode(mode).open(&partial).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&partial, path)
    });
    if written.is_err() {
        // What failed is told; that there is nothing to remove is no news.
        let _ = fs::remove_file(&partial);
    }
    written
}

/// Keeps others from changing the file at `path` while this lives: what is read, changed and written in between is not lost.
pub fn lock(path: &Path) -> Result<File, String> {
    let beside = path.with_added_extension("lock");
    let lock = File::create(&beside).and_then(|file| {
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    });
    lock.map_err(|error| {
        format!("cannot change {}, for want of {}: {error}", path.display(), beside.display())
    })
}
