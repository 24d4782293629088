//! The phase of a build, which determines what happens to the partial folder when the build ends early.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

/// The phase of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// There is nothing from which another build could resume.
    Fresh,
    /// The partial folder is from an earlier build. Whether this build can resume from it is not known yet.
    LeftOver,
    /// The database and the state are saved: a build of the same identity can resume from them.
    LaidOut {
        /// The number of units in the journal.
        done: usize,
        /// The number of all units; 0 before there is a journal.
        units: usize,
    },
    /// The snapshot is in place.
    Committed,
}

/// The phase of a build, shared with a signal handler. It is locked while the phase changes, including the rename that puts the
/// snapshot in place. A thread that holds the lock sees one phase, and keeps the build in it.
#[derive(Clone)]
pub struct SharedPhase(Arc<Mutex<Phase>>);

impl SharedPhase {
    pub(in crate::snapshot) fn new(phase: Phase) -> Self {
        Self(Arc::new(Mutex::new(phase)))
    }

    /// Locks the phase and returns it.
    pub fn lock(&self) -> MutexGuard<'_, Phase> {
        self.0.lock()
    }
}
