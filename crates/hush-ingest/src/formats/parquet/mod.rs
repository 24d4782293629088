//! Parquet, read with the Arrow reader of its crate: each column in use alone, row group after row group.
//!
//! The reader gets its pages from [`Pages`], which refuses pages that would take more memory than the machine has. The crate uses
//! some numbers of a file as indices without a check, so damage can make it panic: [`guarded`] makes that an error.

pub(crate) mod form;
pub(crate) mod pages;
pub(crate) mod schema;
pub(crate) mod shapes;
pub(crate) mod thrift;

use std::{
    fs::File,
    iter,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::ArrayRef;
use arrow_schema::ArrowError;
use parquet::{
    arrow::{
        FieldLevels,
        arrow_reader::{ParquetRecordBatchReader, RowGroups},
    },
    basic::Type as Physical,
    column::page::{PageIterator, PageReader},
    errors::ParquetError,
    file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData},
    schema::types::ColumnDescriptor,
};

use crate::{
    IngestError, IngestOptions, MAX_KEY_SIZE, Place, Progress, ProgressUnit, Reader, Record,
    formats::{
        arrow::value::cell,
        parquet::{
            form::NoValue,
            pages::{Allowance, Pages, read_metadata},
            schema::{ParquetField, fields},
        },
    },
    record::projection::Projection,
};

/// The most rows that are decoded at a time.
const BATCH_ROWS: usize = 1024;
/// The number of rows of lists that are decoded at a time if a batch of more rows has too many elements.
const FEW_ROWS: usize = 4;
/// The number of list entries that are decoded at a time, estimated from the metadata.
const BATCH_ENTRIES: usize = 1 << 15;
/// The number of bytes that are decoded at a time, estimated from the metadata.
const BATCH_BYTES: usize = 16 << 20;
/// The most entries that the pages of a leaf with lists may have in a batch. A value with more elements would be too long.
const MAX_ENTRIES: usize = 1 << 21;
/// The most bytes of the values of fixed length in a batch of a leaf with lists.
const MAX_ENTRY_BYTES: usize = 64 << 20;

/// The index of a column that is not in use.
const UNUSED: usize = usize::MAX;

/// Reads the rows of a Parquet file.
pub(crate) struct ParquetReader {
    path: PathBuf,
    file: Arc<File>,
    /// The length of the file in bytes.
    bytes: u64,
    metadata: ParquetMetaData,
    projection: Projection,
    /// The number of bytes at which a nested value is too long.
    most: usize,
    /// The columns in use.
    columns: Vec<OpenColumn>,
    /// For each column of the file, its index in `columns`; [`UNUSED`] for the others.
    places: Vec<usize>,
    next_group: usize,
    /// The number of rows of the current row group.
    group_rows: u64,
    /// The number of rows of the current row group that have been read.
    read_rows: u64,
    row: u64,
}

/// A column in use.
struct OpenColumn {
    field: ParquetField,
    levels: FieldLevels,
    /// The values of the column in the current row group.
    values: Option<ColumnValues>,
}

/// The values of a column in a row group.
struct ColumnValues {
    reader: ParquetRecordBatchReader,
    /// The allowance of each leaf, and the number of entries that its pages may have in a batch.
    allowances: Vec<(Allowance, usize)>,
    /// Whether rows have lists.
    is_nested: bool,
    /// The number of rows that are decoded at a time.
    rows: usize,
    /// The values that were decoded last.
    batch: Option<ArrayRef>,
    /// The number of values in `batch`.
    len: usize,
    /// The index of the current value in `batch`.
    at: usize,
}

impl ParquetReader {
    /// Reads from `file`, which has `bytes` bytes. Errors name `path`.
    pub(crate) fn new(
        path: &Path,
        (file, bytes): (File, u64),
        options: &IngestOptions,
    ) -> Result<Self, IngestError> {
        let metadata =
            guarded(|| read_metadata(&file, bytes)).map_err(|reason| damaged(path, None, &reason))?;
        let damaged = |error: ParquetError| damaged(path, None, &error.to_string());
        let fields = fields(metadata.file_metadata().schema_descr(), |name| {
            options.key.iter().chain(&options.value).any(|column| column == name)
        });
        let fields = fields.map_err(damaged)?;
        let names: Vec<String> = fields.iter().map(|field| field.name.clone()).collect();
        let projection = Projection::new(path, &names, options)?;
        let projection = projection.typed(|index| fields[index].column_type());
        let mut columns = Vec::new();
        let mut places = vec![UNUSED; fields.len()];
        for used in projection.columns() {
            if places[used.index] != UNUSED {
                continue;
            }
            let field = fields[used.index].clone();
            field.check().map_err(|kind| IngestError::UnsupportedColumn {
                path: path.into(),
                column: field.name.clone(),
                kind,
            })?;
            let levels = field.levels().map_err(damaged)?;
            places[used.index] = columns.len();
            columns.push(OpenColumn { field, levels, values: None });
        }
        Ok(Self {
            path: path.into(),
            file: file.into(),
            bytes,
            metadata,
            projection,
            most: MAX_KEY_SIZE.max(options.max_value_size as usize),
            columns,
            places,
            next_group: 0,
            group_rows: 0,
            read_rows: 0,
            row: 0,
        })
    }

