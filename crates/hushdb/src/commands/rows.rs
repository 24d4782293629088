//! How rows of an input become records: what all commands that read one can be told.

use clap::Args;
use hush_store::ingest::{Format, IngestOptions};

/// How rows become records.
#[derive(Args)]
pub(super) struct RowArgs {
    /// Column of the value; several times for a JSON object of them. Without it, all columns but the key.
    #[arg(long, value_name = "COL")]
    value: Vec<String>,
    /// Format of the records, where the name does not say it: csv, jsonl, parquet, arrow or sqlite; of standard input csv, jsonl or
    /// arrow. If not given, its first bytes tell arrow from jsonl.
    #[arg(long, value_name = "NAME")]
    format: Option<Format>,
    /// Query whose rows are the records (SQLite, PostgreSQL).
    #[arg(long, value_name = "QUERY", conflicts_with = "table")]
    sql: Option<String>,
    /// Table whose rows are the records (SQLite, PostgreSQL).
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// Take hidden files and folders, whose names start with a dot (a folder of files).
    #[arg(long)]
    hidden: bool,
    /// Follow symbolic links, out of the folder too (a folder of files).
    #[arg(long)]
    follow_links: bool,
}

impl RowArgs {
    /// The options of rows without a key.
    pub(super) fn options(self) -> IngestOptions {
        let Self { value, format, sql, table, hidden, follow_links } = self;
        IngestOptions { value, format, sql, table, hidden, follow_links, ..IngestOptions::default() }
    }
}
