//! Every protocol, every index, on tiny tables: in the clear on the plain backend, encrypted on the reference.

use hush_he::params::{
    DEFAULT_LWE, INSECURE_PLAIN, LWE_N1280_STD3_2_PLAIN, LweParams, SIMPLEPIR_N1024_STD6_4_SEC121,
};
use hush_math::csprng::Csprng;
use hush_ops::{contract::LweOps, plain::Plain, reference::Reference, tiling::TiledDb};
use hush_protocol::{
    ProtocolError, Target, double,
    lwe_table::LweTable,
    simple,
    table::{Protocol, TableShape},
};

/// A table whose slot bytes are random or extreme, on a backend, with its hint.
struct Setup<B: LweOps> {
    backend: B,
    params: LweTable,
    matrix: Vec<u8>,
    db: B::Db,
    second_db: Option<B::Db>,
    hint: Vec<u8>,
}

impl<B: LweOps> Setup<B> {
    fn new(backend: B, protocol: Protocol, lwe: LweParams, shape: TableShape, fill: Option<u8>) -> Self {
        let params = LweTable::new(protocol, lwe, shape).unwrap();
        let mut matrix = vec![fill.unwrap_or(0); shape.blocks * shape.slot_bytes * shape.columns];
        if fill.is_none() {
            Csprng::insecure_from_seed(9).fill_bytes(&mut matrix);
        }
        let db = backend
            .open_db(TiledDb::from_matrix(shape.blocks * shape.slot_bytes, shape.columns, &matrix))
            .unwrap();
        let words =
            backend.lwe_hint(&db, &params.first_matrix(), 0..(shape.blocks * shape.slot_bytes)).unwrap();
        let (second_db, words) = if protocol == Protocol::Double {
            let second = double::second_db(&backend, &params, &words).unwrap();
            let rows = params.second_hint_rows();
            let words = backend.lwe_hint(&second, &params.second_matrix(), 0..rows).unwrap();
            (Some(second), words)
        } else {
            (None, words)
        };
        let hint = hush_he::codec::pack_rounded(&backend.read(&words).unwrap(), params.widths().hint);
        assert_eq!(hint.len(), params.hint_bytes());
        Self { backend, params, matrix, db, second_db, hint }
    }

    /// The slot that `target` selects, in the clear.
    fn expected(&self, target: &Target) -> Vec<u8> {
        let shape = self.params.shape();
        let byte = |row: usize| {
            let entry = |&(col, coeff): &(u32, u8)| {
                self.matrix[row * shape.columns + col as usize].wrapping_mul(coeff)
            };
            target.columns.iter().map(entry).fold(0u8, u8::wrapping_add)
        };
        (target.block * shape.slot_bytes..(target.block + 1) * shape.slot_bytes).map(byte).collect()
    }

    /// Looks all targets up in one batch.
    fn check(&self, targets: &[Target], rng: &mut Csprng) {
        let params = &self.params;
        match &self.second_db {
            None => {
                let (queries, pending): (Vec<_>, Vec<_>) =
                    targets.iter().map(|target| simple::query(params, target, rng)).unzip();
                let answers = simple::answer(&self.backend, &self.db, params, &queries).unwrap();
                for ((target, pending), answer) in targets.iter().zip(&pending).zip(&answers) {
                    let slot = simple::recover(params, &self.hint, pending, answer).unwrap();
                    assert_eq!(slot, self.expected(target));
                }
            }
            Some(second) => {
                let (queries, pending): (Vec<_>, Vec<_>) =
                    targets.iter().map(|target| double::query(params, target, rng)).unzip();
                let answers = double::answer(&self.backend, &self.db, second, params, &queries).unwrap();
                for ((target, pending), answer) in targets.iter().zip(&pending).zip(&answers) {
                    assert_eq!(answer.len(), params.answer_bytes());
                    let slot = double::recover(params, &self.hint, pending, answer).unwrap();
                    assert_eq!(slot, self.expected(target));
                }
            }
        }
    }
}

fn every_slot(shape: TableShape) -> Vec<Target> {
    let one_hot = |(block, col)| Target { columns: vec![(col as u32, 1)], block };
    (0..shape.blocks).flat_map(|block| (0..shape.columns).map(move |col| (block, col))).map(one_hot).collect()
}

/// A vector with many entries, as a key look-up has.
fn many_hot(shape: TableShape, rng: &mut Csprng) -> Target {
    let columns = (0..shape.columns as u32).filter(|_| rng.next_u32() & 1 == 1).map(|col| (col, 1)).collect();
    Target { columns, block: rng.next_u32() as usize % shape.blocks }
}

