//! The interface by which long work reports its progress, and learns that it is cancelled.

use hush_store::cancel::Cancelled;

/// A receiver of progress. One stage runs at a time; [`Progress::advance`] may come from any thread.
pub trait Progress: Sync {
    /// Begins a stage: its name, its number of units, and the name of a unit ("bytes", "keys").
    fn start(&self, stage: &str, total: u64, unit: &'static str);
    /// Reports that `units` more are done.
    fn advance(&self, units: u64);
    /// Reports a line of text to whoever waits.
    fn note(&self, line: &str) {
        let _ = line;
    }
    /// Reports that `units` of the stage that has just begun were done by an earlier run.
    fn resume(&self, units: u64) {
        self.advance(units);
    }
    /// Fails if the work is cancelled. Called between units, from any thread.
    ///
    /// # Errors
    /// [`Cancelled`], from some call on every time.
    fn check(&self) -> Result<(), Cancelled> {
        Ok(())
    }
}

/// A progress that reports nothing.
pub struct Silent;

impl Progress for Silent {
    fn start(&self, _: &str, _: u64, _: &'static str) {}
    fn advance(&self, _: u64) {}
}

/// A progress that reports nothing, and is cancelled with the inner one.
pub struct Quiet<'a>(pub &'a dyn Progress);

impl Progress for Quiet<'_> {
    fn start(&self, _: &str, _: u64, _: &'static str) {}
    fn advance(&self, _: u64) {}
    fn check(&self) -> Result<(), Cancelled> {
        self.0.check()
    }
}
