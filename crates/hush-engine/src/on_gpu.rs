//! A table on a GPU, which may fail for good.

use std::sync::Arc;

use hush_cuda::Cuda;
use hush_protocol::wire::{self, QuerySizes};

use crate::{Backend, Blob, ClientKeys, Engine, EngineError, KeySpec, promises::Promise};

/// A table on a GPU, with its room there.
pub(crate) struct OnGpu {
    pub(crate) engine: Arc<dyn Engine>,
    /// Dropped after the table.
    pub(crate) room: Room,
}

/// Room of a device for one table: what is promised to it. When it is dropped, nothing of the table stays: what the device keeps
/// for later goes back to the driver.
pub(crate) struct Room {
    cuda: Arc<Cuda>,
    _promise: Arc<Promise>,
}

impl Room {
    pub(crate) fn new(cuda: Arc<Cuda>, promise: Arc<Promise>) -> Self {
        Self { cuda, _promise: promise }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.cuda.release_unused();
    }
}

impl OnGpu {
    /// The error, unless it is that of a device that has failed for good.
    fn judge(&self, error: EngineError) -> EngineError {
        match (&error, self.lost()) {
            (EngineError::Internal(_), Some(reason)) => EngineError::Lost { reason },
            _ => error,
        }
    }
}

impl Engine for OnGpu {
    fn descriptor_json(&self) -> Arc<[u8]> {
        self.engine.descriptor_json()
    }

    fn epoch(&self) -> [u8; 32] {
        self.engine.epoch()
    }

    fn protocol(&self) -> &str {
        self.engine.protocol()
    }

    fn backend(&self) -> Backend {
        self.engine.backend()
    }

    fn query_bytes(&self) -> QuerySizes {
        self.engine.query_bytes()
    }

    fn answer_bytes(&self) -> usize {
        self.engine.answer_bytes()
    }

    fn max_batch(&self) -> usize {
        self.engine.max_batch()
    }

    fn blobs(&self) -> Vec<Blob> {
        self.engine.blobs()
    }

    fn keys(&self) -> Option<KeySpec> {
        self.engine.keys()
    }

    fn open_keys(&self, body: &[u8]) -> Result<ClientKeys, EngineError> {
        self.engine.open_keys(body).map_err(|error| self.judge(error))
    }

    fn answer(
        &self,
        queries: &[wire::Query],
        keys: &[Option<ClientKeys>],
    ) -> Result<Vec<Vec<u8>>, EngineError> {
        self.engine.answer(queries, keys).map_err(|error| self.judge(error))
    }

    fn lost(&self) -> Option<String> {
        self.room.cuda.device().lost().map(str::to_owned)
    }
}
