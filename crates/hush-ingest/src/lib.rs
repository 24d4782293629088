//! Reading of tables. CSV, Parquet, JSONL, Arrow, SQLite, a folder of files or a query of PostgreSQL become a stream of
//! [`Record`]s. A [`Spool`] keeps a stream for the several passes of a build.
//!
//! * `input/`: the inputs: a file, standard input, a URL, or several of them; their formats and options.
//! * `formats/`: a reader for each format; those of Parquet, Arrow and SQLite are features, on by default.
//! * `record/`: the conversion of the fields of a row to a [`Record`].
//! * `spool/`: records on disk, by partitions of their keys, and the compression of their values.
//! * [`remote`]: object stores and web servers. [`mirror`]: a remote table, and its copy here.
//!
//! All readers run in constant memory: they hold a row, or a batch of rows, of the input.
//!
//! # Keys and values
//! A field has one form as bytes: text in UTF-8, numbers in decimal, `true` or `false`, binary as it is, null empty. A key is its
//! columns in that form, joined by [`KEY_SEPARATOR`](hush_protocol::schema::KEY_SEPARATOR). A value of one column is that column in
//! the same form ([`append_single`](hush_protocol::schema::append_single)). A value of several columns is their
//! [fields](hush_protocol::fields) in the given order, and a value without columns is empty.

mod error;
mod formats;
mod input;
pub mod mirror;
mod place;
#[cfg_attr(
    not(all(feature = "arrow", feature = "sqlite")),
    allow(dead_code, reason = "only the readers that are left out use some of it")
)]
mod record;
#[cfg_attr(
    not(feature = "remote"),
    allow(dead_code, reason = "only clients that are left out use some of it")
)]
pub mod remote;
mod source;
mod spool;

pub use error::IngestError;
#[cfg(feature = "arrow")]
pub use formats::arrow::{
    batches::Batches,
    types::{arrow_field, column_type},
    value::key_field,
};
pub use formats::folder::walk::Skipped;
#[cfg(feature = "remote")]
pub use formats::postgres::follow::{DatabaseBatch, DatabaseChanges, ReplicationSlot, show_position};
pub use input::{
    fetch::{Fetch, Fetched},
    format::{Format, UnknownFormat},
    key_list,
    options::{CsvDialect, DEFAULT_MAX_VALUE_SIZE, FolderAs, IngestOptions, Input},
    rows::RowBatch,
    several::Several,
};
pub use place::Place;
pub use record::{
    calendar::{days_of, nanos_of, nanos_of_day},
    cast::{NotCast, cast_value},
    projection::{FirstColumns, MAX_KEY_SIZE, Record, shown_key},
    row_map::RowMap,
};
pub use source::{LongField, Progress, ProgressUnit, Source, Summary, open};
pub(crate) use source::{Reader, open_file, open_one, scheme};
pub use spool::{
    MAX_RECORDS, OnDuplicate, Spool, UnknownOnDuplicate,
    compress::{Compressor, compress_slots, text_of_frame},
    lists::{elements_of, grouped},
    spooled::SpooledRecords,
};

/// The most bytes of a CSV row or a JSONL line. A longer one is a file without line ends or with an unclosed quote, and would fill
/// the memory.
pub const MAX_ROW_SIZE: u64 = 64 << 20;
