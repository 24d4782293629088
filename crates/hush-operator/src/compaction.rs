//! The compaction of tables in the background, while they are served: changes are folded into new bases.

use std::{
    collections::{HashMap, HashSet},
    error::Error,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use hush_build::{CompactRequest, Update, UpdateError, Updated};
use hush_cpu::Cpu;
use hush_engine::{Backends, Cancel, Silent};
use hush_server::{Background, Upkeep};
use hush_store::snapshot::{Snapshot, Verify};
use parking_lot::Mutex;
use rustix::process::setpriority_process;
use tokio::sync::Notify;

use crate::{Frontend, frontend::tell_of};

/// The lowest priority: everything else comes first.
const LOWEST_PRIORITY: i32 = 19;

/// The compaction of tables: when their changes are folded into new bases, and how.
pub struct Compaction {
    /// The percentage of used room for changes at which a new base is built without a request.
    percent: Option<u64>,
    threads: usize,
    state: Arc<CompactionState>,
    upkeep: Upkeep,
    frontend: Arc<dyn Frontend>,
}

#[derive(Default)]
struct CompactionState {
    /// The epoch of each table at its last check.
    looked: Mutex<HashMap<PathBuf, [u8; 32]>>,
    /// The tables that are being compacted.
    busy: Mutex<HashSet<PathBuf>>,
    /// The signal that a new base is in place.
    done: Notify,
}

impl Compaction {
    /// Creates a compaction that starts when `percent` of the room for changes is used, on `threads` threads.
    pub fn new(percent: Option<u64>, threads: usize, upkeep: &Upkeep, frontend: &Arc<dyn Frontend>) -> Self {
        Self { percent, threads, state: Arc::default(), upkeep: upkeep.clone(), frontend: frontend.clone() }
    }

    /// Waits until a new base is in place.
    pub async fn done(&self) {
        self.state.done.notified().await;
    }

    /// Compacts the table in `dir` if the room for its changes is used up to the percentage. Checks each `epoch` once.
    pub fn look(&self, dir: &Path, name: &str, epoch: [u8; 32]) {
        let Some(percent) = self.percent else { return };
        let mut looked = self.state.looked.lock();
        if self.state.busy.lock().contains(dir) || looked.insert(dir.to_owned(), epoch) == Some(epoch) {
            return;
        }
        let count = Snapshot::open(dir, Verify::Header).ok().and_then(|snapshot| snapshot.header().changes);
        if count.is_some_and(|count| count.changes > 0 && count.changes * 100 >= count.room * percent)
            && let Err(error) = self.begin(dir, name)
        {
            tell_of!(self.frontend, WARN, name, "{error}");
        }
    }

    /// Begins to compact the table `name` in `dir`, on a separate thread. Fails with a message if the table is being compacted,
    /// cannot be opened, or has no changes.
    pub fn begin(&self, dir: &Path, name: &str) -> Result<(), String> {
        if !self.state.busy.lock().insert(dir.to_owned()) {
            return Err(format!("the table {name} is being compacted: wait until that is done"));
        }
        let update = match opened(dir) {
            Ok(update) => update,
            Err(error) => {
                self.state.busy.lock().remove(dir);
                return Err(format!("the table {name} has no new base: {error}"));
            }
        };
        let dir = dir.to_owned();
        let name = name.to_owned();
        let threads = self.threads;
        let state = self.state.clone();
        tell_of!(self.frontend, INFO, name, "its changes are being folded into a new base");
        let upkeep = self.upkeep.clone();
        let frontend = self.frontend.clone();
        thread::spawn(move || {
            match upkeep.attempt(Background::Compaction, || compact(update, threads)) {
                Some(Ok(Updated { seconds, .. })) => {
                    tell_of!(frontend, INFO, name, "a new base was made in {seconds:.1} s");
                }
                Some(Err(error)) => tell_of!(frontend, ERROR, name, "no new base: {error}"),
                None => tell_of!(frontend, ERROR, name, "no new base: the program failed"),
            }
            state.busy.lock().remove(&dir);
            state.done.notify_one();
        });
        Ok(())
    }
}

/// Opens a table for compaction, and keeps others from changing it. Refuses a table that is signed or has no changes.
fn opened(dir: &Path) -> Result<Update, UpdateError> {
    let update = Update::open(dir, None, &Cancel::new())?;
    if update.has_changes() { Ok(update) } else { Err(UpdateError::NoChanges) }
}

/// Builds a new base on separate threads of the lowest priority.
fn compact(update: Update, threads: usize) -> Result<Updated, Box<dyn Error>> {
    // On Linux the priority applies to this thread and those that it starts. If the call fails, the work has the usual priority.
    let _ = setpriority_process(None, LOWEST_PRIORITY);
    let backends = Backends::cpu_only(Arc::new(Cpu::new(threads)?));
    Ok(update.compact_beside(CompactRequest::default(), &backends, &Silent)?)
}
