//! A table whose answers are packed, on a backend.

use std::sync::Arc;

use hush_he::params::RingContext;
use hush_ops::contract::PackOps;
use hush_protocol::{
    pack_table::PackTable,
    packing::{self, PackHost},
    wire::{self, QuerySizes},
};

use crate::{
    Backend, ClientKeys, Engine, EngineError, KeySpec,
    backend::Named,
    client_keys::{downcast, key_spec, open_client_keys, refuse_query},
    hosted::{Identity, batch_room},
};

/// Queries that one scan on the CPU of a table whose answers are packed answers at most: what one pass over the hint takes.
pub const MAX_PACKED_BATCH: usize = 8;

/// A table on a backend.
pub(crate) struct HostedPack<B: PackOps> {
    pub(crate) backend: Arc<B>,
    pub(crate) context: Arc<RingContext>,
    pub(crate) ring: B::Ring,
    pub(crate) table: PackTable,
    pub(crate) db: B::Db,
    pub(crate) second_db: Option<B::Db>,
    pub(crate) hint: B::NttDb,
    pub(crate) identity: Identity,
}

impl<B> Engine for HostedPack<B>
where
    B: PackOps + Named,
    B::Keys: 'static,
{
    fn descriptor_json(&self) -> Arc<[u8]> {
        self.identity.json.clone()
    }

    fn epoch(&self) -> [u8; 32] {
        self.identity.epoch
    }

    fn protocol(&self) -> &str {
        self.table.protocol().name()
    }

    fn query_bytes(&self) -> QuerySizes {
        self.table.query_bytes()
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
        Some(key_spec(self.table.params().ring(), B::BACKEND))
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
        let host = PackHost {
            backend: &*self.backend,
            ring: &self.ring,
            context: &self.context,
            table: &self.table,
            db: &self.db,
            second_db: self.second_db.as_ref(),
            hint: &self.hint,
        };
        packing::answer(&host, queries, &opened).map_err(refuse_query)
    }
}

/// Queries of which a scan on the CPU holds no more beside the table than it may.
pub(crate) fn max_batch(table: &PackTable) -> usize {
    // Selectors for the coefficients of the LWE secret, results for the columns of the hint.
    let hint = table.hint_tiling();
    let room = batch_room(table.tiling().bytes() + hint.bytes());
    // Beside them, one query at a time has a second half.
    let room = room.saturating_sub(table.second_pack_bytes());
    (room / hint.fold_bytes()).clamp(1, MAX_PACKED_BATCH)
}
