//! The readers: a folder or a file for each format. A feature of the crate leaves out each of those that need much to compile.

#[cfg(feature = "arrow")]
pub(crate) mod arrow;
pub(crate) mod csv;
pub(crate) mod folder;
pub(crate) mod json;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
pub(crate) mod postgres;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;

use std::{fs::File, path::Path};

use crate::{IngestError, IngestOptions, Reader, input::text::Text};

/// Defines the function that opens a reader. In a program without the reader's feature, the function says which one is missing.
macro_rules! optional {
    ($feature:literal, $name:ident($path:ident, $($argument:ident: $type:ty),*) => $reader:expr) => {
        #[cfg(feature = $feature)]
        pub(crate) fn $name($path: &Path, $($argument: $type),*) -> Result<Box<dyn Reader>, IngestError> {
            Ok(Box::new($reader?))
        }

        #[cfg(not(feature = $feature))]
        pub(crate) fn $name($path: &Path, $(_: $type),*) -> Result<Box<dyn Reader>, IngestError> {
            Err(IngestError::NoReader { path: $path.into(), feature: $feature })
        }
    };
}

optional!("parquet", open_parquet(path, file: (File, u64), options: &IngestOptions) => {
    parquet::ParquetReader::new(path, file, options)
});
optional!("sqlite", open_sqlite(path, at: &Path, options: &IngestOptions) => {
    sqlite::SqliteReader::open(at, path, options)
});
optional!("arrow", open_arrow_file(path, file: (File, u64), options: &IngestOptions) => {
    arrow::ArrowReader::new(path, arrow::messages::Messages::of_file(file.0, file.1), options)
});
optional!("arrow", open_arrow_stream(path, text: Text, options: &IngestOptions) => {
    arrow::ArrowReader::new(path, arrow::messages::Messages::of_stream(text), options)
});
