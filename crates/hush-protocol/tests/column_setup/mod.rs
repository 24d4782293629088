//! A table of column packing on a backend, built in memory as `hush-engine` builds it in files.
#![allow(dead_code, reason = "no test looks at every part")]

use std::sync::Arc;

use hush_math::csprng::Csprng;
use hush_ops::{
    contract::{ChainPolys, ColumnOps, PACK_BYTES},
    tiling::TiledDb,
};
use hush_protocol::{
    ProtocolError, Target, colpack_s,
    column_packing::{self, ColumnHost, ColumnScheme, Pending},
    column_table::ColumnTable,
    table::Protocol,
    wire,
};
use rayon::prelude::*;

/// A table on a backend, with all that was made of its database.
pub(crate) struct Setup<B: ColumnOps> {
    pub(crate) backend: B,
    pub(crate) scheme: ColumnScheme,
    pub(crate) ring: B::Ring,
    pub(crate) table: ColumnTable,
    pub(crate) matrix: Vec<u8>,
    pub(crate) hint: Vec<u32>,
    pub(crate) polys: ChainPolys,
    pub(crate) db: B::Db,
    pub(crate) columns: B::Db,
    pub(crate) chain: B::Chain,
    pub(crate) masks: Vec<u8>,
}

impl<B: ColumnOps> Setup<B> {
    /// The table whose database is `matrix`, rows x columns bytes.
    pub(crate) fn new(backend: B, table: ColumnTable, matrix: Vec<u8>) -> Self {
        let db = backend.open_db(TiledDb::from_matrix(table.rows(), table.shape().columns, &matrix)).unwrap();
        let hint = backend.lwe_hint(&db, &table.matrix(), 0..table.rows()).unwrap();
        let hint = backend.read(&hint).unwrap().into_owned();
        Self::with_hint(backend, table, matrix, hint)
    }

    /// The same with any hint, under which folded words have other phases than bytes.
    pub(crate) fn with_hint(backend: B, table: ColumnTable, matrix: Vec<u8>, hint: Vec<u32>) -> Self {
        let (shape, n) = (table.pack_shape(), table.params().lwe().n());
        let scheme = ColumnScheme::new(table.params());
        let ring = backend.open_ring(Arc::new(scheme.context().clone())).unwrap();
        let db = backend.open_db(TiledDb::from_matrix(table.rows(), table.shape().columns, &matrix)).unwrap();
        let plan = backend.open_masks(&ring, scheme.masks()).unwrap();
        let chain = |column: usize| {
            let rows = shape.plaintext_rows(column);
            let hint = backend.keep(hint[rows.start * n..rows.end * n].to_vec()).unwrap();
            backend.chain_hint(&ring, &plan, &[&hint]).unwrap().remove(0)
        };
        let chained: Vec<_> = (0..shape.plaintexts()).into_par_iter().map(chain).collect();
        let bytes: Vec<u8> = chained.iter().flat_map(|chained| chained.columns.iter().copied()).collect();
        let columns = backend.open_db(TiledDb::from_matrix(table.rows(), PACK_BYTES * n, &bytes)).unwrap();
        let polys = ChainPolys {
            digits: chained.iter().flat_map(|chained| chained.digit.iter().copied()).collect(),
            masks: chained.iter().flat_map(|chained| chained.mask.iter().copied()).collect(),
        };
        assert_eq!(polys.digits.len() + polys.masks.len(), table.chain_words());
        let chain = backend.open_chain(&ring, &shape, polys.clone()).unwrap();
        let masks = match table.protocol() {
            Protocol::ColpackS => {
                colpack_s::switched_masks(&backend, &ring, &table, polys.masks.clone()).unwrap()
            }
            _ => Vec::new(),
        };
        Self { backend, scheme, ring, table, matrix, hint, polys, db, columns, chain, masks }
    }

    /// As a server sees it.
    pub(crate) fn host(&self) -> ColumnHost<'_, B> {
        ColumnHost {
            backend: &self.backend,
            ring: &self.ring,
            scheme: &self.scheme,
            table: &self.table,
            db: &self.db,
            columns: &self.columns,
            chain: &self.chain,
            masks: &self.masks,
        }
    }

    /// A client's query.
    pub(crate) fn query(&self, target: &Target) -> (wire::Query, Pending) {
        column_packing::query(&self.table, &self.scheme, target.clone(), &mut Csprng::from_os())
    }

    /// The server's answers.
    pub(crate) fn answer(&self, queries: &[wire::Query]) -> Result<Vec<Vec<u8>>, ProtocolError> {
        column_packing::answer(&self.host(), queries)
    }

    /// The client's slot.
    pub(crate) fn recover(&self, pending: &Pending, answer: &[u8]) -> Result<Vec<u8>, ProtocolError> {
        column_packing::recover(&self.table, &self.scheme, pending, answer).map(|slot| slot.to_vec())
    }

    /// The slot that `target` selects, in the clear.
    pub(crate) fn expected(&self, target: &Target) -> Vec<u8> {
        let shape = self.table.shape();
        let byte = |row: usize| {
            let entry = |&(column, coefficient): &(u32, u8)| {
                self.matrix[row * shape.columns + column as usize].wrapping_mul(coefficient)
            };
            target.columns.iter().map(entry).fold(0u8, u8::wrapping_add)
        };
        (target.block * shape.slot_bytes..(target.block + 1) * shape.slot_bytes).map(byte).collect()
    }
}

/// Random bytes.
pub(crate) fn random(count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    Csprng::insecure_from_seed(9).fill_bytes(&mut bytes);
    bytes
}

/// A look-up of one slot.
pub(crate) fn one(column: usize, block: usize) -> Target {
    Target { columns: vec![(column as u32, 1)], block }
}
