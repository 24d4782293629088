//! The readers: a folder or a file for each format.

pub(crate) mod arrow;
pub(crate) mod csv;
pub(crate) mod folder;
pub(crate) mod json;
pub(crate) mod parquet;
pub(crate) mod postgres;
pub(crate) mod sqlite;
