//! The folders of served tables: each is loaded once, and again when its content changes.

use std::{path::PathBuf, sync::Arc, time::Instant};

use hush_engine::{Backends, Bytes, OpenError, Progress, open_after};
use hush_protocol::{
    Name,
    wording::{Slot, neutrally},
};
use hush_server::{Background, Operator, OperatorError, Tables, Upkeep};
use hush_store::snapshot::{SnapshotError, Stamp, Verified, Verify};
use parking_lot::{Mutex, RwLock};

use crate::{Compaction, Frontend, Shown, Source, frontend::tell_of};

/// The folders of served tables.
pub struct Folders {
    tables: Tables,
    folders: RwLock<Vec<Arc<TableFolder>>>,
    verify: Verify,
    backends: Backends,
    compaction: Arc<Compaction>,
    /// Whether the server keeps running without any table, since tables may be added.
    stays: bool,
    frontend: Arc<dyn Frontend>,
}

/// A table that is served or will be.
struct TableFolder {
    name: Name,
    state: Mutex<FolderState>,
    /// The source, if the table is a copy. The lock is held while the copy is fetched.
    source: Option<Mutex<Source>>,
    /// The URL of the source, for callers that do not wait for the lock.
    copy_of: Option<PathBuf>,
}

/// The folder of a table, and its content at the last check.
struct FolderState {
    dir: PathBuf,
    /// The stamp of the files at the last check, whether or not they could be served.
    stamp: Option<Stamp>,
    /// The epoch that is served.
    epoch: Option<[u8; 32]>,
    verified: Verified,
}

impl Folders {
    /// Creates the folders of `tables`, empty at first. With `stays`, the server keeps running even if no table can be loaded.
    pub fn new(
        tables: &Tables,
        verify: Verify,
        backends: Backends,
        compaction: &Arc<Compaction>,
        stays: bool,
        frontend: &Arc<dyn Frontend>,
    ) -> Self {
        Self {
            tables: tables.clone(),
            folders: RwLock::default(),
            verify,
            backends,
            compaction: compaction.clone(),
            stays,
            frontend: frontend.clone(),
        }
    }

    /// Returns the program around the tables.
    pub(crate) fn frontend(&self) -> &dyn Frontend {
        &*self.frontend
    }

    /// Adds a table, which is announced now and loaded later.
    ///
    /// # Errors
    /// There is a table of this name.
    pub fn add(&self, name: &Name, dir: PathBuf) -> Result<(), String> {
        self.announce(TableFolder::new(name, dir))
    }

    /// Adds a remote table, of which a copy is served.
    ///
    /// # Errors
    /// There is a table of this name, or of the same copy.
    pub fn add_copy(&self, name: &Name, source: Source) -> Result<(), String> {
        let dir = source.dir().to_owned();
        if self.all().iter().any(|folder| folder.source.is_some() && folder.state.lock().dir == dir) {
            return Err(format!("{} is named twice: once is enough", source.shown().display()));
        }
        let copy_of = Some(source.shown().to_owned());
        self.announce(TableFolder {
            source: Some(Mutex::new(source)),
            copy_of,
            ..TableFolder::new(name, dir)
        })
    }

    fn announce(&self, folder: TableFolder) -> Result<(), String> {
        let name = &folder.name;
        if self.named(name).is_ok() {
            let option = Slot::Option("name");
            return Err(format!("two tables are called {name}: tell them apart with {option}"));
        }
        self.tables.announce(name);
        self.folders.write().push(Arc::new(folder));
        Ok(())
    }

    /// Returns the upkeep, the background work of the server.
    pub(crate) fn upkeep(&self) -> &Upkeep {
        self.tables.upkeep()
    }

    /// Returns the backends that tables are computed on.
    pub fn backends(&self) -> &Backends {
        &self.backends
    }

    /// Checks the header of every table, and that there is room for the table at its placement. Copies are not fetched, and are
    /// added to `unchecked`.
    pub fn check(&self, unchecked: &mut Vec<String>) -> Result<(), OpenError> {
        for folder in self.all() {
            match &folder.copy_of {
                Some(url) => unchecked.push(format!("{}: it is not fetched for a check", url.display())),
                None => hush_engine::check(&folder.state.lock().dir, &self.backends).map(drop)?,
            }
        }
        Ok(())
    }

    fn all(&self) -> Vec<Arc<TableFolder>> {
        self.folders.read().clone()
    }

