//! The folders of tables that are served: loaded once, and again when what is in them changes.

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

/// Folders of tables.
pub struct Folders {
    tables: Tables,
    folders: RwLock<Vec<Arc<TableFolder>>>,
    verify: Verify,
    backends: Backends,
    compaction: Arc<Compaction>,
    /// Whether the server stays although it can load no table: others may come.
    stays: bool,
    frontend: Arc<dyn Frontend>,
}

/// A table that is served, or is to be.
struct TableFolder {
    name: Name,
    state: Mutex<FolderState>,
    /// The source, of a copy of a table. It is locked as long as the copy is fetched.
    source: Option<Mutex<Source>>,
    /// Where that is, for who does not wait until it is fetched.
    copy_of: Option<PathBuf>,
}

/// The folder of a table, and what was last found in it.
struct FolderState {
    dir: PathBuf,
    /// The stamp of the files that were there, whether or not they could be served.
    stamp: Option<Stamp>,
    /// The epoch that is served.
    epoch: Option<[u8; 32]>,
    verified: Verified,
}

impl Folders {
    /// Creates the folders of `tables`, of which there are none yet. Whether a server `stays` that can load no table is up to the
    /// caller: others may come.
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

    /// Adds a table, which is loading until it is loaded.
    ///
    /// # Errors
    /// If there is one of its name.
    pub fn add(&self, name: &Name, dir: PathBuf) -> Result<(), String> {
        self.announce(TableFolder::new(name, dir))
    }

    /// Adds a table that is elsewhere.
    ///
    /// # Errors
    /// If there is one of its name, or of its copy.
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

    /// Returns the background work of the server.
    pub(crate) fn upkeep(&self) -> &Upkeep {
        self.tables.upkeep()
    }

    /// Returns the backends that tables are computed on.
    pub fn backends(&self) -> &Backends {
        &self.backends
    }

    /// Looks at the head of every table, and whether there is room for it where it goes.
    pub fn check(&self, unchecked: &mut Vec<String>) -> Result<(), OpenError> {
        for folder in self.all() {
            match &folder.copy_of {
                Some(url) => unchecked.push(format!("{}: it is not fetched for a check", url.display())),
                None => hush_engine::check(&folder.state.lock().dir, &self.backends)?,
            }
        }
        Ok(())
    }

    fn all(&self) -> Vec<Arc<TableFolder>> {
        self.folders.read().clone()
    }

    /// Loads the tables, one after the other, those that have to be fetched last. One that fails is told as failed, and the others
    /// go on.
    ///
    /// # Errors
    /// If there is none in the end, and the server is not to stay: why.
    pub async fn load_all(self: Arc<Self>) -> Result<(), String> {
        let mut failures = Vec::new();
        let mut all = self.all();
        all.sort_by_key(|folder| folder.source.is_some());
        for folder in &all {
            let (folders, folder) = (self.clone(), folder.clone());
            let name = folder.name.clone();
            let load = move || folders.load_folder(&folder);
            let outcome = tokio::task::spawn_blocking(load).await;
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

    /// Loads what has taken the place of a table. Where that fails, the table is served as it was. Tables that are elsewhere are
    /// looked at from time to time, or because somebody `asked`; nobody waits for what is fetched.
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
            let (folders, name) = (self.clone(), folder.name.clone());
            let load = move || {
                let (dir, stamp) = {
                    let state = folder.state.lock();
                    (state.dir.clone(), state.stamp)
                };
                // In a moment without a table another one is being put in its place.
                let is_new = Stamp::of(&dir).is_some_and(|now| Some(now) != stamp);
                let is_to_load = is_new || (asked && !folders.tables.is_resident(&folder.name));
                is_to_load.then(|| folders.load_folder(&folder).map(drop))
            };
            let outcome = tokio::task::spawn_blocking(load).await;
            let outcome = outcome.unwrap_or_else(|panic| Some(Err(LoadFailure::of_program(panic))));
            let upkeep = self.tables.upkeep();
            match outcome {
                Some(Ok(())) => upkeep.took_up(&name, true),
                Some(Err(failure)) => self.refused(&name, &failure),
                None => upkeep.looked(&name),
            }
        }
    }

