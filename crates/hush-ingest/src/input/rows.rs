//! Records within this program, as an input.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use hush_protocol::schema::Schema;

use crate::{IngestError, Progress, ProgressUnit, Reader, Record, record::projection::Projection};

/// Records, with their columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowBatch(Arc<BatchRows>);

#[derive(Debug, PartialEq, Eq)]
struct BatchRows {
    name: PathBuf,
    records: Vec<Record>,
    columns: Schema,
}

impl RowBatch {
    /// Creates the input. Messages call it `name`. Options for columns do not apply to it.
    pub fn new(name: &str, records: Vec<Record>, columns: Schema) -> Self {
        Self(Arc::new(BatchRows { name: name.into(), records, columns }))
    }

    pub(crate) fn name(&self) -> &Path {
        &self.0.name
    }

    pub(crate) fn reader(&self) -> RowBatchReader {
        RowBatchReader { batch: self.0.clone(), read: 0 }
    }
}

/// Reads a batch.
pub(crate) struct RowBatchReader {
    batch: Arc<BatchRows>,
    read: usize,
}

impl Iterator for RowBatchReader {
    type Item = Result<Record, IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.batch.records.get(self.read)?;
        self.read += 1;
        Some(Ok(record.clone()))
    }
}

impl Reader for RowBatchReader {
    fn progress(&self) -> Progress {
        let total = Some(self.batch.records.len() as u64);
        Progress { read: self.read as u64, total, unit: ProgressUnit::Rows }
    }

    fn projection(&self) -> Option<&Projection> {
        None
    }

    fn columns(&self) -> Option<Schema> {
        Some(self.batch.columns.clone())
    }
}
