//! The readers: a folder or a file for each format. Readers that need much to compile can be left out by features.

#[cfg(feature = "arrow")]
pub(crate) mod arrow;
pub(crate) mod csv;
pub(crate) mod folder;
pub(crate) mod json;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
#[cfg(feature = "remote")]
pub(crate) mod postgres;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;

use std::{fs::File, path::Path};

use crate::{IngestError, IngestOptions, Reader, input::text::Text, remote::RemoteUrl};

/// Defines a function of a reader. In a program without the reader's feature, the function says which one is missing.
macro_rules! optional {
    ($feature:literal, $name:ident($path:ident, $($argument:ident: $type:ty),*) -> $made:ty => $result:expr) => {
        #[cfg(feature = $feature)]
        pub(crate) fn $name($path: &Path, $($argument: $type),*) -> Result<$made, IngestError> {
            $result
        }

        #[cfg(not(feature = $feature))]
        pub(crate) fn $name($path: &Path, $(_: $type),*) -> Result<$made, IngestError> {
            Err(IngestError::NoReader { path: $path.into(), feature: $feature })
        }
    };
}

optional!("parquet", open_parquet(path, file: (File, u64), options: &IngestOptions) -> Box<dyn Reader> => {
    Ok(Box::new(parquet::ParquetReader::new(path, file, options)?))
});
optional!("sqlite", open_sqlite(path, at: &Path, options: &IngestOptions) -> Box<dyn Reader> => {
    Ok(Box::new(sqlite::SqliteReader::open(at, path, options)?))
});
optional!("arrow", open_arrow_file(path, file: (File, u64), options: &IngestOptions) -> Box<dyn Reader> => {
    Ok(Box::new(arrow::ArrowReader::new(path, arrow::messages::Messages::of_file(file.0, file.1), options)?))
});
optional!("arrow", open_arrow_stream(path, text: Text, options: &IngestOptions) -> Box<dyn Reader> => {
    Ok(Box::new(arrow::ArrowReader::new(path, arrow::messages::Messages::of_stream(text), options)?))
});
optional!("remote", open_postgres(_path, url: &RemoteUrl, options: &IngestOptions) -> Box<dyn Reader> => {
    Ok(Box::new(postgres::PostgresReader::open(url, options)?))
});
optional!("remote", check_postgres(_path, url: &RemoteUrl) -> () => {
    postgres::settings(url).map(drop)
});
