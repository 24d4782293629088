//! `onion` on every backend of this crate: lanes, planes, odd numbers of entries, key look-ups, hostile bytes.

use std::sync::Arc;

use hush_he::params::{
    INSECURE_RING_N256, INSECURE_RING_PLAIN, ONION_M31, ONION_S, ONIONPIRV2_N4096_4X27_SEC126, RingContext,
    RingParams,
};
use hush_math::csprng::Csprng;
use hush_ops::{
    contract::RingOps,
    ntt_tiling::{MAX_ROWS, NttTiledDb},
    plain::Plain,
    reference::Reference,
};
use hush_protocol::{
    ProtocolError, Target, onion,
    ring_keys::{RingKeys, open_upload, upload_bytes},
    ring_table::RingTable,
    symbols::to_symbols,
    table::{MAX_SLOT_BYTES, TableShape},
    whitening::Whitening,
};

/// A table of slots on a backend, and a client of it.
struct Setup<B: RingOps> {
    backend: B,
    context: RingContext,
    ring: B::Ring,
    table: RingTable,
    whitening: Whitening,
    db: B::NttDb,
    slots: Vec<Vec<u8>>,
    client: RingKeys,
    keys: B::Keys,
}

impl<B: RingOps> Setup<B> {
    /// `fill(block, column, byte)` is the content.
    fn new(
        backend: B,
        params: RingParams,
        shape: TableShape,
        fill: &dyn Fn(usize, usize, usize) -> u8,
    ) -> Self {
        let table = RingTable::new(params, shape).unwrap();
        let whitening = Whitening::new(&params, [5; 32]);
        let slot = |index: usize| {
            (0..shape.slot_bytes)
                .map(|byte| fill(index / shape.columns, index % shape.columns, byte))
                .collect()
        };
        let slots: Vec<Vec<u8>> = (0..shape.blocks * shape.columns).map(slot).collect();
        let context = RingContext::new(params);
        let ring = backend.open_ring(Arc::new(context.clone())).unwrap();
        let tiling = table.tiling();
        let mut symbols = Vec::new();
        for row in 0..tiling.rows() {
            for column in 0..tiling.columns() {
                symbols.extend(plaintext(&table, &whitening, &slots, row, column));
            }
        }
        let polys = backend.ntt_db(&ring, &symbols).unwrap();
        let db = backend.open_ntt_db(&ring, NttTiledDb::from_polys(tiling, &polys)).unwrap();
        let client = RingKeys::from_seed(&params, &[9; 32]);
        let keys = open_upload(&context, client.upload()).unwrap();
        let keys = backend.open_evaluation_keys(&ring, keys).unwrap();
        Self { backend, context, ring, table, whitening, db, slots, client, keys }
    }

    fn answer(&self, queries: &[&[u8]]) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let keys = vec![&self.keys; queries.len()];
        onion::answer(&self.backend, &self.ring, &self.db, &self.context, &self.table, queries, &keys)
    }

    fn query(&self, target: &Target) -> (Vec<u8>, onion::Pending) {
        onion::query(&self.table, &self.client, target.clone(), &mut Csprng::from_os())
    }

    /// Looks all targets up in one batch.
    fn check(&self, targets: &[Target]) {
        let (queries, pending): (Vec<_>, Vec<_>) = targets.iter().map(|target| self.query(target)).unzip();
        assert!(queries.iter().all(|query| query.len() == self.table.query_bytes()));
        let answers = self.answer(&queries.iter().map(|query| &query[..]).collect::<Vec<_>>()).unwrap();
        for ((target, pending), answer) in targets.iter().zip(&pending).zip(&answers) {
            assert_eq!(answer.len(), self.table.answer_bytes());
            let slot = onion::recover(&self.table, &self.client, &self.whitening, pending, answer).unwrap();
            assert_eq!(*slot, self.expected(target));
        }
    }

    /// A single slot's bytes; sums are over symbols, so targets with several columns need slots that do not carry.
    fn expected(&self, target: &Target) -> Vec<u8> {
        let bits = self.table.ring().plaintext_bits();
        let mut sum = vec![0u32; self.table.slot_symbols()];
        for &(column, coefficient) in &target.columns {
            let mut symbols = vec![0; sum.len()];
            let slot = &self.slots[target.block * self.table.shape().columns + column as usize];
            to_symbols(slot, bits, &mut symbols);
            for (sum, symbol) in sum.iter_mut().zip(symbols) {
                *sum =
                    sum.wrapping_add(symbol.wrapping_mul(u32::from(coefficient))) & (u32::MAX >> (32 - bits));
            }
        }
        let mut bytes = vec![0; self.table.shape().slot_bytes];
        hush_protocol::symbols::from_symbols(&sum, bits, &mut bytes);
        bytes
    }
}

