//! The protocols that pack, on every backend of this crate: every index of small tables, key look-ups, hostile bytes.

use std::sync::Arc;

use hush_he::params::{INSECURE_PACK_N256, INSECURE_PACK_PLAIN, PackParams, RingContext};
use hush_math::csprng::Csprng;
use hush_ops::{contract::PackOps, plain::Plain, reference::Reference, tiling::TiledDb};
use hush_protocol::{
    ProtocolError, Target, exppack_d,
    pack_table::PackTable,
    packing::{self, PackHost, Pending},
    ring_keys::{RingKeys, open_upload},
    table::{Protocol, TableShape},
    wire,
};

const PROTOCOLS: [Protocol; 4] =
    [Protocol::ExppackS, Protocol::ExppackD, Protocol::DoublePack, Protocol::Hybrid];

/// A table whose slot bytes are random or all of one value, on a backend, and a client of it.
struct Setup<B: PackOps> {
    backend: B,
    context: RingContext,
    ring: B::Ring,
    table: PackTable,
    matrix: Vec<u8>,
    db: B::Db,
    second_db: Option<B::Db>,
    hint: B::NttDb,
    client: RingKeys,
    keys: B::Keys,
}

impl<B: PackOps> Setup<B> {
    fn new(backend: B, protocol: Protocol, params: PackParams, shape: TableShape, fill: Option<u8>) -> Self {
        let table = PackTable::new(protocol, params, shape).unwrap();
        let mut matrix = vec![fill.unwrap_or(0); table.rows() * shape.columns];
        if fill.is_none() {
            Csprng::insecure_from_seed(9).fill_bytes(&mut matrix);
        }
        let context = RingContext::new(*params.ring());
        let ring = backend.open_ring(Arc::new(context.clone())).unwrap();
        let db = backend.open_db(TiledDb::from_matrix(table.rows(), shape.columns, &matrix)).unwrap();
        let mut words = backend.lwe_hint(&db, &table.first_matrix(), 0..table.rows()).unwrap();
        let mut second_db = None;
        if protocol == Protocol::ExppackD {
            let second = exppack_d::second_db(&backend, &table, &words).unwrap();
            words = backend.lwe_hint(&second, &table.second_matrix(), 0..table.second_hint_rows()).unwrap();
            let mut padded = backend.read(&words).unwrap().into_owned();
            padded.resize(table.second_shape().rows() * params.lwe().n(), 0);
            words = backend.keep(padded).unwrap();
            second_db = Some(second);
        }
        let (n, packed) = (params.lwe().n(), table.hint_shape());
        let hint = backend.lift_hint(&ring, &words, n, &packed, 0..packed.plaintexts()).unwrap();
        let client = RingKeys::from_seed(params.ring(), &[9; 32]);
        let keys = open_upload(&context, client.upload()).unwrap();
        let keys = backend.open_evaluation_keys(&ring, keys).unwrap();
        Self { backend, context, ring, table, matrix, db, second_db, hint, client, keys }
    }

    fn answer(&self, queries: &[wire::Query]) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let host = PackHost {
            backend: &self.backend,
            ring: &self.ring,
            context: &self.context,
            table: &self.table,
            db: &self.db,
            second_db: self.second_db.as_ref(),
            hint: &self.hint,
        };
        packing::answer(&host, queries, &vec![&self.keys; queries.len()])
    }

    fn query(&self, target: &Target) -> (wire::Query, Pending) {
        packing::query(&self.table, &self.client, target.clone(), &mut Csprng::from_os())
    }

    /// Looks all targets up in one batch.
    fn check(&self, targets: &[Target]) {
        let (queries, pending): (Vec<_>, Vec<_>) = targets.iter().map(|target| self.query(target)).unzip();
        let sizes = self.table.query_bytes();
        for query in &queries {
            assert_eq!([query.first.len(), query.second.len()], [sizes.first, sizes.second]);
            assert_eq!([query.packed.len(), query.key_id.len()], [sizes.packed, sizes.key_id]);
        }
        let answers = self.answer(&queries).unwrap();
        for ((target, pending), answer) in targets.iter().zip(&pending).zip(&answers) {
            assert_eq!(answer.len(), self.table.answer_bytes());
            let slot = packing::recover(&self.table, &self.client, pending, answer).unwrap();
            assert_eq!(*slot, self.expected(target), "{:?}", self.table);
        }
    }

    /// The slot that `target` selects, in the clear.
    fn expected(&self, target: &Target) -> Vec<u8> {
        let shape = self.table.shape();
        let byte = |row: usize| {
            let entry = |&(col, coeff): &(u32, u8)| {
                self.matrix[row * shape.columns + col as usize].wrapping_mul(coeff)
            };
            target.columns.iter().map(entry).fold(0u8, u8::wrapping_add)
        };
        (target.block * shape.slot_bytes..(target.block + 1) * shape.slot_bytes).map(byte).collect()
    }
}

