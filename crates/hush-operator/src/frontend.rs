//! The front end: how the program around the tables reports and shows progress, and the names of its options.

use std::{ffi::OsString, fmt, path::Path};

use hush_build::{ApplyRequest, CompactRequest, JobRequest};
use hush_engine::Progress;
use serde_json::{Map, Value};
use tracing::Level;

/// The program around the tables of a server.
pub trait Frontend: Send + Sync {
    /// Reports a line to the operator, about one table or all.
    fn tell(&self, level: Level, table: Option<&str>, line: fmt::Arguments<'_>);

    /// Shows the progress of work that begins.
    fn show(&self) -> Box<dyn Shown>;

    /// Parses the options of a build task: `inputs`, named as a user names them, become a table in `out`.
    fn build(
        &self,
        options: &Map<String, Value>,
        inputs: &[OsString],
        out: &Path,
    ) -> Result<JobRequest, String>;

    /// Parses the options of an apply task: `changes`, and the keys to delete in the file `delete`.
    fn apply(
        &self,
        options: &Map<String, Value>,
        changes: Option<OsString>,
        delete: Option<&Path>,
    ) -> Result<ApplyRequest, String>;

    /// Parses the options of a compaction task.
    fn compact(&self, options: &Map<String, Value>) -> Result<CompactRequest, String>;
}

/// The progress of work that is shown to people.
pub trait Shown: Progress {
    /// Ends the display.
    fn finish(&self);
}

/// Reports a line about a table, at level `INFO`, `WARN` or `ERROR`.
macro_rules! tell_of {
    ($frontend:expr, $level:ident, $table:expr, $($words:tt)*) => {
        $frontend.tell(::tracing::Level::$level, Some(&$table), ::std::format_args!($($words)*))
    };
}
pub(crate) use tell_of;
