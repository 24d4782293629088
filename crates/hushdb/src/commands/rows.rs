//! The options by which rows of an input become records, for all commands that read one.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hush_ingest::{CsvDialect, FolderAs, Format, IngestOptions, Input};

/// Returns the input that a command line names: a single one, or several as one.
pub(super) fn input(named: &[PathBuf]) -> Input {
    Input::of_all(named.iter().map(|path| Input::from(path.as_os_str())).collect())
}

/// The options by which rows become records.
#[derive(Args)]
pub(super) struct RowArgs {
    /// Column of the value; repeat it for a JSON object of several columns. Without it, the value has all columns but
    /// the key.
    #[arg(long, value_name = "COL")]
    value: Vec<String>,
    /// Format of the records, if the name does not say it: csv, jsonl, parquet, arrow or sqlite; on standard input
    /// csv, jsonl or arrow. If not given, the first bytes tell arrow from jsonl.
    #[arg(long, value_name = "NAME")]
    format: Option<Format>,
    /// Character between fields (CSV): an ASCII character, or tab. If not given, a tab in .tsv files and a comma
    /// elsewhere.
    #[arg(long, value_name = "CHAR", value_parser = parse_separator)]
    separator: Option<u8>,
    /// Read the first row as a record, and call columns by their numbers, 1, 2, .. (CSV).
    #[arg(long)]
    no_header: bool,
    /// Read the first row as the names of columns, even if it looks like a record (CSV).
    #[arg(long, conflicts_with = "no_header")]
    header: bool,
    /// Character around a field that has separators or line ends (CSV); none if quotes are data.
    #[arg(long, value_name = "CHAR", default_value = "\"", value_parser = parse_quote)]
    quote: Quote,
    /// Form of a quote within a quoted field (CSV): double is "", backslash is \" too.
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Escape::Double)]
    escape: Escape,
    /// Query whose rows are the records (SQLite, PostgreSQL).
    #[arg(long, value_name = "QUERY", conflicts_with = "table")]
    sql: Option<String>,
    /// Table whose rows are the records (SQLite, PostgreSQL).
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// Leave bad rows out, and write them to FILE, a JSON object for each. Without it, a bad row is an error.
    #[arg(long, value_name = "FILE")]
    skip_bad_rows: Option<PathBuf>,
    /// How to read the files of a folder: as values under their names, or as files of rows. If not given, they are
    /// values, and a folder that has files of rows is refused.
    #[arg(long = "as", value_name = "HOW", value_enum)]
    folder: Option<FolderContent>,
    /// Include hidden files and folders, whose names start with a dot (a folder of files).
    #[arg(long)]
    hidden: bool,
    /// Follow symbolic links, also out of the folder (a folder of files).
    #[arg(long)]
    follow_links: bool,
}

impl RowArgs {
    /// Converts the options to those of the ingest. The key is left empty.
    pub(super) fn options(self) -> IngestOptions {
        let Self {
            value,
            format,
            separator,
            no_header,
            header,
            quote,
            escape,
            sql,
            table,
            skip_bad_rows: bad_rows,
            folder,
            hidden,
            follow_links,
        } = self;
        let header = (header || no_header).then_some(header);
        let csv = CsvDialect { separator, header, quote, backslash: escape == Escape::Backslash };
        let folder = folder.map(|what| match what {
            FolderContent::Files => FolderAs::Files,
            FolderContent::Rows => FolderAs::Rows,
        });
        IngestOptions {
            value,
            format,
            csv,
            sql,
            table,
            bad_rows,
            folder,
            hidden,
            follow_links,
            ..IngestOptions::default()
        }
    }
}

/// The byte around a quoted field; `None` is `none`.
type Quote = Option<u8>;

/// The role of the files of a folder.
#[derive(Clone, Copy, ValueEnum)]
enum FolderContent {
    Files,
    Rows,
}

/// The form of a quote within a quoted field.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Escape {
    Double,
    Backslash,
}

fn parse_separator(text: &str) -> Result<u8, &'static str> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        &[byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b"\\\r\n".contains(&byte) => Ok(byte),
        _ => Err(
            "a separator is one character of ASCII, neither a letter, a digit, a backslash nor a line end; or tab",
        ),
    }
}

fn parse_quote(text: &str) -> Result<Quote, &'static str> {
    match text.as_bytes() {
        b"none" => Ok(None),
        &[byte] if byte.is_ascii_punctuation() && !b",\\".contains(&byte) => Ok(Some(byte)),
        _ => Err("a quote is one punctuation character of ASCII, neither a comma nor a backslash, or none"),
    }
}
