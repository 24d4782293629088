//! A snapshot on a backend: static inside, `dyn` once.

use std::{path::Path, sync::Arc};

use hush_cpu::Cpu;
use hush_ops::{
    OpsError,
    contract::LweOps,
    tiling::{TiledDb, Tiling},
};
use hush_protocol::{
    ProtocolError,
    descriptor::Descriptor,
    double, simple,
    table::{Protocol, TableParams},
    wire::{self, QuerySizes},
};
use hush_store::snapshot::{DB_FILE, HINT_FILE, SECOND_DB_FILE, Snapshot, SnapshotError, Verify};
use thiserror::Error;

use crate::{Blob, ClientKeys, Engine, EngineError};

/// Queries that one scan answers at most: what the kernels take in one pass.
const MAX_BATCH: usize = 64;

/// Why a snapshot could not be served.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Reading it.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// Its descriptor.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The backend.
    #[error(transparent)]
    Ops(#[from] OpsError),
}

/// Opens the snapshot in `dir` on the CPU backend and makes it resident.
///
/// # Errors
/// [`OpenError`] names the file and the reason.
pub fn open(dir: &Path, verify: Verify, cpu: Arc<Cpu>) -> Result<Arc<dyn Engine>, OpenError> {
    let mut snapshot = Snapshot::open(dir, verify)?;
    let descriptor = snapshot.header().descriptor.clone();
    descriptor.check()?;
    let params = descriptor.params()?;
    let mut load = |name: &str, tiling: Tiling| -> Result<_, OpenError> {
        let file = snapshot.take(name)?;
        file.make_resident()?;
        Ok(cpu.open_db(TiledDb::new(tiling, Arc::new(file))?)?)
    };
    let db = load(DB_FILE, params.shape().tiling())?;
    let second_db = match params.protocol() {
        Protocol::Double => {
            Some(load(SECOND_DB_FILE, Tiling::new(params.second_hint_rows(), params.shape().blocks))?)
        }
        Protocol::Frodo | Protocol::Simple => None,
    };
    let hint = Blob {
        hash: descriptor.hint.blake3,
        file: Arc::new(snapshot.take(HINT_FILE)?.into_file()),
        bytes: descriptor.hint.bytes,
    };
    let json = descriptor.to_json().into();
    Ok(Arc::new(Hosted { backend: cpu, params, db, second_db, descriptor, json, hint }))
}

/// A table on a backend.
struct Hosted<B: LweOps> {
    backend: Arc<B>,
    params: TableParams,
    db: B::Db,
    second_db: Option<B::Db>,
    descriptor: Descriptor,
    json: Arc<[u8]>,
    hint: Blob,
}

impl<B: LweOps> Engine for Hosted<B> {
    fn descriptor_json(&self) -> Arc<[u8]> {
        self.json.clone()
    }

    fn epoch(&self) -> [u8; 32] {
        self.descriptor.epoch
    }

    fn protocol(&self) -> &str {
        self.params.protocol().name()
    }

    fn query_bytes(&self) -> QuerySizes {
        let (first, second) = self.params.query_bytes();
        QuerySizes::lwe(first, second)
    }

    fn answer_bytes(&self) -> usize {
        self.params.answer_bytes()
    }

    fn max_batch(&self) -> usize {
        MAX_BATCH
    }

    fn blobs(&self) -> Vec<Blob> {
        vec![self.hint.clone()]
    }

    fn answer(
        &self,
        queries: &[wire::Query],
        _keys: &[Option<ClientKeys>],
    ) -> Result<Vec<Vec<u8>>, EngineError> {
        let answers = match &self.second_db {
            None => simple::answer(&*self.backend, &self.db, &self.params, queries),
            Some(second) => double::answer(&*self.backend, &self.db, second, &self.params, queries),
        };
        answers.map_err(|error| EngineError::Internal(error.to_string()))
    }
}
