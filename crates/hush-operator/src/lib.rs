//! The tables of a server: loading, changing and removing them, while `hush-server` answers look-ups in them.
//!
//! * [`Folders`]: the tables of a server, a folder each. New epochs are taken up.
//! * [`Source`]: a table that is elsewhere, of which a copy is served.
//! * [`Compaction`]: changes folded into new bases in the background.
//! * [`Tasks`]: the tasks of operators: build, change, load and remove tables.
//! * [`Frontend`]: how the program around it reports and shows things, and the names of its options.

mod compaction;
mod folders;
mod frontend;
mod source;
mod tasks;
pub mod whole_file;

pub use compaction::Compaction;
pub use folders::Folders;
pub use frontend::{Frontend, Shown};
pub use source::Source;
#[cfg(feature = "openapi")]
pub use tasks::DescribedTask;
pub use tasks::{Tasks, is_in_use, task_sources};
