//! Progress of long work, and the way to cancel it.

use hush_store::cancel::Cancelled;

/// Receives progress. One stage runs at a time; [`Progress::advance`] may come from any thread.
pub trait Progress: Sync {
    /// Begins a stage: what it does, how many units it has, and what a unit is ("bytes", "keys").
    fn start(&self, stage: &str, total: u64, unit: &'static str);
    /// `units` more are done.
    fn advance(&self, units: u64);
    /// Something that whoever waits may want to know: a line.
    fn note(&self, line: &str) {
        let _ = line;
    }
    /// Notes that an earlier run did `units` of the stage that has just begun.
    fn resume(&self, units: u64) {
        self.advance(units);
    }
    /// Checks for cancellation. Work calls it between units, from any thread.
    ///
    /// # Errors
    /// [`Cancelled`], from some call on every time.
    fn check(&self) -> Result<(), Cancelled> {
        Ok(())
    }
}

/// Reports nothing.
pub struct Silent;

impl Progress for Silent {
    fn start(&self, _: &str, _: u64, _: &'static str) {}
    fn advance(&self, _: u64) {}
}

/// Reports nothing, and ends with the other.
pub struct Quiet<'a>(pub &'a dyn Progress);

impl Progress for Quiet<'_> {
    fn start(&self, _: &str, _: u64, _: &'static str) {}
    fn advance(&self, _: u64) {}
    fn check(&self) -> Result<(), Cancelled> {
        self.0.check()
    }
}
