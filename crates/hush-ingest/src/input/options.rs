//! The choice of an input, and the options by which rows become records.

use std::{
    convert::Infallible,
    ffi::OsStr,
    path::{Path, PathBuf},
    str::FromStr,
};

use hush_protocol::{normal_form::NormalForm, wording::Wording};

use crate::remote::{RemoteUrl, Scheme, SourcePolicy};
use crate::{
    Fetched, Format, IngestError, formats,
    input::{fetch, rows::RowBatch, several::Several},
    record::projection::FirstColumns,
    scheme,
};

/// The default of [`IngestOptions::max_value_size`], in bytes. It is low, since one unintended long value makes every record cost
/// as much. A table holds at most [`hush_protocol::slot::MAX_VALUE_BYTES`].
pub const DEFAULT_MAX_VALUE_SIZE: u32 = 65_536;

/// A source of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A file, whose extension names its format, or a folder of files.
    Path(PathBuf),
    /// Standard input.
    Stdin,
    /// A database, or a URL that has to be fetched before it is read ([`crate::Fetch`]).
    Url(RemoteUrl),
    /// A file that was fetched.
    Fetched(Fetched),
    /// Batches of Arrow within this program.
    #[cfg(feature = "arrow")]
    Batches(crate::Batches),
    /// Records within this program.
    Rows(RowBatch),
    /// Files of the same columns, which are read one after another.
    Several(Several),
}

impl Input {
    /// Combines inputs into one: files of the same columns, and the files of folders of them.
    pub fn of_all(mut inputs: Vec<Self>) -> Self {
        if inputs.len() == 1 { inputs.remove(0) } else { Self::Several(Several::new(inputs)) }
    }

    /// Returns the path, a URL without its secrets, or `-` for standard input.
    pub fn path(&self) -> &Path {
        match self {
            Self::Path(path) => path,
            Self::Stdin => Path::new("-"),
            Self::Url(url) => url.shown(),
            Self::Fetched(fetched) => fetched.shown(),
            #[cfg(feature = "arrow")]
            Self::Batches(batches) => batches.name(),
            Self::Rows(rows) => rows.name(),
            Self::Several(several) => several.name(),
        }
    }

    /// Returns the file of an input whose name ends in `.txt`, so that it is a list of keys. For a URL it is the fetched file.
    pub fn key_list(&self) -> Option<&Path> {
        let file = match self {
            Self::Path(path) => path,
            Self::Fetched(fetched) => fetched.file(),
            _ => return None,
        };
        self.path().extension().is_some_and(|extension| extension == "txt").then_some(file)
    }

    /// Puts the input under a policy, which is applied again at its opening or fetch, since only then are names resolved.
    ///
    /// # Errors
    /// The policy does not allow a URL, or the URL leads nowhere.
    pub fn under(self, policy: &SourcePolicy) -> Result<Self, IngestError> {
        let url = match self {
            Self::Several(several) => {
                let inputs = several.inputs().iter().map(|input| input.clone().under(policy));
                return Ok(Self::of_all(inputs.collect::<Result<_, _>>()?));
            }
            Self::Url(url) => url,
            here => return Ok(here),
        };
        let url = url.under(policy);
        match scheme(&url)? {
            Scheme::Postgres => formats::check_postgres(url.shown(), &url)?,
            elsewhere => fetch::object(&url, elsewhere).map(drop)?,
        }
        Ok(Self::Url(url))
    }
}

impl From<&OsStr> for Input {
    /// Takes `-` for standard input, an argument with a scheme for a URL, and everything else for a path.
    fn from(arg: &OsStr) -> Self {
        if arg == "-" {
            return Self::Stdin;
        }
        arg.to_str().and_then(RemoteUrl::of).map_or_else(|| Self::Path(arg.into()), Self::Url)
    }
}

impl FromStr for Input {
    type Err = Infallible;

    fn from_str(arg: &str) -> Result<Self, Infallible> {
        Ok(Self::from(OsStr::new(arg)))
    }
}

/// The dialect of a CSV text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsvDialect {
    /// The byte between fields. `None`: a tab if the name of the input ends in `.tsv`, else a comma.
    pub separator: Option<u8>,
    /// Whether the first row names the columns; if not, they are called by their numbers, from 1. `None`: the first row names the
    /// columns, and is refused if it looks like a record.
    pub header: Option<bool>,
    /// The byte around a field that has delimiters or line ends. `None`: no field is quoted, and every quote is data.
    pub quote: Option<u8>,
    /// Whether a backslash within a quoted field makes the next quote or backslash data. A doubled quote is data in any case.
    pub backslash: bool,
}

impl Default for CsvDialect {
    fn default() -> Self {
        Self { separator: None, header: None, quote: Some(b'"'), backslash: false }
    }
}

/// The role of the files of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderAs {
    /// Values: the key is the name of the file.
    Files,
    /// Tables of the same columns, whose rows are the records.
    Rows,
}

