//! Parquet: flat columns, and the fields of structs as `outer.inner`; lists and maps are refused if asked for.

use std::{
    fs::File,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
};

use parquet::{column::reader::get_column_reader, errors::ParquetError, file::metadata::ParquetMetaData};

use super::{
    IngestError, IngestOptions, Place, Progress, ProgressUnit, Reader, Record, open_file,
    parquet_column::{ColumnValues, Kind},
    parquet_pages::{Pages, read_metadata},
    record::Projection,
};

/// Rows decoded at a time.
const BATCH_ROWS: usize = 1024;

/// Reads the rows of a Parquet file, row group after row group.
pub(super) struct ParquetReader {
    path: PathBuf,
    file: Arc<File>,
    /// Bytes of the file.
    bytes: u64,
    metadata: ParquetMetaData,
    projection: Projection,
    /// The columns of the current row group, in the order of the file; `None` for one that is not in use.
    columns: Vec<Option<ColumnValues>>,
    /// The kinds of the columns, in the order of the file; `None` for one that is not in use.
    kinds: Vec<Option<Kind>>,
    next_group: usize,
    /// Rows of the current row group that are not decoded yet.
    group_rows: usize,
    /// Rows of the decoded batch that are not read yet.
    batch: Range<usize>,
    row: u64,
}

impl ParquetReader {
    pub(super) fn open(path: &Path, options: &IngestOptions) -> Result<Self, IngestError> {
        let (file, bytes) = open_file(path)?;
        let metadata = guarded(path, || read_metadata(&file, bytes))?;
        let schema = metadata.file_metadata().schema_descr();
        let names: Vec<String> = schema.columns().iter().map(|column| column.path().string()).collect();
        let projection = Projection::new(path, &names, options)?;
        let mut kinds = vec![None; names.len()];
        for column in projection.columns() {
            let kind = Kind::of(&schema.column(column.index)).map_err(|kind| {
                IngestError::UnsupportedColumn { path: path.into(), column: column.name.clone(), kind }
            })?;
            kinds[column.index] = Some(kind);
        }
        let columns = Vec::new();
        Ok(Self {
            path: path.into(),
            file: file.into(),
            bytes,
            metadata,
            projection,
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
                    let pages = Pages::new(file, *bytes, group.column(index), rows)?;
                    let descriptor = metadata.file_metadata().schema_descr().column(index);
                    ColumnValues::new(get_column_reader(descriptor, Box::new(pages)), kind)
                };
                let open =
                    |(index, kind): (usize, &Option<Kind>)| kind.map(|kind| read(index, kind)).transpose();
                *columns = kinds.iter().enumerate().map(open).collect::<Result<_, ParquetError>>()?;
            }
            let rows = BATCH_ROWS.min(*group_rows);
            for column in columns.iter_mut().flatten() {
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
            let values = self.columns[column.index].as_ref().expect("the columns in use are loaded");
            let cell = values.cell(at);
            cell.map_err(|_| IngestError::BadUtf8 { place: place(), column: Some(column.name.clone()) })
        }))
    }
}

impl Reader for ParquetReader {
    fn progress(&self) -> Progress {
        let total = u64::try_from(self.metadata.file_metadata().num_rows()).ok();
        Progress { read: self.row, total, unit: ProgressUnit::Rows }
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
