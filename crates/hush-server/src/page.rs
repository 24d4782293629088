//! The page for browsers, which the program around the server supplies.

use hush_engine::Served;

/// A page for browsers, which looks records up as any other client does.
pub trait Page: Send + Sync {
    /// Returns the file of the page at `path`, or `None` if there is none. `index.html` is the page itself.
    fn file(&self, path: &str) -> Option<&'static [u8]>;

    /// Returns the layouts that the records of a served table could have, with the costs of each, as a JSON document. Fails with
    /// a reason for the client if there is no plan. Blocks the thread.
    fn plan(&self, table: &str, served: &Served) -> Result<Vec<u8>, String>;
}
