//! A table over rings on a backend.

use std::sync::Arc;

use hush_he::params::RingContext;
use hush_ops::contract::RingOps;
use hush_protocol::{
    onion,
    ring_table::RingTable,
    table::Protocol,
    wire::{self, QuerySizes},
};

use crate::{
    Backend, ClientKeys, Engine, EngineError, KeySpec,
    backend::Named,
    client_keys::{downcast, key_spec, open_client_keys, refuse_query},
    hosted::Identity,
};

/// Queries that one scan on the CPU answers at most.
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
    B: RingOps + Named,
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

    fn backend(&self) -> Backend {
        B::BACKEND
    }

    fn max_batch(&self) -> usize {
        self.identity.max_batch
    }

    fn keys(&self) -> Option<KeySpec> {
        Some(key_spec(self.table.ring(), B::BACKEND))
    }

    fn open_keys(&self, body: &[u8]) -> Result<ClientKeys, EngineError> {
        open_client_keys(&*self.backend, &self.ring, &self.context, body)
    }

    fn answer(
        &self,
        queries: &[wire::Query],
        keys: &[Option<ClientKeys>],
    ) -> Result<Vec<Vec<u8>>, EngineError> {
        let opened = downcast::<B>(keys)?;
        let packed: Vec<&[u8]> = queries.iter().map(|query| &query.packed[..]).collect();
        let Self { backend, context, ring, table, db, .. } = self;
        onion::answer(&**backend, ring, db, context, table, &packed, &opened).map_err(refuse_query)
    }
}

/// Queries of which a scan on the CPU holds no more beside the table than it may.
pub(crate) fn max_batch(table: &RingTable) -> usize {
    let tiling = table.tiling();
    (BATCH_BYTES.max(tiling.bytes() / 4) / tiling.fold_bytes()).clamp(1, MAX_BATCH)
}