    /// Advances to the next row; returns `false` at the end of the file.
    fn next_row(&mut self) -> Result<bool, IngestError> {
        while self.read_rows == self.group_rows {
            if self.next_group == self.metadata.num_row_groups() {
                return Ok(false);
            }
            self.next_group += 1;
            self.open_group()?;
        }
        self.row += 1;
        for at in 0..self.columns.len() {
            let Some(values) = &mut self.columns[at].values else { continue };
            let mut step = values.step();
            if step.is_err() && values.is_nested && values.rows > FEW_ROWS {
                step = self.restart(at);
            }
            step.map_err(|reason| damaged(&self.path, Some(&self.columns[at].field.name), &reason))?;
        }
        self.read_rows += 1;
        Ok(true)
    }

    /// Opens the columns of the next row group.
    fn open_group(&mut self) -> Result<(), IngestError> {
        let rows = self.metadata.row_group(self.next_group - 1).num_rows();
        self.group_rows =
            rows.try_into().map_err(|_| damaged(&self.path, None, "a row group has less than no rows"))?;
        self.read_rows = 0;
        for at in 0..self.columns.len() {
            guarded(|| self.open_column(at, BATCH_ROWS))
                .map_err(|reason| damaged(&self.path, Some(&self.columns[at].field.name), &reason))?;
        }
        Ok(())
    }

    /// Opens a column in the current row group. At most `most_rows` rows are decoded at a time.
    fn open_column(&mut self, at: usize, most_rows: usize) -> Result<(), ParquetError> {
        let column = &mut self.columns[at];
        let group = self.metadata.row_group(self.next_group - 1);
        let leaves = group.columns().get(column.field.leaves.clone());
        let leaves = leaves.ok_or_else(|| ParquetError::EOF("a row group has too few columns".into()))?;
        let allowances: Vec<_> = leaves.iter().map(allowance).collect();
        let pages = GroupPages {
            file: &self.file,
            bytes: self.bytes,
            metadata: &self.metadata,
            group,
            leaves,
            allowances: &allowances,
        };
        let rows = batch_rows(leaves, self.group_rows).min(most_rows);
        let reader = ParquetRecordBatchReader::try_new_with_row_groups(&column.levels, &pages, rows, None)?;
        let is_nested = is_nested(leaves);
        column.values =
            Some(ColumnValues { reader, allowances, is_nested, rows, batch: None, len: 0, at: 0 });
        Ok(())
    }

    /// Reads a column of the row group again, [`FEW_ROWS`] rows at a time, up to the current row. A batch of many rows may have
    /// more elements than is usual in their row group.
    fn restart(&mut self, at: usize) -> Result<(), String> {
        guarded(|| self.open_column(at, FEW_ROWS))?;
        let values = self.columns[at].values.as_mut().expect("the column is open");
        (0..=self.read_rows).try_for_each(|_| values.step())
    }
}

impl ColumnValues {
    /// Advances to the next value.
    #[inline]
    fn step(&mut self) -> Result<(), String> {
        self.at += 1;
        if self.at < self.len { Ok(()) } else { self.next_batch() }
    }

    /// Decodes the next values, and advances to the first of them.
    fn next_batch(&mut self) -> Result<(), String> {
        for (allowance, entries) in &self.allowances {
            allowance.set(*entries);
        }
        self.len = 0;
        self.batch = None;
        let batch = guarded(|| match self.reader.next() {
            Some(Ok(batch)) => Ok(batch),
            Some(Err(ArrowError::ParquetError(reason))) => Err(reason),
            Some(Err(error)) => Err(error.to_string()),
            None => Err("it has fewer rows than its row group".into()),
        })?;
        self.len = batch.num_rows();
        self.batch = batch.columns().first().cloned();
        self.at = 0;
        Ok(())
    }
}

