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
    Backend, ClientKeys, Engine, EngineError,
    backend::Named,
    client_keys::refuse_query,
    hosted::{Identity, MAX_BATCH, batch_room},
};

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

impl<B: ColumnOps + Named> Engine for HostedColumn<B> {
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

/// Queries of which a scan on the CPU holds no more beside the table than it may.
pub(crate) fn max_batch(table: &ColumnTable) -> usize {
    let room = batch_room(table.tiling().bytes() + table.columns_tiling().bytes());
    // Of a query its words, keys as they came and as words and polynomials; of its results two words a row, the planes that
    // are chosen, and the answer.
    let poly = table.params().ring().kept_limbs() * table.params().ring().degree();
    let chosen = if table.protocol() == Protocol::Colpack { 2 * poly * table.answer_plaintexts() } else { 0 };
    let words = table.shape().columns + table.columns_tiling().cols() + 8 * poly + 2 * table.rows() + chosen;
    let query = size_of::<u32>() * words + table.query_bytes().packed + table.answer_bytes();
    (room / query).clamp(1, MAX_BATCH)
}

#[cfg(test)]
mod tests {
    use hush_he::params::{COLPACK_N2048_Q52, ColumnParams, INSECURE_COLPACK_N256};
    use hush_protocol::table::TableShape;

    use super::*;

    const MIB: usize = 1 << 20;

    fn batch(protocol: Protocol, params: ColumnParams, shape: (usize, usize, usize)) -> usize {
        let (columns, blocks, slot_bytes) = shape;
        let shape = TableShape { columns, blocks, slot_bytes };
        max_batch(&ColumnTable::new(protocol, params, shape).expect("within the limits"))
    }

    /// Columns, blocks and bytes of a slot; how many queries fit, which is what 1 GiB or a quarter of the table holds.
    #[test]
    fn batches_are_as_large_as_memory_allows() {
        let (colpack, colpack_s) = (Protocol::Colpack, Protocol::ColpackS);
        let (large, small) = (COLPACK_N2048_Q52, INSECURE_COLPACK_N256);
        for (protocol, params, shape, expected) in [
            // Many short entries, and the longest table that answers hold whole.
            (colpack, large, (1 << 16, 64, 4096), 64),
            (colpack, large, (1 << 10, 1 << 15, 60), 64),
            (colpack_s, large, (1 << 16, 1 << 12, 4096), 64),
            // 64 queries of 16 MiB would be 1 GiB without their keys.
            (colpack, large, (1 << 22, 1, 1), 63),
            // One entry of 1 MiB: of each query 8 MiB of words, 16 MiB of chosen planes and 3.75 MiB of answer.
            (colpack, small, (1 << 10, 1, MIB), 36),
            (colpack_s, small, (1 << 10, 1, MIB), 64),
            // Answers of 240 MiB beside words of 480 MiB, and 15.9 GiB for all.
            (colpack_s, small, (64, 1 << 20, 60), 22),
        ] {
            assert_eq!(batch(protocol, params, shape), expected, "{protocol}, {}, {shape:?}", params.name());
        }
    }
}
