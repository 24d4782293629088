//! The tasks on disk, a file each. A request may contain a password, so only the owner of a file can read it.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use hush_server::Task;
use hush_store::{durable::create_folders, whole_file};

/// The most tasks that are kept. Beyond that, the oldest finished tasks are removed.
const MAX_TASKS: usize = 1000;

pub(super) struct Store(PathBuf);

impl Store {
    pub(super) fn new(root: PathBuf) -> io::Result<Self> {
        create_folders(&root)?;
        Ok(Self(root))
    }

    /// Reads all tasks.
    pub(super) fn read(&self) -> Result<BTreeMap<u64, Task>, String> {
        let mut tasks = BTreeMap::new();
        for entry in fs::read_dir(&self.0).map_err(|error| error.to_string())?.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                let task = read(&path).map_err(|error| {
                    format!("{} is no task ({error}): remove the file to go on without it", path.display())
                })?;
                tasks.insert(task.id, task);
            }
        }
        Ok(tasks)
    }

    pub(super) fn write(&self, task: &Task) -> io::Result<()> {
        let text = serde_json::to_string_pretty(task).expect("plain data");
        whole_file::write(&self.path(task.id), &text, 0o600)
    }

    /// Removes the oldest finished tasks beyond [`MAX_TASKS`].
    pub(super) fn prune(&self, tasks: &mut BTreeMap<u64, Task>) {
        let excess = tasks.len().saturating_sub(MAX_TASKS);
        let ended = tasks.values().filter(|task| task.status.is_final()).map(|task| task.id).take(excess);
        for id in ended.collect::<Vec<_>>() {
            tasks.remove(&id);
            if let Err(error) = fs::remove_file(self.path(id)) {
                tracing::warn!(task = id, %error, "cannot remove the file of an old task");
            }
        }
    }

    fn path(&self, id: u64) -> PathBuf {
        self.0.join(format!("{id}.json"))
    }
}

fn read(path: &Path) -> Result<Task, String> {
    let text = fs::read(path).map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map_err(|error| error.to_string())
}
