//! A snapshot on a backend: static inside, `dyn` once.

use std::{path::Path, sync::Arc};

use hush_he::params::RingContext;
use hush_ops::{
    OpsError, check,
    contract::{ColumnOps, LweOps, PackOps, RingOps},
    ntt_tiling::NttTiledDb,
    tiling::{TiledDb, Tiling},
};
use hush_protocol::{
    ProtocolError, colpack_s,
    column_packing::ColumnScheme,
    column_table::ColumnTable,
    descriptor::Descriptor,
    double,
    lwe_table::LweTable,
    pack_table::PackTable,
    ring_table::RingTable,
    simple,
    table::{Protocol, TableParams},
    wire::{self, QuerySizes},
};
use hush_store::snapshot::{
    CHAIN_FILE, COLUMNS_FILE, DB_FILE, HINT_FILE, LIFTED_FILE, MappedFile, SECOND_DB_FILE, Snapshot,
    SnapshotError, Verify,
};
use thiserror::Error;

use crate::{
    Backend, Backends, Blob, ClientKeys, DoesNotFit, Engine, EngineError, Progress,
    backend::{Named, Seat},
    build::chain_polys,
    hosted_column::{self, HostedColumn},
    hosted_pack::{self, HostedPack},
    hosted_ring::{self, HostedRing},
};

/// Queries that one scan answers at most: what the kernels take in one pass.
pub(crate) const MAX_BATCH: usize = 64;
/// What the queries and answers of a batch may always take.
const BATCH_BYTES: usize = 1 << 30;

/// Why a snapshot could not be served.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Reading it.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// Its descriptor.
    #[error(transparent)]
    Protocol(ProtocolError),
    /// The backend.
    #[error(transparent)]
    Ops(#[from] OpsError),
    /// The GPU that was asked for.
    #[error(transparent)]
    Memory(#[from] DoesNotFit),
}

impl From<ProtocolError> for OpenError {
    /// The backend's errors are its own, whichever way they come.
    fn from(error: ProtocolError) -> Self {
        match error {
            ProtocolError::Ops(error) => Self::Ops(error),
            error => Self::Protocol(error),
        }
    }
}

/// Bytes that the queries and answers of a batch may take beside files of `scanned` bytes: a quarter of them, or 1 GiB.
pub(crate) fn batch_room(scanned: usize) -> usize {
    BATCH_BYTES.max(scanned / 4)
}

/// What a table says of itself.
pub(crate) struct Identity {
    pub(crate) epoch: [u8; 32],
    pub(crate) json: Arc<[u8]>,
    pub(crate) max_batch: usize,
}

/// Opens the snapshot in `dir` on one of the backends and makes it resident there. `progress` is told what it takes of a device's
/// memory, before anything is loaded, and of the upload; and why the CPU takes its place, if so.
///
/// # Errors
/// [`OpenError`] names the file and the reason.
pub fn open(
    dir: &Path,
    verify: Verify,
    backends: &Backends,
    progress: &dyn Progress,
) -> Result<Arc<dyn Engine>, OpenError> {
    let stored = Stored::open(dir, verify)?;
    let Some(Seat { gpu, plan, free }) = backends.gpu_to_serve(&stored.params, progress)? else {
        return on_cpu(backends, stored);
    };
    match gpu.host(stored, &plan, free, progress) {
        // It was planned to fit, but others may have taken the memory, the device may have failed, or not take the parameter set.
        // What is wrong with the table itself is found on the CPU as well.
        Err(OpenError::Ops(error)) if backends.is_free_to_choose() => {
            progress.note(&format!("on the CPU: {error}"));
            // The other one is without the files that were taken out of it.
            on_cpu(backends, Stored::open(dir, verify)?)
        }
        outcome => outcome,
    }
}

fn on_cpu(backends: &Backends, stored: Stored) -> Result<Arc<dyn Engine>, OpenError> {
    let batch = host_batch(&stored.params);
    host(backends.cpu().clone(), stored, batch)
}

/// A table as it is stored.
pub(crate) struct Stored {
    snapshot: Snapshot,
    descriptor: Descriptor,
    params: TableParams,
}

impl Stored {
    fn open(dir: &Path, verify: Verify) -> Result<Self, OpenError> {
        let snapshot = Snapshot::open(dir, verify)?;
        let descriptor = snapshot.header().descriptor.clone();
        descriptor.check()?;
        let params = descriptor.params()?;
        Ok(Self { snapshot, descriptor, params })
    }
}

/// Queries that one scan on the CPU answers at most.
fn host_batch(params: &TableParams) -> usize {
    match params {
        TableParams::Lwe(_) => MAX_BATCH,
        TableParams::Ring(table) => hosted_ring::max_batch(table),
        TableParams::Pack(table) => hosted_pack::max_batch(table),
        TableParams::Column(table) => hosted_column::max_batch(table),
    }
}

/// Makes a table resident on `backend`, where one scan answers at most `max_batch` queries.
pub(crate) fn host<B: PackOps + ColumnOps + Named + 'static>(
    backend: Arc<B>,
    stored: Stored,
    max_batch: usize,
) -> Result<Arc<dyn Engine>, OpenError> {
    let Stored { mut snapshot, descriptor, params } = stored;
    let identity = Identity { epoch: descriptor.epoch, json: descriptor.to_json().into(), max_batch };
    match params {
        TableParams::Lwe(params) => open_lwe(&mut snapshot, &descriptor, params, identity, backend),
        TableParams::Ring(table) => open_ring(&mut snapshot, table, identity, backend),
        TableParams::Pack(table) => open_pack(&mut snapshot, table, identity, backend),
        TableParams::Column(table) => open_column(&mut snapshot, table, identity, backend),
    }
}

