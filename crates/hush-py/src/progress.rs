//! Progress, for a callback of Python.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use hush_engine::{Cancelled, Progress};
use pyo3::prelude::*;

use crate::{client::told, interrupt::Cancel};

/// How often a callback is told how far a stage is.
const OFTEN: Duration = Duration::from_millis(100);

/// Tells a callback of every stage: its name, how much of it is done, of how much if that is known, and what is counted. A note
/// is a name whose unit is `note`.
pub(crate) struct Told {
    on_progress: Option<Py<PyAny>>,
    cancel: hush_engine::Cancel,
    stage: Mutex<Option<Stage>>,
}

struct Stage {
    name: String,
    done: u64,
    total: Option<u64>,
    unit: &'static str,
    /// When it was told last, and how much was done then.
    told: (Instant, u64),
}

impl Stage {
    fn tell(&mut self, callback: &Py<PyAny>) {
        self.told = (Instant::now(), self.done);
        told(callback, (self.name.clone(), self.done, self.total, self.unit));
    }
}

impl Told {
    pub(crate) fn new(on_progress: Option<Py<PyAny>>, cancel: &Cancel) -> Self {
        Self { on_progress, cancel: cancel.work.clone(), stage: Mutex::default() }
    }

    fn stage(&self) -> MutexGuard<'_, Option<Stage>> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the last stage.
    pub(crate) fn finish(&self) {
        let last = self.stage().take();
        if let (Some(mut stage), Some(callback)) = (last, &self.on_progress)
            && stage.told.1 < stage.done
        {
            stage.tell(callback);
        }
    }
}

impl Progress for Told {
    fn start(&self, name: &str, total: u64, unit: &'static str) {
        self.finish();
        let Some(callback) = &self.on_progress else { return };
        let total = (total > 0).then_some(total);
        let mut stage = Stage { name: name.to_owned(), done: 0, total, unit, told: (Instant::now(), 0) };
        stage.tell(callback);
        *self.stage() = Some(stage);
    }

    fn advance(&self, units: u64) {
        let Some(callback) = &self.on_progress else { return };
        let due = {
            let mut stage = self.stage();
            let Some(stage) = &mut *stage else { return };
            stage.done += units;
            (stage.told.0.elapsed() > OFTEN).then(|| {
                stage.told = (Instant::now(), stage.done);
                (stage.name.clone(), stage.done, stage.total, stage.unit)
            })
        };
        // Not under the lock: who is told may take long.
        if let Some(due) = due {
            told(callback, due);
        }
    }

    fn note(&self, line: &str) {
        if let Some(callback) = &self.on_progress {
            told(callback, (line.to_owned(), 0, None, "note"));
        }
    }

    fn resume(&self, units: u64) {
        let Some(callback) = &self.on_progress else { return };
        if let Some(stage) = &mut *self.stage() {
            stage.done = units;
            stage.tell(callback);
        }
    }

    fn check(&self) -> Result<(), Cancelled> {
        self.cancel.check()
    }
}
