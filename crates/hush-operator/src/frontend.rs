//! The front end: how the program around the tables reports and shows things, and the names of its options.

use std::{ffi::OsString, fmt, path::Path};

use hush_build::{ApplyRequest, CompactRequest, JobRequest};
use hush_engine::Progress;
use serde_json::{Map, Value};
use tracing::Level;

/// The program around the tables of a server.
pub trait Frontend: Send + Sync {
    /// Tells whoever runs the server a line, of one table or of all.
    fn tell(&self, level: Level, table: Option<&str>, line: fmt::Arguments<'_>);

    /// Shows work that begins.
    fn show(&self) -> Box<dyn Shown>;

    /// Returns the build of `inputs` to `out` that the options of a task mean. Inputs are as a user names them.
    fn build(
        &self,
        options: &Map<String, Value>,
        inputs: &[OsString],
        out: &Path,
    ) -> Result<JobRequest, String>;

    /// Returns the change that the options of a task mean: `changes`, and the keys in the file `delete`.
    fn apply(
        &self,
        options: &Map<String, Value>,
        changes: Option<OsString>,
        delete: Option<&Path>,
    ) -> Result<ApplyRequest, String>;

    /// Returns the compaction that the options of a task mean.
    fn compact(&self, options: &Map<String, Value>) -> Result<CompactRequest, String>;
}

/// Work that is shown.
pub trait Shown: Progress {
    /// Ends what is shown.
    fn finish(&self);
}

/// Tells a line about a table, of the level `INFO`, `WARN` or `ERROR`.
macro_rules! tell_of {
    ($frontend:expr, $level:ident, $table:expr, $($words:tt)*) => {
        $frontend.tell(::tracing::Level::$level, Some(&$table), ::std::format_args!($($words)*))
    };
}
pub(crate) use tell_of;
