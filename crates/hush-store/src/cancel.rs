//! Cancellation of long work: another thread requests it, and the work checks often.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use thiserror::Error;

/// A request that work should stop. All clones belong to the same work.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

/// The error of work that was cancelled.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("it was cancelled")]
pub struct Cancelled;

impl Cancel {
    /// Creates a request that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels the work, permanently. Returns at once; the work ends at its next check.
    pub fn cancel(&self) {
        self.0.store(true, Relaxed);
    }

    /// Returns whether the work was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// Checks for cancellation. Work calls it between its units.
    ///
    /// # Errors
    /// [`Cancelled`] if the work was cancelled.
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() { Err(Cancelled) } else { Ok(()) }
    }
}
