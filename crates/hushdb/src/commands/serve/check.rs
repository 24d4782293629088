//! The check of `hushdb config check`: it opens what `serve` opens, by the same code, and closes it.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};
use tokio::runtime::Runtime;

use super::{
    ServeArgs,
    prepare::{prepare, tables_cache},
};
use crate::{commands::key_file, logs};

/// The folders and the lock file in the folder of `serve --data`.
const OF_DATA: [&str; 5] = ["", "lock", "tasks", "tables", "uploads"];

/// Checks whether a server with these settings could start, without lasting changes on disk. Returns what was not checked.
pub(crate) fn check(args: &ServeArgs) -> Result<Vec<String>, Box<dyn Error>> {
    let mut unchecked = Vec::new();
    let has_copies = args.dirs.iter().any(|dir| dir.to_string_lossy().contains("://"));
    let cache = args.cache.clone().or_else(tables_cache).filter(|_| has_copies);
    let data = args.data.iter().flat_map(|data| OF_DATA.map(|name| data.join(name)));
    let folders: Vec<PathBuf> = data.chain(cache.clone()).collect();
    // This value is dropped last: it removes the files and folders that `serve` would create.
    let _made = Footprint::of(folders.iter().cloned().chain(key_file::folder()));
    logs::check(args.otlp.as_deref())?;
    let prepared = Runtime::new()?.block_on(prepare(args, Some(&mut unchecked)))?;
    if let Some(cache) = &cache {
        fs::create_dir_all(cache)
            .map_err(|error| format!("cannot keep copies in {}: {error}", cache.display()))?;
    }
    folders.iter().filter(|folder| folder.is_dir()).try_for_each(|folder| check_writable(folder))?;
    prepared.folders.check(&mut unchecked)?;
    let config = &prepared.front.config;
    if !config.check_keys()?
        && let Some(path) = &config.keys_path
    {
        unchecked.push(format!("--keys {}: a server uses it", path.display()));
    }
    unchecked.extend(args.otlp.iter().map(|url| format!("--otlp {url}: the collector was not asked")));
    Ok(unchecked)
}

fn check_writable(folder: &Path) -> Result<(), String> {
    access(folder, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|error| format!("cannot write to {}: {error}: choose another folder", folder.display()))
}

/// The paths that do not exist yet. Paths that a check creates are removed when this value is dropped.
struct Footprint(Vec<PathBuf>);

impl Footprint {
    fn of(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let paths: Vec<PathBuf> = paths.into_iter().collect();
        let all = paths.iter().flat_map(|path| path.ancestors());
        let mut missing: Vec<PathBuf> = all.filter(|path| !path.exists()).map(Path::to_owned).collect();
        // The content of a folder is removed before the folder.
        missing.sort_unstable_by_key(|path| std::cmp::Reverse(path.components().count()));
        missing.dedup();
        Self(missing)
    }
}

impl Drop for Footprint {
    fn drop(&mut self) {
        for path in &self.0 {
            // A folder that has other content by now stays.
            let _ = fs::remove_dir(path).or_else(|_| fs::remove_file(path));
        }
    }
}
