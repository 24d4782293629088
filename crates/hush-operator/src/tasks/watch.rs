//! The progress of a running task, for those who ask.

use hush_engine::Progress;
use hush_server::TaskProgress;
use parking_lot::Mutex;

/// The most lines that are kept of a task's notes.
const MAX_NOTES: usize = 100;

/// A record of progress and notes.
#[derive(Default)]
pub(super) struct Watch(Mutex<TaskSeen>);

#[derive(Default)]
struct TaskSeen {
    progress: TaskProgress,
    notes: Vec<String>,
}

impl Watch {
    pub(super) fn progress(&self) -> TaskProgress {
        self.0.lock().progress.clone()
    }

    pub(super) fn notes(&self) -> Vec<String> {
        self.0.lock().notes.clone()
    }
}

impl Progress for Watch {
    fn start(&self, stage: &str, total: u64, unit: &'static str) {
        self.0.lock().progress = TaskProgress { stage: stage.into(), done: 0, total, unit: unit.into() };
    }

    fn advance(&self, units: u64) {
        self.0.lock().progress.done += units;
    }

    fn note(&self, line: &str) {
        let mut seen = self.0.lock();
        if seen.notes.len() < MAX_NOTES {
            seen.notes.push(line.to_owned());
        }
    }
}