fn open_lwe<B: LweOps + Named + 'static>(
    snapshot: &mut Snapshot,
    descriptor: &Descriptor,
    params: LweTable,
    identity: Identity,
    backend: Arc<B>,
) -> Result<Arc<dyn Engine>, OpenError> {
    let mut load = |name: &str, tiling: Tiling| -> Result<_, OpenError> {
        Ok(backend.open_db(TiledDb::new(tiling, resident::<B>(snapshot, name)?)?)?)
    };
    let db = load(DB_FILE, params.tiling())?;
    let second_db = match params.protocol() {
        Protocol::Double => Some(load(SECOND_DB_FILE, params.second_tiling())?),
        _ => None,
    };
    let hints = descriptor.hint.iter().map(|hint| -> Result<_, OpenError> {
        let file = Arc::new(snapshot.take(HINT_FILE)?.into_file());
        Ok(Blob { hash: hint.blake3, file, bytes: hint.bytes })
    });
    let blobs = hints.collect::<Result<_, _>>()?;
    Ok(Arc::new(Hosted { backend, params, db, second_db, identity, blobs }))
}

fn open_ring<B: RingOps + Named + 'static>(
    snapshot: &mut Snapshot,
    table: RingTable,
    identity: Identity,
    backend: Arc<B>,
) -> Result<Arc<dyn Engine>, OpenError> {
    let context = Arc::new(RingContext::new(*table.ring()));
    let ring = backend.open_ring(context.clone())?;
    let db = NttTiledDb::new(table.tiling(), resident::<B>(snapshot, DB_FILE)?)?;
    let db = backend.open_ntt_db(&ring, db)?;
    Ok(Arc::new(HostedRing { backend, context, ring, table, db, identity }))
}

fn open_pack<B: PackOps + Named + 'static>(
    snapshot: &mut Snapshot,
    table: PackTable,
    identity: Identity,
    backend: Arc<B>,
) -> Result<Arc<dyn Engine>, OpenError> {
    let context = Arc::new(RingContext::new(*table.params().ring()));
    let ring = backend.open_ring(context.clone())?;
    let db = backend.open_db(TiledDb::new(table.tiling(), resident::<B>(snapshot, DB_FILE)?)?)?;
    let second_db = match table.protocol() {
        Protocol::ExppackD => {
            let file = resident::<B>(snapshot, SECOND_DB_FILE)?;
            Some(backend.open_db(TiledDb::new(table.second_tiling(), file)?)?)
        }
        _ => None,
    };
    let hint = NttTiledDb::new(table.hint_tiling(), resident::<B>(snapshot, LIFTED_FILE)?)?;
    let hint = backend.open_ntt_db(&ring, hint)?;
    Ok(Arc::new(HostedPack { backend, context, ring, table, db, second_db, hint, identity }))
}

fn open_column<B: ColumnOps + Named + 'static>(
    snapshot: &mut Snapshot,
    table: ColumnTable,
    identity: Identity,
    backend: Arc<B>,
) -> Result<Arc<dyn Engine>, OpenError> {
    let context = Arc::new(RingContext::new(*table.params().ring()));
    let ring = backend.open_ring(context.clone())?;
    let db = backend.open_db(TiledDb::new(table.tiling(), resident::<B>(snapshot, DB_FILE)?)?)?;
    let columns =
        backend.open_db(TiledDb::new(table.columns_tiling(), resident::<B>(snapshot, COLUMNS_FILE)?)?)?;
    let mut polys = chain_polys(&table, snapshot.take(CHAIN_FILE)?.as_ref())?;
    let masks = match table.protocol() {
        // They travel as they are: nothing is folded, and so `open_chain` does not see them.
        Protocol::ColpackS => {
            let masks = std::mem::take(&mut polys.masks);
            check::residues(&context, "open_chain", "words of masks below their primes", &masks)?;
            colpack_s::switched_masks(&*backend, &ring, &table, masks)?
        }
        _ => Vec::new(),
    };
    let chain = backend.open_chain(&ring, &table.pack_shape(), polys)?;
    let scheme = ColumnScheme::new(table.params());
    Ok(Arc::new(HostedColumn { backend, ring, scheme, table, db, columns, chain, masks, identity }))
}

/// Takes the file `name` out of the snapshot, and reads it into memory if it is scanned there.
fn resident<B: Named>(snapshot: &mut Snapshot, name: &str) -> Result<Arc<MappedFile>, OpenError> {
    let file = snapshot.take(name)?;
    if B::BACKEND == Backend::Cpu {
        file.make_resident()?;
    }
    Ok(Arc::new(file))
}

/// A table over LWE on a backend.
struct Hosted<B: LweOps> {
    backend: Arc<B>,
    params: LweTable,
    db: B::Db,
    second_db: Option<B::Db>,
    identity: Identity,
    blobs: Vec<Blob>,
}

impl<B: LweOps + Named> Engine for Hosted<B> {
    fn descriptor_json(&self) -> Arc<[u8]> {
        self.identity.json.clone()
    }

    fn epoch(&self) -> [u8; 32] {
        self.identity.epoch
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

    fn backend(&self) -> Backend {
        B::BACKEND
    }

    fn max_batch(&self) -> usize {
        self.identity.max_batch
    }

    fn blobs(&self) -> Vec<Blob> {
        self.blobs.clone()
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
