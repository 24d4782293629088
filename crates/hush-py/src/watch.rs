//! New epochs of tables in folders, taken up while they are served.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use hush_engine::{Backends, Engine, OpenError, Silent, open_after};
use hush_protocol::Name;
use hush_server::Tables;
use hush_store::snapshot::{Stamp, Verified, Verify};
use pyo3::prelude::*;

/// How often folders are looked at.
const LOOK: Duration = Duration::from_millis(200);

/// A folder whose table is served.
pub(crate) struct Folder {
    pub(crate) name: Name,
    path: PathBuf,
    /// The stamp of the snapshot that was last opened.
    stamp: Option<Stamp>,
    verified: Verified,
}

impl Folder {
    pub(crate) fn new(name: Name, path: PathBuf) -> Self {
        Self { name, path, stamp: None, verified: Verified::default() }
    }

    /// Opens the table that is there now.
    ///
    /// # Errors
    /// If it cannot be served.
    pub(crate) fn open(&mut self, backends: &Backends) -> Result<Arc<dyn Engine>, OpenError> {
        // Before it is read: what comes meanwhile is read again.
        self.stamp = Stamp::of(&self.path);
        open_after(&self.path, Verify::Full, &mut self.verified, backends, &Silent)
    }

    /// Returns whether another table is there. In a moment without one, another is being put in its place.
    fn is_new(&self) -> bool {
        Stamp::of(&self.path).is_some_and(|now| Some(now) != self.stamp)
    }
}

/// A thread that looks at folders until this is dropped.
pub(crate) struct Watch(Arc<AtomicBool>);

impl Watch {
    /// Begins to look; `warn` is told what is not taken up, and why.
    pub(crate) fn start(
        mut folders: Vec<Folder>,
        tables: Tables,
        backends: Backends,
        warn: Py<PyAny>,
    ) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let own = ended.clone();
        thread::spawn(move || {
            while !own.load(Ordering::Relaxed) {
                for folder in folders.iter_mut().filter(|folder| folder.is_new()) {
                    let opened = folder.open(&backends).map_err(|error| error.to_string());
                    let taken_up = opened.and_then(|engine| {
                        tables.insert(&folder.name, engine).map_err(|error| error.to_string())
                    });
                    tables.upkeep().took_up(&folder.name, taken_up.is_ok());
                    if let Err(error) = taken_up {
                        say(
                            &warn,
                            &format!("{}: what is in its folder now is not taken up: {error}", folder.name),
                        );
                    }
                }
                thread::sleep(LOOK);
            }
        });
        Self(ended)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Says a line, unless the interpreter ends.
fn say(warn: &Py<PyAny>, line: &str) {
    let _ = Python::try_attach(|py| {
        if let Err(error) = warn.call1(py, (line,)) {
            error.write_unraisable(py, Some(warn.bind(py)));
        }
    });
}
