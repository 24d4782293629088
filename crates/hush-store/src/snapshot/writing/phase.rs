//! How far a build is, and so what becomes of the partial folder when it ends early.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

/// How far a build is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// There is nothing that another build could go on from.
    Fresh,
    /// The partial folder is an earlier build's. Whether this build can go on from there is not known yet.
    LeftOver,
    /// The database and the state are saved: the same build can go on from there.
    LaidOut {
        /// Units that are in the journal.
        done: usize,
        /// Units in all; 0 before there is a journal.
        units: usize,
    },
    /// The snapshot is in place.
    Committed,
}

/// The phase of a build, shared with a signal handler. It is locked while the phase changes, the rename that puts the
/// snapshot in place included: who holds the lock sees one phase, and keeps the build in it.
#[derive(Clone)]
pub struct SharedPhase(Arc<Mutex<Phase>>);

impl SharedPhase {
    pub(in crate::snapshot) fn new(phase: Phase) -> Self {
        Self(Arc::new(Mutex::new(phase)))
    }

    /// Returns the phase.
    pub fn lock(&self) -> MutexGuard<'_, Phase> {
        self.0.lock()
    }
}
