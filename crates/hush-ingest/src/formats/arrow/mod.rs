//! Arrow IPC: a stream of record batches, or a file of them (Feather).
//!
//! This program takes the messages apart, and the crate decodes them. No length in the input can therefore allocate more memory
//! than the input has bytes, or than a batch may have.

pub(crate) mod batches;
pub(crate) mod messages;
pub(crate) mod types;
pub(crate) mod value;

use std::{
    collections::HashMap,
    io,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_ipc::{
    MessageHeader, MetadataVersion, RecordBatch as BatchMessage,
    reader::{read_dictionary, read_record_batch},
};
use arrow_schema::{ArrowError, SchemaRef};

use crate::{
    IngestError, IngestOptions, MAX_KEY_SIZE, Place, Progress, ProgressUnit, Reader, Record,
    formats::{
        arrow::{
            messages::{CUT_OFF, MAX_BATCH, Messages, damaged, message, too_long},
            types::column_type,
            value::ArrowColumn,
        },
        parquet::form::NoValue,
    },
    record::projection::Projection,
};

/// The base-two logarithm of the greatest expansion by decompression: a block of Zstandard of four bytes expands to 128 KiB.
const MOST_COMPRESSION_LOG: u32 = 15;

/// The source of the batches.
enum BatchSource {
    /// An input, whose messages are decoded.
    Decoded { messages: Messages, schema: SchemaRef, dictionaries: HashMap<i64, ArrayRef> },
    /// A stream of this process, which has the batches already.
    Own(Box<dyn RecordBatchReader + Send>),
}

/// Reads the rows of an Arrow stream.
pub(crate) struct ArrowReader {
    path: PathBuf,
    batches: BatchSource,
    projection: Projection,
    /// The columns of the input, whether in use or not. The projection refers to them by their index here.
    columns: Vec<ArrowColumn>,
    /// The columns of the schema that are decoded.
    decoded: Vec<usize>,
    /// The number of bytes at which a nested value is too long.
    most: usize,
    batch: Option<RecordBatch>,
    /// Rows of the batch that are not read yet.
    rows: Range<usize>,
    row: u64,
}

impl ArrowReader {
    /// Reads `messages`. Errors name `path`.
    pub(crate) fn new(
        path: &Path,
        mut messages: Messages,
        options: &IngestOptions,
    ) -> Result<Self, IngestError> {
        let schema = guarded(path, || messages.schema())?;
        let batches = BatchSource::Decoded { messages, schema: schema.clone(), dictionaries: HashMap::new() };
        Self::of(path, &schema, batches, options)
    }

    /// Reads the batches of a stream of this process.
    pub(crate) fn of_batches(
        path: &Path,
        stream: Box<dyn RecordBatchReader + Send>,
        options: &IngestOptions,
    ) -> Result<Self, IngestError> {
        Self::of(path, &stream.schema(), BatchSource::Own(stream), options)
    }

    fn of(
        path: &Path,
        schema: &SchemaRef,
        batches: BatchSource,
        options: &IngestOptions,
    ) -> Result<Self, IngestError> {
        let columns = ArrowColumn::all(schema, |name| {
            options.key.iter().chain(&options.value).any(|column| column == name)
        });
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        let projection = Projection::new(path, &names, options)?;
        let projection = projection.typed(|index| column_type(columns[index].field()));
        let mut decoded = Vec::new();
        for used in projection.columns() {
            let column = &columns[used.index];
            column.check().map_err(|kind| IngestError::UnsupportedColumn {
                path: path.into(),
                column: column.name.clone(),
                kind,
            })?;
            decoded.push(column.top());
        }
        decoded.sort_unstable();
        decoded.dedup();
        Ok(Self {
            path: path.into(),
            batches,
            projection,
            columns,
            decoded,
            most: MAX_KEY_SIZE.max(options.max_value_size as usize),
            batch: None,
            rows: 0..0,
            row: 0,
        })
    }
}

impl ArrowReader {
    /// Reads the next batch; returns `false` at the end of the stream.
    fn next_batch(&mut self) -> Result<bool, IngestError> {
        let Self { path, batches, decoded, batch, rows, .. } = self;
        let (messages, schema, dictionaries) = match batches {
            BatchSource::Decoded { messages, schema, dictionaries } => (messages, schema, dictionaries),
            BatchSource::Own(stream) => {
                let next =
                    guarded(path, || stream.next().transpose()?.map(|all| all.project(decoded)).transpose())?;
                let is_there = next.is_some();
                *rows = 0..next.as_ref().map_or(0, RecordBatch::num_rows);
                *batch = next;
                return Ok(is_there);
            }
        };
        guarded(path, || {
            while let Some((metadata, body)) = messages.next()? {
                let message = message(&metadata)?;
                let version: MetadataVersion = message.version();
                match message.header_type() {
                    MessageHeader::DictionaryBatch => {
                        let dictionary = message
                            .header_as_dictionary_batch()
                            .ok_or_else(|| damaged("a dictionary is not one"))?;
                        if let Some(data) = dictionary.data() {
                            check_lengths(&data, &body)?;
                        }
                        read_dictionary(&body.into(), dictionary, schema, dictionaries, &version)?;
                    }
                    MessageHeader::RecordBatch => {
                        let data =
                            message.header_as_record_batch().ok_or_else(|| damaged("a batch is not one"))?;
                        check_lengths(&data, &body)?;
                        let schema = schema.clone();
                        let projection = Some(&decoded[..]);
                        let read = read_record_batch(
                            &body.into(),
                            data,
                            schema,
                            dictionaries,
                            projection,
                            &version,
                        )?;
                        *rows = 0..read.num_rows();
                        *batch = Some(read);
                        return Ok(true);
                    }
                    _ => return Err(damaged("there is something else between its batches")),
                }
            }
            Ok(false)
        })
    }

    fn record(&self, batch: &RecordBatch, row: usize) -> Result<Record, IngestError> {
        let place = || Place { path: self.path.clone(), row: self.row, line: None };
        self.projection.record(place, |used| {
            let column = &self.columns[used.index];
            let top = self.decoded.binary_search(&column.top()).expect("it is in use");
            column.cell(batch.column(top), row, self.most).map_err(|reason| match reason {
                NoValue::BadUtf8 => {
                    IngestError::BadUtf8 { place: place(), column: Some(column.name.clone()) }
                }
                NoValue::OutOfRange => IngestError::Arrow {
                    path: self.path.clone(),
                    message: format!(
                        "row {}, column \"{}\": the time is out of range",
                        self.row, column.name
                    ),
                },
            })
        })
    }
}

impl Iterator for ArrowReader {
    type Item = Result<Record, IngestError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.rows.is_empty() {
            match self.next_batch() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
        let row = self.rows.next()?;
        self.row += 1;
        self.batch.as_ref().map(|batch| self.record(batch, row))
    }
}

impl Reader for ArrowReader {
    fn progress(&self) -> Progress {
        match &self.batches {
            BatchSource::Decoded { messages, .. } => messages.progress(),
            BatchSource::Own(_) => Progress { read: self.row, total: None, unit: ProgressUnit::Rows },
        }
    }

    fn projection(&self) -> Option<&Projection> {
        Some(&self.projection)
    }
}

/// Refuses a buffer that claims to decompress to more than is possible, or to more than a batch may have.
fn check_lengths(batch: &BatchMessage<'_>, body: &[u8]) -> Result<(), ArrowError> {
    if batch.compression().is_none() {
        return Ok(());
    }
    let mut all: u64 = 0;
    for buffer in batch.buffers().into_iter().flatten() {
        let bytes = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let bytes = bytes.and_then(|(start, length)| body.get(start..)?.get(..length)).unwrap_or_default();
        // -1 marks a buffer that is not compressed. The decoder refuses a buffer that is missing.
        let stated = bytes.first_chunk().copied().map_or(-1, i64::from_le_bytes);
        let stated = u64::try_from(stated).unwrap_or_default();
        let length = bytes.len() as u64;
        if stated > length << MOST_COMPRESSION_LOG {
            return Err(damaged("a buffer is to be longer than it can be; write the stream again"));
        }
        all = all.saturating_add(stated);
    }
    if all > MAX_BATCH { Err(too_long()) } else { Ok(()) }
}

/// Runs a step of the decoder, which may panic on damaged input instead of returning an error.
fn guarded<T>(path: &Path, step: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, IngestError> {
    let message = match catch_unwind(AssertUnwindSafe(step)) {
        Ok(Ok(done)) => return Ok(done),
        Ok(Err(ArrowError::IpcError(message))) => message,
        Ok(Err(ArrowError::IoError(_, source))) if source.kind() == io::ErrorKind::UnexpectedEof => {
            CUT_OFF.into()
        }
        Ok(Err(ArrowError::IoError(_, source))) => {
            return Err(IngestError::Unreadable { path: path.into(), source });
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => "the input is damaged".into(),
    };
    Err(IngestError::Arrow { path: path.into(), message })
}