fn one(column: usize, block: usize) -> Target {
    Target { columns: vec![(column as u32, 1)], block }
}

/// Columns, blocks and slot bytes for N = 64: lanes, one slot a plaintext, two and three planes; one entry, odd and even
/// numbers of them, a last entry that is not full.
const SHAPES: [(usize, usize, usize); 8] =
    [(1, 1, 1), (5, 70, 3), (3, 4, 40), (4, 5, 20), (3, 7, 64), (2, 1, 65), (3, 5, 130), (4, 2, 128)];

#[test]
fn every_index_without_encryption() {
    for protocol in PROTOCOLS {
        for (columns, blocks, slot_bytes) in SHAPES {
            if protocol == Protocol::ExppackD && slot_bytes > 64 {
                continue;
            }
            let shape = TableShape { columns, blocks, slot_bytes };
            let setup = Setup::new(Plain, protocol, INSECURE_PACK_PLAIN, shape, None);
            let all = (0..blocks * columns).map(|index| one(index % columns, index / columns));
            setup.check(&all.collect::<Vec<_>>());
            let vector = (0..columns as u32).map(|column| (column, (column * 77 + 1) as u8)).collect();
            setup.check(&[Target { columns: vector, block: blocks - 1 }]);
        }
    }
}

#[test]
fn encrypted_tables_of_every_kind() {
    for protocol in PROTOCOLS {
        for (columns, blocks, slot_bytes) in [(30, 9, 100), (17, 3, 300), (40, 5, 2)] {
            let slot_bytes = if protocol == Protocol::ExppackD { slot_bytes / 60 + 1 } else { slot_bytes };
            let shape = TableShape { columns, blocks, slot_bytes };
            for fill in [None, Some(0x80), Some(0xff)] {
                let setup = Setup::new(Reference, protocol, INSECURE_PACK_N256, shape, fill);
                let vector = (0..columns as u32).step_by(2).map(|column| (column, 1)).collect();
                let sum = Target { columns: vector, block: blocks - 1 };
                setup.check(&[one(0, 0), one(columns - 1, blocks / 2), sum]);
            }
        }
    }
}

#[test]
fn queries_are_fresh() {
    for protocol in PROTOCOLS {
        let shape = TableShape { columns: 30, blocks: 4, slot_bytes: 20 };
        let setup = Setup::new(Plain, protocol, INSECURE_PACK_N256, shape, None);
        let [(x, _), (y, _)] = [(); 2].map(|()| setup.query(&one(3, 2)));
        assert!(x.first != y.first && x.packed != y.packed);
        assert!(x.second.is_empty() || x.second != y.second);
        // Both vectors are under one secret, so their matrices must not have a row in common.
        let (first, second) = (setup.table.first_matrix(), setup.table.second_matrix());
        assert_ne!(first.domain(), second.domain());
    }
}

#[test]
fn hostile_bytes_are_errors() {
    for protocol in PROTOCOLS {
        let shape = TableShape { columns: 30, blocks: 4, slot_bytes: 20 };
        let setup = Setup::new(Reference, protocol, INSECURE_PACK_N256, shape, None);
        let (query, pending) = setup.query(&one(3, 2));
        let broken = |change: &dyn Fn(&mut wire::Query)| {
            let mut query = query.clone();
            change(&mut query);
            setup.answer(&[setup.query(&one(0, 0)).0, query]).unwrap_err()
        };
        assert!(matches!(broken(&|q| q.first = vec![0; 3].into()), ProtocolError::Length { .. }));
        assert!(matches!(broken(&|q| q.second = vec![0; 99].into()), ProtocolError::Length { .. }));
        assert!(matches!(broken(&|q| q.packed = vec![0; 3].into()), ProtocolError::Query { index: 1, .. }));
        let full = vec![0xff; query.packed.len()];
        assert!(matches!(broken(&|q| q.packed = full.clone().into()), ProtocolError::Query { index: 1, .. }));
        let answer = setup.answer(std::slice::from_ref(&query)).unwrap().remove(0);
        let (table, client) = (&setup.table, &setup.client);
        assert!(packing::recover(table, client, &pending, &answer[1..]).is_err());
        // Any bytes decode to some slot.
        let noise: Vec<u8> = (0..answer.len()).map(|i| (i * 89) as u8).collect();
        assert_eq!(packing::recover(table, client, &pending, &noise).unwrap().len(), 20);
        let other = RingKeys::from_seed(INSECURE_PACK_N256.ring(), &[1; 32]);
        let error = packing::recover(table, &other, &pending, &answer).unwrap_err();
        assert!(matches!(error, ProtocolError::Keys(_)));
    }
}