impl Iterator for ParquetReader {
    type Item = Result<Record, IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.next_row() {
            Ok(true) => {}
            Ok(false) => return None,
            Err(error) => return Some(Err(error)),
        }
        let place = || Place { path: self.path.clone(), row: self.row, line: None };
        Some(self.projection.record(place, |used| {
            let column = &self.columns[self.places[used.index]];
            let values = column.values.as_ref().expect("the columns in use are open");
            let batch = values.batch.as_ref().expect("a value is at hand");
            cell(batch, &column.field.form, values.at, self.most).map_err(|reason| match reason {
                NoValue::BadUtf8 => IngestError::BadUtf8 { place: place(), column: Some(used.name.clone()) },
                NoValue::OutOfRange => damaged(&self.path, Some(&used.name), "the time is out of range"),
            })
        }))
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

/// The pages of a column in a row group, for the Arrow reader.
struct GroupPages<'a> {
    file: &'a Arc<File>,
    bytes: u64,
    metadata: &'a ParquetMetaData,
    group: &'a RowGroupMetaData,
    /// The leaves of the column.
    leaves: &'a [ColumnChunkMetaData],
    allowances: &'a [(Allowance, usize)],
}

impl RowGroups for GroupPages<'_> {
    fn num_rows(&self) -> usize {
        usize::try_from(self.group.num_rows()).unwrap_or(0)
    }

    fn column_chunks(&self, leaf: usize) -> Result<Box<dyn PageIterator>, ParquetError> {
        let (allowance, _) = &self.allowances[leaf];
        let pages =
            Pages::new(self.file, self.bytes, &self.leaves[leaf], self.num_rows(), allowance.clone())?;
        Ok(Box::new(LeafPages(Some(pages))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(iter::once(self.group))
    }

    fn metadata(&self) -> &ParquetMetaData {
        self.metadata
    }
}

/// The pages of one leaf in one row group.
struct LeafPages(Option<Pages>);

impl Iterator for LeafPages {
    type Item = Result<Box<dyn PageReader>, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(|pages| Ok(Box::new(pages) as _))
    }
}

impl PageIterator for LeafPages {}

/// Returns a fresh allowance for a leaf, and the number of entries that it has for a batch.
fn allowance(leaf: &ColumnChunkMetaData) -> (Allowance, usize) {
    let entries = MAX_ENTRY_BYTES / fixed_length(leaf.column_descr()).max(1);
    (Allowance::default(), entries.min(MAX_ENTRIES))
}

/// Returns the length of a value in bytes if all values of the leaf have that length, else 0.
fn fixed_length(leaf: &ColumnDescriptor) -> usize {
    match leaf.physical_type() {
        Physical::FIXED_LEN_BYTE_ARRAY => usize::try_from(leaf.type_length()).unwrap_or(0),
        _ => 0,
    }
}

/// Returns whether the rows of a column have lists.
fn is_nested(leaves: &[ColumnChunkMetaData]) -> bool {
    leaves.iter().any(|leaf| leaf.column_descr().max_rep_level() > 0)
}

/// Returns how many rows of a column are decoded at a time.
fn batch_rows(leaves: &[ColumnChunkMetaData], group_rows: u64) -> usize {
    let per_row = |all: u64| usize::try_from(all.checked_div(group_rows).unwrap_or(0)).unwrap_or(usize::MAX);
    let stated = |number: i64| u64::try_from(number).unwrap_or(0);
    let bytes = leaves.iter().map(|leaf| stated(leaf.uncompressed_size())).fold(0, u64::saturating_add);
    let fixed: usize = leaves.iter().map(|leaf| fixed_length(leaf.column_descr())).sum();
    let rows = (BATCH_BYTES / per_row(bytes).max(fixed).max(1)).clamp(1, BATCH_ROWS);
    if !is_nested(leaves) {
        return rows;
    }
    let entries = leaves.iter().map(|leaf| per_row(stated(leaf.num_values()))).max().unwrap_or(0);
    rows.min((BATCH_ENTRIES / entries.max(1)).max(FEW_ROWS))
}

/// Returns the error of a file that cannot be read.
fn damaged(path: &Path, column: Option<&str>, reason: &str) -> IngestError {
    let message = match column {
        Some(column) => format!("column {column:?}: {reason}"),
        None => reason.into(),
    };
    IngestError::Parquet { path: path.into(), message }
}

/// Runs a step of the crate, which panics on some damaged files instead of returning an error.
fn guarded<T, E: ToString>(step: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(outcome) => outcome.map_err(|error| error.to_string()),
        Err(_) => Err("the file is damaged".into()),
    }
}
