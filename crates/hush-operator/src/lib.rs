//! The operation of a server's tables: loading, changing and removing them, while `hush-server` answers look-ups.
//!
//! * [`Folders`]: the tables of a server, a folder each, which are reloaded when they change.
//! * [`Source`]: a remote table, of which a copy is served.
//! * [`Compaction`]: the folding of changes into new bases, in the background.
//! * [`Tasks`]: the tasks of operators, which build, change, load and remove tables.
//! * [`Frontend`]: how the program around the tables reports and shows progress, and the names of its options.

mod compaction;
mod folders;
mod frontend;
mod source;
mod tasks;

pub use compaction::Compaction;
pub use folders::Folders;
pub use frontend::{Frontend, Shown};
pub use source::Source;
#[cfg(feature = "openapi")]
pub use tasks::DescribedTask;
pub use tasks::{Tasks, is_in_use, task_sources};
