//! How far a task is, for who asks.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hush_engine::Progress;
use hush_server::TaskProgress;

/// Lines that are kept of what a task has to say.
const MAX_NOTES: usize = 100;

/// Progress that is kept.
#[derive(Default)]
pub(super) struct Watch(Mutex<TaskSeen>);

#[derive(Default)]
struct TaskSeen {
    progress: TaskProgress,
    notes: Vec<String>,
}

impl Watch {
    fn seen(&self) -> MutexGuard<'_, TaskSeen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn progress(&self) -> TaskProgress {
        self.seen().progress.clone()
    }

    pub(super) fn notes(&self) -> Vec<String> {
        self.seen().notes.clone()
    }
}

impl Progress for Watch {
    fn start(&self, stage: &str, total: u64, unit: &'static str) {
        self.seen().progress = TaskProgress { stage: stage.into(), done: 0, total, unit: unit.into() };
    }

    fn advance(&self, units: u64) {
        self.seen().progress.done += units;
    }

    fn note(&self, line: &str) {
        let mut seen = self.seen();
        if seen.notes.len() < MAX_NOTES {
            seen.notes.push(line.to_owned());
        }
    }
}