    /// Counts and says that what is in a table's folder is not taken up.
    fn refused(&self, name: &Name, failure: &LoadFailure) {
        self.tables.upkeep().took_up(name, false);
        tell_of!(self.frontend, WARN, name, "what is in its folder now is not taken up: {}", failure.error);
    }

    /// Takes a table up that is elsewhere, as [`Folders::take_up`] does. A fault is reported once.
    fn take_up_copy(&self, folder: &TableFolder, asked: bool) {
        // One that is being fetched is taken up then.
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

    /// Brings the copy of a table up to date.
    fn copy(&self, folder: &TableFolder, source: &mut Source, is_damaged: bool) -> Result<(), LoadFailure> {
        let loading = self.loading(&folder.name);
        let copied = source.copy(is_damaged, &loading);
        loading.bar.finish();
        copied.map_err(LoadFailure::of_source)
    }

    /// Loads the copy of a table; what of it is damaged is fetched again.
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

    /// Has the changes of tables folded into new bases where there is little room for more.
    pub fn compact_full(&self) {
        for folder in self.all().iter().filter(|folder| folder.source.is_none()) {
            // One that is being loaded is looked at afterwards: nobody waits for it here.
            let Some(state) = folder.state.try_lock() else { continue };
            let (dir, epoch) = (state.dir.clone(), state.epoch);
            drop(state);
            if let Some(epoch) = epoch {
                self.compaction.look(&dir, &folder.name, epoch);
            }
        }
    }

    fn named(&self, table: &Name) -> Result<Arc<TableFolder>, OperatorError> {
        self.all().into_iter().find(|folder| folder.name == *table).ok_or(OperatorError::UnknownTable)
    }

    /// Returns where the server may change a table.
    ///
    /// # Errors
    /// Of a table that it does not serve, or that is a copy.
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

    /// Loads a table. What is elsewhere is fetched first; where that fails, a server that starts goes on with what it has.
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

    /// Returns whether a table that was served is not, because its files were changed.
    fn has_failed(&self, name: &Name, state: &FolderState) -> bool {
        state.epoch.is_some() && !self.tables.is_resident(name)
    }

    /// Makes what is in a folder resident, unless it is already. Returns its epoch.
    fn load_into(&self, name: &Name, state: &mut FolderState) -> Result<[u8; 32], LoadFailure> {
        let (start, dir) = (Instant::now(), state.dir.clone());
        // Before it is read: what comes meanwhile is read again.
        state.stamp = Stamp::of(&dir);
        let loading = self.loading(name);
        let has_failed = self.has_failed(name, state);
        // Whoever changed files under the server may have left anything in them.
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
        // Not before it is: who reads this may ask at once.
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
    /// Serves what is in another folder in the place of a table, or a table that is new. Returns its epoch.
    ///
    /// # Errors
    /// Why it is not; the table is then served as it was.
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

    /// Serves a table no more. Whether there was one.
    pub fn remove(&self, name: &Name) -> bool {
        self.folders.write().retain(|folder| folder.name != *name);
        self.tables.remove(name)
    }

    /// Takes up what is in the folder of a table now. Returns its epoch.
    ///
    /// # Errors
    /// Why it is not; the table is then served as it was.
    pub fn load(&self, name: &Name) -> Result<[u8; 32], String> {
        let folder = self.named(name).map_err(|error| error.to_string())?;
        self.load_folder(&folder).map_err(|failure| failure.error)
    }

    /// Returns where a table is.
    pub fn dir(&self, name: &Name) -> Option<PathBuf> {
        Some(self.named(name).ok()?.state.lock().dir.clone())
    }

    /// Returns the epoch of a table that is served.
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
    /// Nothing has been looked at.
    fn new(dir: PathBuf) -> Self {
        Self { dir, stamp: None, epoch: None, verified: Verified::default() }
    }
}

impl TableFolder {
    fn new(name: &Name, dir: PathBuf) -> Self {
        Self { name: name.clone(), state: Mutex::new(FolderState::new(dir)), source: None, copy_of: None }
    }
}

/// Why a table is not served.
struct LoadFailure {
    /// For who runs the server.
    error: String,
    /// For everybody.
    public: &'static str,
    /// Whether bytes of it are not what they were.
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

/// The progress of a table that is loaded: its plan a line at a time, and the stage at hand.
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