    /// Loads the tables one after another, those to be fetched last. A table that cannot be loaded is marked as failed, and the
    /// others go on.
    ///
    /// # Errors
    /// The reasons, if no table could be loaded and the server does not stay.
    pub async fn load_all(self: Arc<Self>) -> Result<(), String> {
        let mut failures = Vec::new();
        let mut all = self.all();
        all.sort_by_key(|folder| folder.source.is_some());
        for folder in &all {
            let folders = self.clone();
            let folder = folder.clone();
            let name = folder.name.clone();
            let outcome = tokio::task::spawn_blocking(move || folders.load_folder(&folder)).await;
            let Err(failure) = outcome.unwrap_or_else(|panic| Err(LoadFailure::of_program(panic))) else {
                continue;
            };
            if all.len() == 1 && !self.stays {
                return Err(failure.error);
            }
            tell_of!(self.frontend, ERROR, name, "not served: {}", failure.error);
            self.tables.fail(&name, failure.public);
            failures.push(format!("{name}: {}", failure.error));
        }
        if self.stays || failures.is_empty() || failures.len() < all.len() {
            Ok(())
        } else {
            Err(failures.join("; "))
        }
    }

    /// Loads new content of the tables' folders. If that fails, the old table stays. Remote tables are checked from time to time,
    /// or if `asked`; nobody waits for a fetch.
    pub async fn take_up(self: Arc<Self>, asked: bool) {
        for folder in self.all() {
            if folder.source.is_some() {
                let folders = self.clone();
                tokio::task::spawn_blocking(move || {
                    let upkeep = folders.tables.upkeep().clone();
                    upkeep.attempt(Background::Copies, || folders.take_up_copy(&folder, asked));
                });
                continue;
            }
            let folders = self.clone();
            let name = folder.name.clone();
            let loading = tokio::task::spawn_blocking(move || {
                let (dir, stamp) = {
                    let state = folder.state.lock();
                    (state.dir.clone(), state.stamp)
                };
                // A folder without a table is only passing: another table is being put in place.
                let is_new = Stamp::of(&dir).is_some_and(|now| Some(now) != stamp);
                let is_to_load = is_new || (asked && !folders.tables.is_resident(&folder.name));
                is_to_load.then(|| folders.load_folder(&folder).map(drop))
            });
            let outcome = loading.await.unwrap_or_else(|panic| Some(Err(LoadFailure::of_program(panic))));
            let upkeep = self.tables.upkeep();
            match outcome {
                Some(Ok(())) => upkeep.took_up(&name, true),
                Some(Err(failure)) => self.refused(&name, &failure),
                None => upkeep.looked(&name),
            }
        }
    }

    /// Counts and reports that the content of a table's folder cannot be loaded.
    fn refused(&self, name: &Name, failure: &LoadFailure) {
        self.tables.upkeep().took_up(name, false);
        tell_of!(self.frontend, WARN, name, "what is in its folder now is not taken up: {}", failure.error);
    }

    /// Fetches and loads a remote table, as in [`Folders::take_up`]. A fault is reported once.
    fn take_up_copy(&self, folder: &TableFolder, asked: bool) {
        // A copy that is being fetched is loaded afterwards.
        let Some(mut source) = folder.source.as_ref().and_then(Mutex::try_lock) else { return };
        if !asked && !source.is_due() {
            return;
        }
        let copied = self.copy(folder, &mut source, false).and_then(|()| {
            let stamp = folder.state.lock().stamp;
            match Stamp::of(source.dir()) == stamp && self.tables.is_resident(&folder.name) {
                true => Ok(()),
                false => self.load_copy(folder, &mut source).map(drop),
            }
        });
        self.tables.upkeep().took_up(&folder.name, copied.is_ok());
        let is_news = source.is_news(copied.is_err());
        if let Err(LoadFailure { error, .. }) = copied
            && (is_news || asked)
        {
            tell_of!(self.frontend, WARN, folder.name, "what is there now is not taken up: {error}");
        }
    }

    fn loading<'a>(&'a self, name: &'a Name) -> Loading<'a> {
        Loading { name, bar: self.frontend.show(), upkeep: self.tables.upkeep() }
    }

    /// Fetches the difference between the copy of a table and its source.
    fn copy(&self, folder: &TableFolder, source: &mut Source, is_damaged: bool) -> Result<(), LoadFailure> {
        let loading = self.loading(&folder.name);
        let copied = source.copy(is_damaged, &loading);
        loading.bar.finish();
        copied.map_err(LoadFailure::of_source)
    }

