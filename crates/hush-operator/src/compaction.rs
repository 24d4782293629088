//! Changes folded into new bases in the background, while the tables are served.

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

/// Everything else comes first.
const LOWEST_PRIORITY: i32 = 19;

/// When changes are folded into a new base, and how.
pub struct Compaction {
    /// Percent of the room for changes that are taken when a new base is made by itself.
    percent: Option<u64>,
    threads: usize,
    state: Arc<CompactionState>,
    upkeep: Upkeep,
    frontend: Arc<dyn Frontend>,
}

#[derive(Default)]
struct CompactionState {
    /// The epoch of each table that was last looked at.
    looked: Mutex<HashMap<PathBuf, [u8; 32]>>,
    /// The tables that are being compacted.
    busy: Mutex<HashSet<PathBuf>>,
    /// A new base is in place.
    done: Notify,
}

impl Compaction {
    /// Creates what compacts a table when `percent` of the room for its changes are taken, on so many threads.
    pub fn new(percent: Option<u64>, threads: usize, upkeep: &Upkeep, frontend: &Arc<dyn Frontend>) -> Self {
        Self { percent, threads, state: Arc::default(), upkeep: upkeep.clone(), frontend: frontend.clone() }
    }

    /// Waits for a new base.
    pub async fn done(&self) {
        self.state.done.notified().await;
    }

    /// Compacts the table in `dir`, if it has come so far in `epoch`.
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

    /// Begins to compact the table in `dir`.
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
        let (dir, name, threads, state) = (dir.to_owned(), name.to_owned(), self.threads, self.state.clone());
        tell_of!(self.frontend, INFO, name, "its changes are being folded into a new base");
        let (upkeep, frontend) = (self.upkeep.clone(), self.frontend.clone());
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

/// Opens a table that is to be compacted, and keeps others from changing it. Refuses one without changes, or that is signed.
fn opened(dir: &Path) -> Result<Update, UpdateError> {
    let update = Update::open(dir, None, &Cancel::new())?;
    if update.has_changes() { Ok(update) } else { Err(UpdateError::NoChanges) }
}

/// Makes a new base on threads of its own, which take what others leave.
fn compact(update: Update, threads: usize) -> Result<Updated, Box<dyn Error>> {
    // On Linux it is that of this thread alone, and of those that it starts. If it fails, the work has the priority of others.
    let _ = setpriority_process(None, LOWEST_PRIORITY);
    let backends = Backends::cpu_only(Arc::new(Cpu::new(threads)?));
    Ok(update.compact(CompactRequest::default(), &backends, &Silent)?)
}
