//! Memory: of a GPU, known before a table is loaded; of the host, chosen for the files of a table.

pub(crate) mod choice;
pub(crate) mod mapped_files;
pub(crate) mod plan;
pub(crate) mod server;
