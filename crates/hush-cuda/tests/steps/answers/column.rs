//! The protocols that pack by columns.

use std::{ops::Range, sync::Arc};

use hush_he::params::ColumnParams;
use hush_math::csprng::Csprng;
use hush_ops::{
    contract::{ChainPolys, ColumnOps, PACK_BYTES, PackOps},
    reference::Reference,
    tiling::TiledDb,
};
use hush_protocol::{
    Target, colpack_s,
    column_packing::{self, ColumnHost, ColumnScheme, Pending},
    column_table::ColumnTable,
    table::{Protocol, TableShape},
    wire,
};

use super::{Case, asked::Asked};

/// A table and queries for it.
pub(super) struct Column {
    table: ColumnTable,
    scheme: ColumnScheme,
    asked: Asked<wire::Query, Pending>,
}

/// The table on a backend.
pub(super) struct Server<B: PackOps + ColumnOps> {
    backend: B,
    ring: B::Ring,
    db: B::Db,
    columns: B::Db,
    chain: B::Chain,
    masks: Vec<u8>,
}

impl Column {
    pub(super) fn new(protocol: Protocol, params: ColumnParams, shape: TableShape) -> Self {
        let table = ColumnTable::new(protocol, params, shape).unwrap();
        let scheme = ColumnScheme::new(&params);
        let query =
            |target: &Target, rng: &mut Csprng| column_packing::query(&table, &scheme, target.clone(), rng);
        let asked = Asked::new(shape, table.rows(), query);
        Self { table, scheme, asked }
    }
}

impl Case for Column {
    type Server<B: PackOps + ColumnOps> = Server<B>;

    fn serve<B: PackOps + ColumnOps>(&self, backend: B) -> Server<B> {
        let (table, shape, n) = (&self.table, self.table.pack_shape(), self.table.params().lwe().n());
        let ring = backend.open_ring(Arc::new(self.scheme.context().clone())).unwrap();
        let db = self.asked.open_db(&backend);
        let hint = backend.lwe_hint(&db, &table.matrix(), 0..table.rows()).unwrap();
        let plan = backend.open_masks(&ring, self.scheme.masks()).unwrap();
        let part = |column| {
            let rows = shape.plaintext_rows(column);
            backend.join(&[(&hint, rows.start * n..rows.end * n)]).unwrap()
        };
        let parts: Vec<_> = (0..shape.plaintexts()).map(part).collect();
        let chained = backend.chain_hint(&ring, &plan, &parts.iter().collect::<Vec<_>>()).unwrap();
        let bytes: Vec<u8> = chained.iter().flat_map(|chained| &chained.columns).copied().collect();
        let columns = backend.open_db(TiledDb::from_matrix(table.rows(), PACK_BYTES * n, &bytes)).unwrap();
        let polys = ChainPolys {
            digits: chained.iter().flat_map(|chained| &chained.digit).copied().collect(),
            masks: chained.iter().flat_map(|chained| &chained.mask).copied().collect(),
        };
        let masks = match table.protocol() {
            Protocol::ColpackS => {
                colpack_s::switched_masks(&backend, &ring, table, polys.masks.clone()).unwrap()
            }
            _ => Vec::new(),
        };
        let chain = backend.open_chain(&ring, &shape, polys).unwrap();
        Server { backend, ring, db, columns, chain, masks }
    }

    fn answer<B: PackOps + ColumnOps>(&self, server: &Server<B>, queries: Range<usize>) -> Vec<Vec<u8>> {
        let host = ColumnHost {
            backend: &server.backend,
            ring: &server.ring,
            scheme: &self.scheme,
            table: &self.table,
            db: &server.db,
            columns: &server.columns,
            chain: &server.chain,
            masks: &server.masks,
        };
        column_packing::answer(&host, &self.asked.queries[queries]).unwrap()
    }

    fn recover(&self, _: &Server<Reference>, query: usize, answer: &[u8]) -> Vec<u8> {
        column_packing::recover(&self.table, &self.scheme, &self.asked.pending[query], answer)
            .unwrap()
            .to_vec()
    }

    fn expected(&self, query: usize) -> Vec<u8> {
        self.asked.slot(query)
    }
}
