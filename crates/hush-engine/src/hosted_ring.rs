//! A table over rings on a backend.

use std::sync::Arc;

use hush_he::params::RingContext;
use hush_ops::contract::RingOps;
use hush_protocol::{
    ProtocolError, onion,
    ring_keys::{open_upload, upload_bytes},
    ring_table::RingTable,
    table::Protocol,
    wire::{self, QuerySizes},
};

use crate::{Blob, ClientKeys, Engine, EngineError, KeySpec, hosted::Identity};

/// Queries that one scan answers at most.
const MAX_BATCH: usize = 8;
/// What the selectors and results of a batch may take beside the database: this much, or a quarter of the database.
const BATCH_BYTES: usize = 256 << 20;

/// A table on a backend.
pub(crate) struct HostedRing<B: RingOps> {
    pub(crate) backend: Arc<B>,
    pub(crate) context: Arc<RingContext>,
    pub(crate) ring: B::Ring,
    pub(crate) table: RingTable,
    pub(crate) db: B::NttDb,
    pub(crate) identity: Identity,
}

impl<B> Engine for HostedRing<B>
where
    B: RingOps,
    B::Keys: 'static,
{
    fn descriptor_json(&self) -> Arc<[u8]> {
        self.identity.json.clone()
    }

    fn epoch(&self) -> [u8; 32] {
        self.identity.epoch
    }

    fn protocol(&self) -> &str {
        Protocol::Onion.name()
    }

    fn query_bytes(&self) -> QuerySizes {
        QuerySizes::rlwe(self.table.query_bytes())
    }

    fn answer_bytes(&self) -> usize {
        self.table.answer_bytes()
    }

    fn max_batch(&self) -> usize {
        // A ciphertext is two polynomials: for every row a selector, for every column a result.
        let tiling = self.table.tiling();
        let query_bytes = (tiling.rows() + tiling.columns()) * 2 * size_of::<u32>() * tiling.poly_words();
        (BATCH_BYTES.max(tiling.bytes() / 4) / query_bytes).clamp(1, MAX_BATCH)
    }

    fn blobs(&self) -> Vec<Blob> {
        Vec::new()
    }

    fn keys(&self) -> Option<KeySpec> {
        let ring = self.table.ring();
        Some(KeySpec { preset: ring.name().into(), bytes: upload_bytes(ring) })
    }

    fn open_keys(&self, body: &[u8]) -> Result<ClientKeys, EngineError> {
        let refuse = |error: ProtocolError| EngineError::Keys { reason: error.to_string() };
        let keys = open_upload(&self.context, body).map_err(refuse)?;
        let keys =
            self.backend.open_evaluation_keys(&self.ring, keys).map_err(|error| refuse(error.into()))?;
        Ok(ClientKeys(Arc::new(keys)))
    }

    fn answer(
        &self,
        queries: &[wire::Query],
        keys: &[Option<ClientKeys>],
    ) -> Result<Vec<Vec<u8>>, EngineError> {
        let no_keys = |index| EngineError::Query { index, reason: "it comes without evaluation keys".into() };
        let opened = keys.iter().enumerate().map(|(index, keys)| {
            keys.as_ref().and_then(|keys| keys.0.downcast_ref::<B::Keys>()).ok_or_else(|| no_keys(index))
        });
        let opened = opened.collect::<Result<Vec<_>, _>>()?;
        let packed: Vec<&[u8]> = queries.iter().map(|query| &query.packed[..]).collect();
        let Self { backend, context, ring, table, db, .. } = self;
        onion::answer(&**backend, ring, db, context, table, &packed, &opened).map_err(|error| match error {
            ProtocolError::Query { index, source } => {
                EngineError::Query { index, reason: source.to_string() }
            }
            error => EngineError::Internal(error.to_string()),
        })
    }
}