/// The options by which rows become records.
#[derive(Clone, Debug)]
pub struct IngestOptions {
    /// The columns of the key, joined by the byte 0x1f. Without any, records are looked up by row.
    pub key: Vec<String>,
    /// The columns of the value. Without any, all but the key columns.
    pub value: Vec<String>,
    /// The number of rows that the input must have.
    pub expect_rows: Option<u64>,
    /// The file to which bad rows are written instead of becoming records. `None`: a bad row is an error.
    pub bad_rows: Option<PathBuf>,
    /// The normal form of the key columns that are text.
    pub normalize: NormalForm,
    /// The format, if neither the name of the input nor its first bytes state it.
    pub format: Option<Format>,
    /// The most bytes that a value may have.
    pub max_value_size: u32,
    /// The number of characters at the start of keys by which rows are grouped: the rows of a prefix become a text of lines.
    pub group_prefix: Option<usize>,
    /// CSV: the dialect of the text.
    pub csv: CsvDialect,
    /// SQLite, PostgreSQL: the query whose rows are read.
    pub sql: Option<String>,
    /// SQLite, PostgreSQL: the table or view that is read. Optional if there is only one.
    pub table: Option<String>,
    /// Folders: the role of their files. `None`: values, and a folder with a file of a format with rows is refused.
    pub folder: Option<FolderAs>,
    /// Folders: whether files and folders whose name starts with a dot are read too.
    pub hidden: bool,
    /// Folders: whether symbolic links are followed, even out of the folder.
    pub follow_links: bool,
    /// The columns of the first of several inputs, which the others must have too. A caller leaves it empty.
    pub first: Option<FirstColumns>,
}

impl Default for IngestOptions {
    fn default() -> Self {
        Self {
            key: Vec::new(),
            value: Vec::new(),
            expect_rows: None,
            bad_rows: None,
            normalize: NormalForm::default(),
            format: None,
            max_value_size: DEFAULT_MAX_VALUE_SIZE,
            group_prefix: None,
            csv: CsvDialect::default(),
            sql: None,
            table: None,
            folder: None,
            hidden: false,
            follow_links: false,
            first: None,
        }
    }
}

impl IngestOptions {
    /// Returns the format that the options state: an option of CSV implies CSV.
    pub(crate) fn stated_format(&self) -> Option<Format> {
        let is_csv = self.csv.separator.is_some() || self.csv.header.is_some();
        self.format.or(is_csv.then_some(Format::Csv))
    }

    /// Refuses options that contradict each other or do not fit `format`.
    pub(crate) fn check(&self, path: &Path, format: Format) -> Result<(), IngestError> {
        let refuse = |reason| Err(IngestError::Option { path: path.into(), reason });
        for (option, columns) in [(Wording("{key}"), &self.key), (Wording("{value}"), &self.value)] {
            if let Some(at) = (1..columns.len()).find(|&at| columns[..at].contains(&columns[at])) {
                return Err(IngestError::RepeatedOption { option, column: columns[at].clone() });
            }
            if format == Format::Folder && !columns.is_empty() {
                return refuse(Wording(
                    "{key} and {value} do not apply to a folder of files: the key is the file name, the value its content",
                ));
            }
        }
        if !self.normalize.is_empty() && self.key.is_empty() {
            return refuse(Wording("{normalize} applies to keys: name the columns of the key"));
        }
        if matches!(format, Format::Folder | Format::Postgres) && self.format.is_some() {
            return refuse(Wording("{format} applies to files and standard input only"));
        }
        if format != Format::Folder {
            if self.folder == Some(FolderAs::Files) {
                return refuse(Wording("{as=files} applies to folders only"));
            }
            if self.hidden {
                return refuse(Wording("{hidden=true} applies to folders only"));
            }
            if self.follow_links {
                return refuse(Wording("{follow-links=true} applies to folders only"));
            }
        }
        let CsvDialect { separator, header, quote, backslash } = self.csv;
        let of_csv = [
            (Wording("{separator} applies to CSV only"), separator.is_some()),
            (Wording("{header=true} applies to CSV only"), header == Some(true)),
            (Wording("{no-header=true} applies to CSV only"), header == Some(false)),
            (Wording("{quote} applies to CSV only"), quote != CsvDialect::default().quote),
            (Wording("{escape} applies to CSV only"), backslash),
        ];
        if let Some((reason, _)) = of_csv.into_iter().find(|(_, given)| *given && format != Format::Csv) {
            return refuse(reason);
        }
        if backslash && quote.is_none() {
            return refuse(Wording("{escape} applies within quotes, and {quote} says that there are none"));
        }
        if separator.is_some() && separator == quote {
            return refuse(Wording("{separator} is the quote: choose another one of both"));
        }
        if !matches!(format, Format::Sqlite | Format::Postgres) {
            if self.sql.is_some() {
                return refuse(Wording("{sql} applies to SQLite files and PostgreSQL only"));
            }
            if self.table.is_some() {
                return refuse(Wording("{table} applies to SQLite files and PostgreSQL only"));
            }
        }
        if self.sql.is_some() && self.table.is_some() {
            return refuse(Wording("{sql} and {table} exclude each other; use one"));
        }
        Ok(())
    }
}