    /// Loads the copy of a table. Damaged files are fetched again.
    fn load_copy(&self, folder: &TableFolder, source: &mut Source) -> Result<[u8; 32], LoadFailure> {
        let loaded = self.load_into(&folder.name, &mut folder.state.lock());
        match loaded {
            Err(LoadFailure { is_damaged: true, error, .. }) => {
                tell_of!(self.frontend, WARN, folder.name, "{error}: it is fetched again");
                self.copy(folder, source, true)?;
                self.load_into(&folder.name, &mut folder.state.lock())
            }
            loaded => loaded,
        }
    }

    /// Starts the compaction of tables that have little room left for changes.
    pub fn compact_full(&self) {
        for folder in self.all().iter().filter(|folder| folder.source.is_none()) {
            // A table that is being loaded is checked afterwards, so that nobody waits here.
            let Some(state) = folder.state.try_lock() else { continue };
            let dir = state.dir.clone();
            let epoch = state.epoch;
            drop(state);
            if let Some(epoch) = epoch {
                self.compaction.look(&dir, &folder.name, epoch);
            }
        }
    }

    fn named(&self, table: &Name) -> Result<Arc<TableFolder>, OperatorError> {
        self.all().into_iter().find(|folder| folder.name == *table).ok_or(OperatorError::UnknownTable)
    }

    /// Returns the folder in which the server may change a table.
    ///
    /// # Errors
    /// The table is not served, or is a copy.
    pub fn own_dir(&self, table: &Name) -> Result<PathBuf, OperatorError> {
        let folder = self.named(table)?;
        match &folder.copy_of {
            Some(url) => Err(OperatorError::Refused(format!(
                "the table {table} is a copy of {}: change it there, and the copy follows",
                url.display()
            ))),
            None => Ok(folder.state.lock().dir.clone()),
        }
    }

    /// Loads a table, and fetches it first if it is remote. If that fails, a starting server uses the existing copy.
    fn load_folder(&self, folder: &TableFolder) -> Result<[u8; 32], LoadFailure> {
        let Some(mut source) = folder.source.as_ref().map(Mutex::lock) else {
            return self.load_into(&folder.name, &mut folder.state.lock());
        };
        if let Err(failure) = self.copy(folder, &mut source, false) {
            let is_start = folder.state.lock().epoch.is_none();
            if !is_start || Stamp::of(source.dir()).is_none() {
                return Err(failure);
            }
            tell_of!(
                self.frontend,
                WARN,
                folder.name,
                "what was fetched before is served: {}",
                failure.error
            );
            source.is_news(true);
        }
        self.load_copy(folder, &mut source)
    }

    /// Returns whether a served table has failed, because its files were changed.
    fn has_failed(&self, name: &Name, state: &FolderState) -> bool {
        state.epoch.is_some() && !self.tables.is_resident(name)
    }

    /// Makes the table in a folder resident, unless it is already. Returns its epoch.
    fn load_into(&self, name: &Name, state: &mut FolderState) -> Result<[u8; 32], LoadFailure> {
        let start = Instant::now();
        let dir = state.dir.clone();
        // The stamp is taken before the files are read, so that later changes are noticed.
        state.stamp = Stamp::of(&dir);
        let loading = self.loading(name);
        let has_failed = self.has_failed(name, state);
        // Files that were changed under the server may have any content.
        let verify = if has_failed { Verify::Full } else { self.verify };
        let engine = open_after(&dir, verify, &mut state.verified, &self.backends, &loading)?;
        loading.bar.finish();
        self.tables.upkeep().took_up(name, true);
        let served = engine.served().clone();
        if state.epoch == Some(served.epoch) && !has_failed {
            return Ok(served.epoch);
        }
        self.tables.insert(name, engine).map_err(LoadFailure::of_program)?;
        let seconds = start.elapsed().as_secs_f64();
        // The log line comes after the insertion, since its reader may query at once.
        match state.epoch.replace(served.epoch) {
            None => tell_of!(
                self.frontend,
                INFO,
                name,
                "{} from {} on {}, ready in {seconds:.1} s; query {}, answer {}",
                served.protocol,
                dir.display(),
                served.placement,
                Bytes(served.query.total()),
                Bytes(served.answer_bytes)
            ),
            Some(_) => tell_of!(
                self.frontend,
                INFO,
                name,
                "epoch {} taken up in {seconds:.1} s",
                hex::encode(served.epoch)
            ),
        }
        Ok(served.epoch)
    }
}

