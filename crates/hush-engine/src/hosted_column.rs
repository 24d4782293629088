//! A table of column packing, on a backend.

use std::sync::Arc;

use hush_ops::contract::ColumnOps;
use hush_protocol::{
    column_packing::{self, ColumnHost, ColumnScheme},
    column_table::ColumnTable,
    table::Protocol,
    wire::{self, QuerySizes},
};

use crate::{
    ClientKeys, Engine, EngineError,
    client_keys::refuse_query,
    hosted::{Identity, MAX_BATCH},
};

/// What the queries and answers of a batch may take beside the table: this much, or a quarter of the table.
const BATCH_BYTES: usize = 1 << 30;

/// A table on a backend.
pub(crate) struct HostedColumn<B: ColumnOps> {
    pub(crate) backend: Arc<B>,
    pub(crate) ring: B::Ring,
    pub(crate) scheme: ColumnScheme,
    pub(crate) table: ColumnTable,
    pub(crate) db: B::Db,
    pub(crate) columns: B::Db,
    pub(crate) chain: B::Chain,
    /// The masks of all plaintexts as they travel, where they do.
    pub(crate) masks: Vec<u8>,
    pub(crate) identity: Identity,
}

impl<B: ColumnOps> Engine for HostedColumn<B> {
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

    fn max_batch(&self) -> usize {
        let table = &self.table;
        let room = BATCH_BYTES.max((table.tiling().bytes() + table.columns_tiling().bytes()) / 4);
        // Of a query its words, keys as they came and as words and polynomials; of its results two words a row, the planes that
        // are chosen, and the answer.
        let poly = table.params().ring().kept_limbs() * table.params().ring().degree();
        let chosen =
            if table.protocol() == Protocol::Colpack { 2 * poly * table.answer_plaintexts() } else { 0 };
        let words =
            table.shape().columns + table.columns_tiling().cols() + 8 * poly + 2 * table.rows() + chosen;
        let query = size_of::<u32>() * words + table.query_bytes().packed + table.answer_bytes();
        (room / query).clamp(1, MAX_BATCH)
    }

    fn answer(
        &self,
        queries: &[wire::Query],
        _keys: &[Option<ClientKeys>],
    ) -> Result<Vec<Vec<u8>>, EngineError> {
        let host = ColumnHost {
            backend: &*self.backend,
            ring: &self.ring,
            scheme: &self.scheme,
            table: &self.table,
            db: &self.db,
            columns: &self.columns,
            chain: &self.chain,
            masks: &self.masks,
        };
        column_packing::answer(&host, queries).map_err(refuse_query)
    }
}
