//! The inputs: which files an input has, their format, and the options with which they are read.

pub(crate) mod bad_rows;
pub(crate) mod compression;
pub(crate) mod fetch;
pub(crate) mod format;
pub mod key_list;
pub(crate) mod options;
pub(crate) mod rows;
pub(crate) mod several;
pub(crate) mod stdin;
pub(crate) mod text;
