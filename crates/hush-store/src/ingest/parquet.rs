//! Parquet: flat columns, the fields of structs as `outer.inner`, and lists and maps as nested JSON.

use std::{
    fs::File,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
};

use hush_protocol::schema::ColumnType;
use parquet::{column::reader::get_column_reader, errors::ParquetError, file::metadata::ParquetMetaData};

use super::{
    IngestError, IngestOptions, MAX_KEY_SIZE, Place, Progress, ProgressUnit, Reader, Record,
    cell::Cell,
    parquet_column::{ColumnValues, Kind, column_type},
    parquet_nested::{Entries, Field, NotJson, fields},
    parquet_pages::{Allowance, Pages, read_metadata},
    record::Projection,
};

/// Rows decoded at a time.
const BATCH_ROWS: usize = 1024;
/// The same where rows have lists.
const NESTED_BATCH_ROWS: usize = 4;

/// Reads the rows of a Parquet file, row group after row group.
pub(super) struct ParquetReader {
    path: PathBuf,
    file: Arc<File>,
    /// Bytes of the file.
    bytes: u64,
    metadata: ParquetMetaData,
    projection: Projection,
    /// What the columns of the projection are made of.
    fields: Vec<Field>,
    /// Bytes at which a nested value is too long.
    most: usize,
    /// The leaves of the current row group, in the order of the file; `None` for one that is not in use.
    columns: Leaves,
    /// The kinds of the leaves, in the order of the file; `None` for one that is not in use.
    kinds: Vec<Option<Kind>>,
    next_group: usize,
    /// Rows of the current row group that are not decoded yet.
    group_rows: usize,
    /// Rows of the decoded batch that are not read yet.
    batch: Range<usize>,
    row: u64,
}

impl ParquetReader {
    /// Reads from `file`, of so many bytes; `path` is for messages.
    pub(super) fn new(
        path: &Path,
        (file, bytes): (File, u64),
        options: &IngestOptions,
    ) -> Result<Self, IngestError> {
        let metadata = guarded(path, || read_metadata(&file, bytes))?;
        let schema = metadata.file_metadata().schema_descr();
        let unsupported = |column: &str, kind: &'static str| IngestError::UnsupportedColumn {
            path: path.into(),
            column: column.to_owned(),
            kind,
        };
        let is_asked = |name: &str| options.key.iter().chain(&options.value).any(|column| column == name);
        let fields =
            fields(schema, is_asked).map_err(|group| unsupported(&group, "a group without fields"))?;
        let names: Vec<String> = fields.iter().map(|field| field.name.clone()).collect();
        let projection = Projection::new(path, &names, options)?.typed(|index| {
            let node = &fields[index].node;
            if node.is_leaf() { column_type(&schema.column(node.leaves.start)) } else { ColumnType::ANY }
        });
        let mut kinds = vec![None; schema.num_columns()];
        for column in projection.columns() {
            for leaf in fields[column.index].node.leaves.clone() {
                let kind = Kind::of(&schema.column(leaf)).map_err(|kind| unsupported(&column.name, kind))?;
                kinds[leaf] = Some(kind);
            }
        }
        let columns = Leaves::default();
        let most = MAX_KEY_SIZE.max(options.max_value_size as usize);
        Ok(Self {
            path: path.into(),
            file: file.into(),
            bytes,
            metadata,
            projection,
            fields,
            most,
            columns,
            kinds,
            next_group: 0,
            group_rows: 0,
            batch: 0..0,
            row: 0,
        })
    }

    /// Decodes the next batch; `false` at the end of the file.
    fn next_batch(&mut self) -> Result<bool, IngestError> {
        let Self { path, file, bytes, metadata, columns, kinds, next_group, group_rows, batch, .. } = self;
        guarded(path, || {
            while *group_rows == 0 {
                if *next_group == metadata.num_row_groups() {
                    return Ok(false);
                }
                let group = metadata.row_group(*next_group);
                *next_group += 1;
                let rows = usize::try_from(group.num_rows())?;
                *group_rows = rows;
                let read = |index: usize, kind| -> Result<_, ParquetError> {
                    let allowance = Allowance::default();
                    let pages = Pages::new(file, *bytes, group.column(index), rows, allowance.clone())?;
                    let descriptor = metadata.file_metadata().schema_descr().column(index);
                    ColumnValues::new(get_column_reader(descriptor, Box::new(pages)), kind, allowance)
                };
                let open =
                    |(index, kind): (usize, &Option<Kind>)| kind.map(|kind| read(index, kind)).transpose();
                columns.0 = kinds.iter().enumerate().map(open).collect::<Result<_, ParquetError>>()?;
            }
            let is_nested = kinds.iter().flatten().any(Kind::is_repeated);
            let rows = if is_nested { NESTED_BATCH_ROWS } else { BATCH_ROWS }.min(*group_rows);
            for column in columns.0.iter_mut().flatten() {
                column.load(rows)?;
            }
            *group_rows -= rows;
            *batch = 0..rows;
            Ok(true)
        })
    }
}

