//! Files that are written whole or not at all.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// Puts `text` in the place of the file at `path`, with the permissions `mode`.
///
/// # Errors
/// What the system says; the file is then as it was.
pub(crate) fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
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
