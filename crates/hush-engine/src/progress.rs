//! How long work reports its progress, and learns that nobody wants it any more.

use hush_store::cancel::Cancelled;

/// Receives progress. One stage runs at a time; [`Progress::advance`] may come from any thread.
pub trait Progress: Sync {
    /// A stage begins: what it does, how many units it has, and what a unit is ("bytes", "keys").
    fn start(&self, stage: &str, total: u64, unit: &'static str);
    /// `units` more are done.
    fn advance(&self, units: u64);
    /// Something that whoever waits may want to know: a line.
    fn note(&self, line: &str) {
        let _ = line;
    }
    /// `units` of the stage that has just begun were done by an earlier run.
    fn resume(&self, units: u64) {
        self.advance(units);
    }
    /// Called between units, from any thread: fails if the work is to be given up.
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