impl Iterator for ParquetReader {
    type Item = Result<Record, IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.batch.is_empty() {
            match self.next_batch() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
        let at = self.batch.next()?;
        self.row += 1;
        let place = || Place { path: self.path.clone(), row: self.row, line: None };
        Some(self.projection.record(place, |column| {
            let node = &self.fields[column.index].node;
            let cell = if node.is_leaf() {
                self.columns.of(node.leaves.start).cell(at).map_err(|_| NotJson::Utf8)
            } else {
                node.value(&self.columns, at, self.most).and_then(json_cell)
            };
            cell.map_err(|reason| match reason {
                NotJson::Utf8 => IngestError::BadUtf8 { place: place(), column: Some(column.name.clone()) },
                NotJson::Damaged => {
                    IngestError::Parquet { path: self.path.clone(), message: NotJson::MESSAGE.into() }
                }
            })
        }))
    }
}

/// A nested value, or null.
fn json_cell(value: Option<Vec<u8>>) -> Result<Cell<'static>, NotJson> {
    let Some(json) = value else { return Ok(Cell::Null) };
    String::from_utf8(json).map(|text| Cell::Json(text.into())).map_err(|_| NotJson::Utf8)
}

/// The leaves of a row group by number; those in use are there.
#[derive(Default)]
struct Leaves(Vec<Option<ColumnValues>>);

impl Leaves {
    fn of(&self, leaf: usize) -> &ColumnValues {
        self.0[leaf].as_ref().expect("the columns in use are loaded")
    }
}

impl Entries for Leaves {
    fn row(&self, leaf: usize, row: usize) -> Range<usize> {
        self.of(leaf).entries(row)
    }

    fn levels(&self, leaf: usize, entry: usize) -> (i16, i16) {
        self.of(leaf).levels(entry)
    }

    fn append_json(&self, leaf: usize, entry: usize, out: &mut Vec<u8>) -> Result<(), NotJson> {
        self.of(leaf).cell(entry).map_err(|_| NotJson::Utf8)?.append_json(out);
        Ok(())
    }

    fn append_name(&self, leaf: usize, entry: usize, out: &mut Vec<u8>) -> Result<(), NotJson> {
        self.of(leaf).cell(entry).map_err(|_| NotJson::Utf8)?.append_name(out);
        Ok(())
    }
}

impl Reader for ParquetReader {
    fn progress(&self) -> Progress {
        let total = u64::try_from(self.metadata.file_metadata().num_rows()).ok();
        Progress { read: self.row, total, unit: ProgressUnit::Rows }
    }

    fn projection(&self) -> Option<&Projection> {
        Some(&self.projection)
    }
}

/// Runs a step of the Parquet reader, which panics on some damaged files instead of returning an error.
fn guarded<T>(path: &Path, step: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, IngestError> {
    let message = match catch_unwind(AssertUnwindSafe(step)) {
        Ok(Ok(done)) => return Ok(done),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "the file is damaged".into(),
    };
    Err(IngestError::Parquet { path: path.into(), message })
}