#[test]
fn every_index_in_the_clear() {
    let rng = &mut Csprng::insecure_from_seed(1);
    for (columns, blocks, slot_bytes) in [(1, 1, 1), (5, 3, 2), (65, 4, 3), (130, 1, 33), (3, 70, 1)] {
        let shape = TableShape { columns, blocks, slot_bytes };
        for protocol in [Protocol::Frodo, Protocol::Simple, Protocol::Double] {
            if protocol == Protocol::Frodo && blocks > 1 {
                continue;
            }
            let setup = Setup::new(Plain, protocol, INSECURE_PLAIN, shape, None);
            setup.check(&every_slot(shape), rng);
            setup.check(&[many_hot(shape, rng), many_hot(shape, rng)], rng);
        }
    }
}

#[test]
fn encrypted_look_ups_on_structured_tables() {
    let rng = &mut Csprng::insecure_from_seed(2);
    let shape = TableShape { columns: 300, blocks: 2, slot_bytes: 3 };
    for lwe in [DEFAULT_LWE, LWE_N1280_STD3_2_PLAIN, SIMPLEPIR_N1024_STD6_4_SEC121] {
        for fill in [None, Some(0), Some(0x80), Some(0xff), Some(0x7f)] {
            let setup = Setup::new(Reference, Protocol::Simple, lwe, shape, fill);
            let targets =
                [many_hot(shape, rng), Target { columns: vec![(299, 1)], block: 1 }, many_hot(shape, rng)];
            setup.check(&targets, rng);
        }
    }
}

#[test]
fn double_look_ups_of_one_byte() {
    let rng = &mut Csprng::insecure_from_seed(3);
    let shape = TableShape { columns: 40, blocks: 7, slot_bytes: 1 };
    for fill in [None, Some(0x80)] {
        let setup = Setup::new(Reference, Protocol::Double, DEFAULT_LWE, shape, fill);
        setup.check(&[many_hot(shape, rng), Target { columns: vec![(0, 1)], block: 6 }], rng);
    }
}

#[test]
fn shapes_out_of_range_are_refused() {
    let shape = |columns, blocks, slot_bytes| TableShape { columns, blocks, slot_bytes };
    let limit = |protocol, shape| match LweTable::new(protocol, DEFAULT_LWE, shape) {
        Err(ProtocolError::Limit { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    assert_eq!(limit(Protocol::Simple, shape(0, 1, 1)), "columns");
    assert_eq!(limit(Protocol::Simple, shape(1 << 40, 1, 1)), "columns");
    assert_eq!(limit(Protocol::Simple, shape(10, 0, 1)), "blocks");
    assert_eq!(limit(Protocol::Simple, shape(10, 1, 0)), "slot bytes");
    assert_eq!(limit(Protocol::Frodo, shape(10, 2, 4)), "blocks (frodo has one)");
    let long = LweTable::new(Protocol::Double, DEFAULT_LWE, shape(10, 2, 4000));
    assert!(matches!(long, Err(ProtocolError::SlotTooLong { max: 163, .. })), "{long:?}");
    let noisy = LweTable::new(Protocol::Frodo, SIMPLEPIR_N1024_STD6_4_SEC121, shape(1 << 26, 1, 4096));
    assert!(matches!(noisy, Err(ProtocolError::TooNoisy { .. })), "{noisy:?}");
    assert!(noisy.unwrap_err().to_string().contains("fewer columns"));
}

#[test]
fn wrong_lengths_are_errors() {
    let rng = &mut Csprng::insecure_from_seed(4);
    let shape = TableShape { columns: 20, blocks: 2, slot_bytes: 2 };
    let setup = Setup::new(Reference, Protocol::Simple, DEFAULT_LWE, shape, None);
    let (query, pending) = simple::query(&setup.params, &every_slot(shape)[0], rng);
    let mut short = query.clone();
    short.first = short.first.slice(1..);
    let mut extra = query.clone();
    extra.second = vec![1].into();
    for bad in [short, extra] {
        let error =
            simple::answer(&setup.backend, &setup.db, &setup.params, &[query.clone(), bad]).unwrap_err();
        assert!(matches!(error, ProtocolError::Length { .. }), "{error}");
    }
    let answer = simple::answer(&setup.backend, &setup.db, &setup.params, &[query]).unwrap().remove(0);
    assert!(simple::recover(&setup.params, &setup.hint, &pending, &answer[1..]).is_err());
    assert!(simple::recover(&setup.params, &setup.hint[1..], &pending, &answer).is_err());
}
