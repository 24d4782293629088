//! The folders of tables that are served: loaded once, and again when what is in them changes.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use hush_engine::{Backends, OpenError, Progress, open_after};
use hush_server::{Operator, OperatorError, Tables};
use hush_store::snapshot::{Stamp, Verified, Verify};

use super::Compaction;
use crate::{commands::bar::Bar, report};

/// Folders of tables.
pub(super) struct Folders {
    tables: Tables,
    folders: Vec<Folder>,
    verify: Verify,
    backends: Backends,
    compaction: Arc<Compaction>,
}

/// A folder, and the name of its table.
struct Folder {
    dir: PathBuf,
    name: String,
    state: Mutex<State>,
}

/// What was last found in a folder.
#[derive(Default)]
struct State {
    /// What was there, whether or not it could be served.
    stamp: Option<Stamp>,
    /// What is served.
    epoch: Option<[u8; 32]>,
    verified: Verified,
}

impl Folders {
    pub(super) fn new(
        tables: &Tables,
        folders: impl IntoIterator<Item = (PathBuf, String)>,
        verify: Verify,
        backends: Backends,
        compaction: &Arc<Compaction>,
    ) -> Self {
        let folder = |(dir, name)| Folder { dir, name, state: Mutex::default() };
        Self {
            tables: tables.clone(),
            folders: folders.into_iter().map(folder).collect(),
            verify,
            backends,
            compaction: compaction.clone(),
        }
    }

    /// Loads the tables, one after the other. One that fails is told as failed, and the others go on.
    ///
    /// # Errors
    /// If there is none in the end: why.
    pub(super) async fn load_all(self: Arc<Self>) -> Result<(), String> {
        let mut failures = Vec::new();
        for index in 0..self.folders.len() {
            let folders = self.clone();
            let load = move || folders.load(&folders.folders[index]);
            let outcome = tokio::task::spawn_blocking(load).await;
            let Err(failure) = outcome.unwrap_or_else(|panic| Err(Failure::of_program(panic))) else {
                continue;
            };
            if self.folders.len() == 1 {
                return Err(failure.error);
            }
            let name = &self.folders[index].name;
            eprintln!("{name}: not served: {}", failure.error);
            self.tables.fail(name, failure.public).map_err(|error| error.to_string())?;
            failures.push(format!("{name}: {}", failure.error));
        }
        if failures.len() < self.folders.len() { Ok(()) } else { Err(failures.join("; ")) }
    }

    /// Loads what has taken the place of a table. Where that fails, the table is served as it was.
    pub(super) async fn take_up(self: Arc<Self>) {
        for index in 0..self.folders.len() {
            let folders = self.clone();
            let load = move || {
                let folder = &folders.folders[index];
                // In a moment without a table another one is being put in its place.
                let is_new = Stamp::of(&folder.dir).is_some_and(|stamp| Some(stamp) != folder.state().stamp);
                if is_new { folders.load(folder).map(drop) } else { Ok(()) }
            };
            let outcome = tokio::task::spawn_blocking(load).await;
            if let Err(failure) = outcome.unwrap_or_else(|panic| Err(Failure::of_program(panic))) {
                let name = &self.folders[index].name;
                eprintln!("{name}: what is in its folder now is not taken up: {}", failure.error);
            }
        }
    }

    /// Has the changes of tables folded into new bases where there is little room for more.
    pub(super) fn compact_full(&self) {
        for folder in &self.folders {
            if let Some(epoch) = folder.state().epoch {
                self.compaction.look(&folder.dir, &folder.name, epoch);
            }
        }
    }

    fn named(&self, table: &str) -> Result<&Folder, OperatorError> {
        self.folders.iter().find(|folder| folder.name == table).ok_or(OperatorError::UnknownTable)
    }

    /// Makes what is in a folder resident, unless it is already. Returns its epoch.
    fn load(&self, folder: &Folder) -> Result<[u8; 32], Failure> {
        let (start, Folder { dir, name, .. }) = (Instant::now(), folder);
        let mut state = folder.state();
        // Before it is read: what comes meanwhile is read again.
        state.stamp = Stamp::of(dir);
        let loading = Loading { name, bar: Bar::new() };
        let engine = open_after(dir, self.verify, &mut state.verified, &self.backends, &loading)?;
        loading.bar.finish();
        let served = engine.served().clone();
        if state.epoch == Some(served.epoch) {
            return Ok(served.epoch);
        }
        self.tables.insert(name, engine).map_err(Failure::of_program)?;
        let seconds = start.elapsed().as_secs_f64();
        // Not before it is: who reads this may ask at once.
        match state.epoch.replace(served.epoch) {
            None => eprintln!(
                "{name}: {} from {} on {}, ready in {seconds:.1} s; query {}, answer {}",
                served.protocol,
                dir.display(),
                served.place,
                report::bytes(served.query.total() as u64),
                report::bytes(served.answer_bytes as u64)
            ),
            Some(_) => eprintln!("{name}: epoch {} taken up in {seconds:.1} s", hex::encode(served.epoch)),
        }
        Ok(served.epoch)
    }
}

impl Operator for Folders {
    fn reload(&self, table: &str) -> Result<[u8; 32], OperatorError> {
        self.load(self.named(table)?).map_err(|failure| OperatorError::Refused(failure.error))
    }

    fn compact(&self, table: &str) -> Result<(), OperatorError> {
        let folder = self.named(table)?;
        self.compaction.begin(&folder.dir, table).map_err(OperatorError::Refused)
    }
}

impl Folder {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a table is not served.
struct Failure {
    /// For who runs the server.
    error: String,
    /// For everybody.
    public: &'static str,
}

impl Failure {
    fn of_program(error: impl ToString) -> Self {
        Self { error: error.to_string(), public: "the server failed to load it" }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self { error: error.to_string(), public: error.public_reason() }
    }
}

/// What is said while a table is loaded: its plan a line at a time, the stage at hand.
struct Loading<'a> {
    name: &'a str,
    bar: Bar,
}

impl Progress for Loading<'_> {
    fn start(&self, stage: &str, total: u64, unit: &'static str) {
        self.bar.start(&format!("{}: {stage}", self.name), total, unit);
    }

    fn advance(&self, units: u64) {
        self.bar.advance(units);
    }

    fn note(&self, line: &str) {
        self.bar.note(&format!("{}: {line}", self.name));
    }
}
