//! The page for browsers, which the program around the server supplies.

use hush_engine::Served;

/// A page for browsers, which looks records up as any other client does.
pub trait Page: Send + Sync {
    /// Returns a file of the page, by its path; `index.html` is the page itself.
    fn file(&self, path: &str) -> Option<&'static [u8]>;

    /// Returns the tables that the records of a served table could have, with what each costs: a JSON document. Blocks.
    fn plan(&self, table: &str, served: &Served) -> Result<Vec<u8>, String>;
}