fn plaintext(
    table: &RingTable,
    whitening: &Whitening,
    slots: &[Vec<u8>],
    row: usize,
    column: usize,
) -> Vec<u32> {
    let (degree, size, shape) = (table.ring().degree(), table.slot_symbols(), table.shape());
    let (plane, entry) = (column / table.entries(), column % table.entries());
    let mut plaintext = vec![0; degree];
    for lane in 0..table.lanes() {
        let block = entry * table.lanes() + lane;
        if block < shape.blocks {
            let mut symbols = vec![0; size];
            to_symbols(&slots[block * shape.columns + row], table.ring().plaintext_bits(), &mut symbols);
            let part = &symbols[plane * degree..size.min((plane + 1) * degree)];
            plaintext[lane * size..][..part.len()].copy_from_slice(part);
        }
    }
    whitening.add_to(row, column, &mut plaintext);
    plaintext
}

fn one(column: usize, block: usize) -> Target {
    Target { columns: vec![(column as u32, 1)], block }
}

fn mixed(block: usize, column: usize, byte: usize) -> u8 {
    (block * 89 + column * 31 + byte * 7 + block * column * byte) as u8
}

/// Shapes with lanes, with one slot a plaintext, with two, three and four planes; one entry, odd and even ones.
const SHAPES: [(usize, usize, usize); 9] = [
    (1, 1, 1),
    (3, 40, 5),
    (4, 7, 150),
    (20, 5, 64),
    (5, 3, 176),
    (2, 1, 177),
    (7, 3, 352),
    (4, 5, 400),
    (3, 2, 700),
];

#[test]
fn every_slot_is_found_without_encryption() {
    for (columns, blocks, slot_bytes) in SHAPES {
        let setup =
            Setup::new(Plain, INSECURE_RING_PLAIN, TableShape { columns, blocks, slot_bytes }, &mixed);
        for block in 0..blocks {
            let targets: Vec<_> = (0..columns).map(|column| one(column, block)).collect();
            setup.check(&targets);
        }
    }
}

#[test]
fn slots_are_found_under_encryption() {
    for (columns, blocks, slot_bytes) in [(3, 40, 50), (20, 5, 704), (7, 3, 705), (4, 5, 1500), (2, 1, 2200)]
    {
        let shape = TableShape { columns, blocks, slot_bytes };
        let setup = Setup::new(Reference, INSECURE_RING_N256, shape, &mixed);
        setup.check(&[one(0, 0), one(columns - 1, blocks - 1), one(columns / 2, blocks / 2)]);
    }
}

/// Tables that are far from random, which whitening has to make so, at the real sizes.
#[test]
fn structured_tables_decode_at_full_size() {
    let patterns: [&dyn Fn(usize, usize, usize) -> u8; 3] =
        [&|_, _, _| 0, &|_, _, _| 0xff, &|_, column, _| if column % 2 == 0 { 0x80 } else { 0x7f }];
    for (params, slot_bytes) in [(ONION_M31, 22 << 10), (ONION_S, 4 << 10)] {
        for pattern in patterns {
            let shape = TableShape { columns: 24, blocks: 3, slot_bytes };
            let setup = Setup::new(Reference, params, shape, pattern);
            assert_eq!(setup.table.planes(), 2);
            setup.check(&[one(17, 2)]);
        }
    }
}

#[test]
fn sums_of_slots_wrap_modulo_t() {
    let shape = TableShape { columns: 64, blocks: 6, slot_bytes: 300 };
    let setup = Setup::new(Reference, INSECURE_RING_N256, shape, &mixed);
    let columns = (3..60).map(|column| (column, (column * 5) as u8 | 1)).collect();
    setup.check(&[Target { columns, block: 4 }, Target { columns: vec![(5, 1), (6, 0), (63, 1)], block: 5 }]);
}

#[test]
fn sizes_are_as_documented() {
    let shape = |slot_bytes| TableShape { columns: 256, blocks: 1 << 12, slot_bytes };
    let kib = 1024.0;
    let m31 = RingTable::new(ONION_M31, shape(22 << 10)).unwrap();
    assert_eq!((m31.lanes(), m31.planes(), m31.folds()), (1, 2, 12));
    assert!((m31.query_bytes() as f64) < 2.3 * kib && m31.answer_bytes() as f64 <= 1.85 * 22.0 * kib);
    assert!((upload_bytes(&ONION_M31) as f64) < 2.1 * kib * kib);
    let s = RingTable::new(ONION_S, shape(4 << 10)).unwrap();
    assert_eq!((s.lanes(), s.planes(), s.folds()), (1, 2, 12));
    assert!((s.query_bytes() as f64) < 2.8 * kib && s.answer_bytes() as f64 <= 2.5 * 4.0 * kib);
    assert!((upload_bytes(&ONION_S) as f64) < 0.8 * kib * kib);
}

