//! Giving work up: one says so, and who works looks often.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use thiserror::Error;

/// Tells work to stop. Clones belong to the same work.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

/// The work was told to stop, and did.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("it was cancelled")]
pub struct Cancelled;

impl Cancel {
    /// Nobody has cancelled yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells the work to stop, for good. Returns at once: the work ends when it looks.
    pub fn cancel(&self) {
        self.0.store(true, Relaxed);
    }

    /// Returns whether the work is to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// Checks for cancellation. Work calls it between its units.
    ///
    /// # Errors
    /// [`Cancelled`] if it is to stop.
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() { Err(Cancelled) } else { Ok(()) }
    }
}
