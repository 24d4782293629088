//! The tables that a server keeps: a folder for each, in it a folder for each task that built it, and the name of the served build.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use hush_protocol::Name;
use hush_server::{KeptBuild, OperatorError};
use hush_store::{
    durable::{create_folders, sync_folder},
    snapshot::{Snapshot, Verify},
    whole_file,
};

/// The file that names the build that is served.
const CURRENT: &str = "current";

/// The folder of the kept tables.
pub(super) struct Kept(PathBuf);

impl Kept {
    pub(super) fn new(root: PathBuf) -> io::Result<Self> {
        create_folders(&root)?;
        for entry in fs::read_dir(&root)?.flatten() {
            if let Err(error) = Name::last_of(&entry.path()) {
                tracing::warn!(%error, "a folder of the data folder cannot be a table: rename it");
            }
        }
        Ok(Self(root))
    }

    /// Returns the names of the kept tables, sorted.
    pub(super) fn tables(&self) -> Vec<Name> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let mut names: Vec<Name> = entries.filter_map(|entry| Name::last_of(&entry.path()).ok()).collect();
        names.sort_unstable();
        names
    }

    pub(super) fn has(&self, table: &Name) -> bool {
        self.0.join(table).is_dir()
    }

    /// Returns the folder for the build of a task. Creates the table's folder around it.
    pub(super) fn place(&self, table: &Name, task: u64) -> io::Result<PathBuf> {
        create_folders(&self.0.join(table))?;
        Ok(self.dir(table, task))
    }

    /// Returns the folder in which a task changes a build: a copy of the build `from`, made of hard links. `from` stays as it is.
    pub(super) fn copy(&self, table: &Name, from: u64, task: u64) -> io::Result<PathBuf> {
        let from = self.dir(table, from);
        let to = self.dir(table, task);
        let epoch = |dir: &Path| {
            Snapshot::open(dir, Verify::Header).ok().map(|snapshot| snapshot.header().descriptor.epoch)
        };
        // The server may have stopped when the table was changed and not yet served.
        if epoch(&to).is_some_and(|changed| epoch(&from) != Some(changed)) {
            return Ok(to);
        }
        if to.exists() {
            fs::remove_dir_all(&to)?;
        }
        fs::create_dir(&to)?;
        for file in fs::read_dir(&from)? {
            let file = file?;
            fs::hard_link(file.path(), to.join(file.file_name()))?;
        }
        Ok(to)
    }

    pub(super) fn dir(&self, table: &Name, task: u64) -> PathBuf {
        self.0.join(table).join(task.to_string())
    }

    /// Returns the build that is served, or would be if the server could load it.
    pub(super) fn current(&self, table: &Name) -> Option<u64> {
        fs::read_to_string(self.0.join(table).join(CURRENT)).ok()?.trim().parse().ok()
    }

    pub(super) fn set_current(&self, table: &Name, task: Option<u64>) -> io::Result<()> {
        let path = self.0.join(table).join(CURRENT);
        match task {
            Some(task) => whole_file::write(&path, &format!("{task}\n"), 0o644),
            None if path.exists() => fs::remove_file(&path).and_then(|()| sync_folder(&self.0.join(table))),
            None => Ok(()),
        }
    }

    /// Returns the builds of a table that are kept, newest first.
    pub(super) fn builds(&self, table: &Name) -> Vec<KeptBuild> {
        let mut tasks = self.tasks(table);
        tasks.sort_unstable_by(|one, other| other.cmp(one));
        tasks.into_iter().filter_map(|task| kept(&self.dir(table, task), task)).collect()
    }

    fn tasks(&self, table: &Name) -> Vec<u64> {
        let entries = fs::read_dir(self.0.join(table)).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }

    /// Returns the build of an epoch, or the newest. The error lists the epochs that are kept.
    pub(super) fn find(&self, table: &Name, epoch: Option<&str>) -> Result<u64, OperatorError> {
        let builds = self.builds(table);
        let found = builds.iter().find(|build| epoch.is_none_or(|epoch| build.epoch == epoch));
        found.map(|build| build.task).ok_or_else(|| {
            let epochs: Vec<_> = builds.into_iter().map(|build| build.epoch).collect();
            let there = if epochs.is_empty() { "nothing".into() } else { epochs.join(", ") };
            OperatorError::Refused(format!("of the table {table} there is {there}"))
        })
    }

    /// Removes all builds except the served one and one to go back to: that which was served `before`, or the newest. What a stop
    /// left of a build or beside it is removed, too. No other task may be at work on the table.
    pub(super) fn prune(&self, table: &Name, before: Option<u64>) {
        let current = self.current(table);
        let others = self.builds(table).into_iter().map(|build| build.task);
        let others: Vec<u64> = others.filter(|task| Some(*task) != current).collect();
        let kept = before.filter(|before| others.contains(before)).or(others.first().copied());
        let is_old = |name: &str| match name.parse() {
            Ok(task) => ![current, kept].contains(&Some(task)),
            Err(_) => name.starts_with('.') && name.contains(".hush-") || name.starts_with("current."),
        };
        for entry in fs::read_dir(self.0.join(table)).into_iter().flatten().flatten() {
            if !entry.file_name().to_str().is_some_and(is_old) {
                continue;
            }
            let path = entry.path();
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            if let Err(error) = removed {
                tracing::warn!(path = %path.display(), %error, "cannot remove what is left of an old build: remove it");
            }
        }
    }

    /// Removes the folder of a table without builds.
    pub(super) fn remove_empty(&self, table: &Name) {
        // An error is expected: the folder has a build, or does not exist.
        let _ = fs::remove_dir(self.0.join(table));
    }

    /// Removes a build, or the whole table, durably: what was deleted is not there after a loss of power.
    pub(super) fn remove(&self, table: &Name, task: Option<u64>) -> io::Result<()> {
        let folder = self.0.join(table);
        if let Some(task) = task {
            fs::remove_dir_all(self.dir(table, task))?;
            return sync_folder(&folder);
        }
        // A table of which a loss of power leaves a half is not served.
        self.set_current(table, None)?;
        fs::remove_dir_all(&folder)?;
        sync_folder(&self.0)
    }
}

fn kept(dir: &Path, task: u64) -> Option<KeptBuild> {
    let snapshot = Snapshot::open(dir, Verify::Header).ok()?;
    let header = snapshot.header();
    let bytes = fs::read_dir(dir).ok()?.flatten().filter_map(|file| Some(file.metadata().ok()?.len())).sum();
    let epoch = hex::encode(header.descriptor.epoch);
    let records = header.descriptor.rows();
    Some(KeptBuild { task, epoch, records, bytes })
}