#[test]
fn shapes_out_of_range_are_refused() {
    let new =
        |columns, blocks, slot_bytes| RingTable::new(ONION_M31, TableShape { columns, blocks, slot_bytes });
    assert!(new(256, 1, 100).is_ok());
    for (columns, blocks, slot_bytes) in [
        (0, 1, 1),
        (1, 0, 1),
        (1, 1, 0),
        (4097, 1, 1),
        (4090, 1 << 20, 11 << 10),
        (1, usize::MAX, 1),
        (1, 1, MAX_SLOT_BYTES + 1),
    ] {
        let refused = new(columns, blocks, slot_bytes).unwrap_err();
        assert!(matches!(refused, ProtocolError::Limit { .. } | ProtocolError::TooNoisy { .. }), "{refused}");
    }
    assert!(matches!(new(1000, 1 << 22, 22 << 10), Err(ProtocolError::TooNoisy { .. })));
    // More rows than a database can have, though the tree has the leaves and the noise the room.
    for columns in [MAX_ROWS, MAX_ROWS + 1] {
        let shape = TableShape { columns, blocks: 4, slot_bytes: 1000 };
        let table = RingTable::new(ONIONPIRV2_N4096_4X27_SEC126, shape);
        assert_eq!(table.map(|table| table.tiling().rows()).ok(), (columns == MAX_ROWS).then_some(MAX_ROWS));
    }
}

#[test]
fn hostile_queries_are_refused_before_anything_is_computed() {
    let shape = TableShape { columns: 4, blocks: 3, slot_bytes: 704 };
    let setup = Setup::new(Reference, INSECURE_RING_N256, shape, &mixed);
    let (good, _) = setup.query(&one(1, 1));
    let mut out_of_range = good.clone();
    out_of_range[32..].fill(0xff);
    for bad in [&good[..good.len() - 1], &[&good[..], &[0]].concat(), &[], &good[..31], &out_of_range] {
        let refused = setup.answer(&[&good, bad]).unwrap_err();
        assert!(matches!(refused, ProtocolError::Query { index: 1, .. }), "{refused}");
    }
    // Any other bytes are a query; what they decrypt to is the client's business.
    let mut noise = good.clone();
    noise[..40].fill(0);
    assert_eq!(setup.answer(&[&noise]).unwrap()[0].len(), setup.table.answer_bytes());
    let (_, pending) = setup.query(&one(1, 1));
    let answer = &setup.answer(&[&good]).unwrap()[0];
    for bad in [&answer[1..], &[&answer[..], &[0]].concat(), &[]] {
        let read = onion::recover(&setup.table, &setup.client, &setup.whitening, &pending, bad);
        assert!(matches!(read, Err(ProtocolError::Length { .. })));
    }
}

#[test]
fn hostile_keys_are_refused() {
    let context = RingContext::new(INSECURE_RING_N256);
    let keys = RingKeys::from_seed(&INSECURE_RING_N256, &[1; 32]);
    assert_eq!(keys.upload().len(), upload_bytes(&INSECURE_RING_N256));
    assert!(open_upload(&context, keys.upload()).is_ok());
    let mut out_of_range = keys.upload().to_vec();
    let end = out_of_range.len();
    out_of_range[end - 64..].fill(0xff);
    let mut other_field = keys.upload().to_vec();
    other_field[0] = 0x10;
    let other_preset = RingKeys::from_seed(&INSECURE_RING_PLAIN, &[1; 32]);
    let mut renamed = keys.upload().to_vec();
    let name = renamed.windows(4).position(|bytes| bytes == b"N256").unwrap();
    renamed[name] = b'M';
    for bad in [&keys.upload()[1..], &[], &out_of_range, &other_field, other_preset.upload(), &renamed] {
        assert!(open_upload(&context, bad).is_err());
    }
}

#[test]
fn keys_follow_from_their_seed_alone() {
    let id = |params: &RingParams, seed| RingKeys::from_seed(params, &[seed; 32]).id();
    assert_eq!(id(&INSECURE_RING_N256, 1), id(&INSECURE_RING_N256, 1));
    assert_ne!(id(&INSECURE_RING_N256, 1), id(&INSECURE_RING_N256, 2));
}