/// The operations of tasks on tables.
impl Folders {
    /// Serves the table in another folder under a new or an existing name. Returns its epoch.
    ///
    /// # Errors
    /// The reason why it cannot be served. The old table then stays.
    pub fn put(&self, name: &Name, dir: PathBuf) -> Result<[u8; 32], String> {
        let known = self.named(name).ok();
        let folder = known.clone().unwrap_or_else(|| Arc::new(TableFolder::new(name, dir.clone())));
        let mut state = folder.state.lock();
        let before = std::mem::replace(&mut *state, FolderState::new(dir));
        state.epoch = before.epoch;
        let loaded = self.load_into(&folder.name, &mut state);
        match (&loaded, known) {
            (Err(_), _) => *state = before,
            (Ok(_), None) => self.folders.write().push(folder.clone()),
            (Ok(_), Some(_)) => {}
        }
        loaded.map_err(|failure| failure.error)
    }

    /// Stops serving a table. Returns whether it was served.
    pub fn remove(&self, name: &Name) -> bool {
        self.folders.write().retain(|folder| folder.name != *name);
        self.tables.remove(name)
    }

    /// Loads the current content of a table's folder. Returns its epoch.
    ///
    /// # Errors
    /// The reason why it cannot be loaded. The old table then stays.
    pub fn load(&self, name: &Name) -> Result<[u8; 32], String> {
        let folder = self.named(name).map_err(|error| error.to_string())?;
        self.load_folder(&folder).map_err(|failure| failure.error)
    }

    /// Returns the folder of a table.
    pub fn dir(&self, name: &Name) -> Option<PathBuf> {
        Some(self.named(name).ok()?.state.lock().dir.clone())
    }

    /// Returns the epoch of a table that is being served.
    pub fn epoch(&self, name: &Name) -> Option<[u8; 32]> {
        self.named(name).ok()?.state.lock().epoch
    }
}

impl Operator for Folders {
    fn reload(&self, table: &Name) -> Result<[u8; 32], OperatorError> {
        self.load_folder(&*self.named(table)?).map_err(|failure| {
            self.refused(table, &failure);
            OperatorError::Refused(failure.error)
        })
    }

    fn compact(&self, table: &Name) -> Result<(), OperatorError> {
        let dir = self.own_dir(table)?;
        neutrally(|| self.compaction.begin(&dir, table)).map_err(OperatorError::Refused)
    }
}

impl FolderState {
    /// Creates the state of a folder that has not been checked yet.
    fn new(dir: PathBuf) -> Self {
        Self { dir, stamp: None, epoch: None, verified: Verified::default() }
    }
}

impl TableFolder {
    fn new(name: &Name, dir: PathBuf) -> Self {
        Self { name: name.clone(), state: Mutex::new(FolderState::new(dir)), source: None, copy_of: None }
    }
}

/// The reason why a table is not served.
struct LoadFailure {
    /// The reason for the operator.
    error: String,
    /// The reason for everybody.
    public: &'static str,
    /// Whether a checksum of the table was wrong.
    is_damaged: bool,
}

impl LoadFailure {
    fn of_program(error: impl ToString) -> Self {
        Self { error: error.to_string(), public: "the server failed to load it", is_damaged: false }
    }

    fn of_source(error: String) -> Self {
        Self { error, public: "it cannot be fetched", is_damaged: false }
    }
}

impl From<OpenError> for LoadFailure {
    fn from(error: OpenError) -> Self {
        let is_damaged = matches!(error, OpenError::Snapshot(SnapshotError::Corrupt { .. }));
        Self { error: error.to_string(), public: error.public_reason(), is_damaged }
    }
}

/// The progress of loading a table: its plan a line at a time, and the current stage.
struct Loading<'a> {
    name: &'a Name,
    bar: Box<dyn Shown>,
    upkeep: &'a Upkeep,
}

impl Progress for Loading<'_> {
    fn start(&self, stage: &str, total: u64, unit: &'static str) {
        self.bar.start(&format!("{}: {stage}", self.name), total, unit);
    }

    fn advance(&self, units: u64) {
        self.bar.advance(units);
        self.upkeep.looked(self.name);
    }

    fn note(&self, line: &str) {
        self.bar.note(&format!("{}: {line}", self.name));
    }
}
