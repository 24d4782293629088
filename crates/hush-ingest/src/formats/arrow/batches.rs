//! Record batches of Arrow that this process holds or receives from another component in it. Nothing is encoded, and no row is
//! copied before it becomes a record.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use arrow_array::RecordBatchReader;

use crate::IngestError;

/// A stream of batches, which is read once.
type BatchReader = Box<dyn RecordBatchReader + Send>;

/// The batches of one stream. Clones share the stream, and only one of them can read it.
#[derive(Clone)]
pub struct Batches(Arc<SharedStream>);

struct SharedStream {
    name: PathBuf,
    stream: Mutex<Option<BatchReader>>,
}

impl Batches {
    /// Wraps a stream of batches. Messages and the table's header refer to it as `name`.
    pub fn new(name: &str, stream: BatchReader) -> Self {
        Self(Arc::new(SharedStream { name: name.into(), stream: Mutex::new(Some(stream)) }))
    }

    pub(crate) fn name(&self) -> &Path {
        &self.0.name
    }

    /// Takes the stream for a reader. Fails if the stream was taken before.
    pub(crate) fn take(&self) -> Result<BatchReader, IngestError> {
        let taken = self.0.stream.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or_else(|| IngestError::Arrow {
            path: self.0.name.clone(),
            message: "its batches were read already: give it anew".into(),
        })
    }
}

impl PartialEq for Batches {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Batches {}

impl fmt::Debug for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Batches({})", self.0.name.display())
    }
}
