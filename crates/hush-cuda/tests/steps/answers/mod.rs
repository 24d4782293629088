//! Whole answers: a table of every protocol, made and served by the CUDA backend, is answered byte for byte as by the reference
//! backend, and the client reads the right slot.

mod asked;
mod column;
mod lwe;
mod onion;
mod pack;

use std::ops::Range;

use self::asked::QUERIES;
use crate::devices::{gpu, orderly};
use hush_cuda::{Cuda, device::Device};
use hush_he::params::{
    COLPACK_N2048_Q52, DEFAULT_LWE, INSECURE_COLPACK_N256, INSECURE_PACK_N256, INSECURE_RING_N256, ONION_M31,
    PACK_M31,
};
use hush_ops::{
    contract::{ColumnOps, PackOps},
    reference::Reference,
};
use hush_protocol::table::{Protocol, TableShape};

/// A table with random bytes, and queries for some of its slots.
trait Case: Sync {
    /// The table on a backend, with all that was made of its database.
    type Server<B: PackOps + ColumnOps>: Sync;

    /// Does all the offline work.
    fn serve<B: PackOps + ColumnOps>(&self, backend: B) -> Self::Server<B>;

    /// The answers to some of the queries, in one batch.
    fn answer<B: PackOps + ColumnOps>(&self, server: &Self::Server<B>, queries: Range<usize>)
    -> Vec<Vec<u8>>;

    /// The slot that a query asked for, as the client reads it.
    fn recover(&self, server: &Self::Server<Reference>, query: usize, answer: &[u8]) -> Vec<u8>;

    /// That slot in the clear.
    fn expected(&self, query: usize) -> Vec<u8>;
}

/// Checks batches of three queries, of one and of none on all of `devices`, one after another and from two threads at once.
fn check(case: &impl Case, devices: Vec<Device>) {
    let reference = case.serve(Reference);
    let expected = case.answer(&reference, 0..QUERIES);
    for (query, answer) in expected.iter().enumerate() {
        assert_eq!(case.recover(&reference, query, answer), case.expected(query), "query {query}");
    }
    assert!(case.answer(&reference, 0..0).is_empty());
    for device in devices {
        let name = format!("{}, {:?}", device.info().name, device.info().capability);
        let server = case.serve(Cuda::new(device));
        let answer = |queries: Range<usize>| {
            let answers = case.answer(&server, queries.clone());
            assert!(answers == expected[queries.clone()], "queries {queries:?} on {name}");
        };
        answer(1..2);
        answer(0..0);
        std::thread::scope(|scope| {
            scope.spawn(|| answer(0..QUERIES));
            scope.spawn(|| answer(2..3));
        });
    }
}

fn shape(columns: usize, blocks: usize, slot_bytes: usize) -> TableShape {
    TableShape { columns, blocks, slot_bytes }
}

#[test]
fn simple() {
    check(&lwe::Lwe::new(Protocol::Simple, DEFAULT_LWE, shape(300, 3, 5)), orderly());
}

#[test]
fn frodo() {
    check(&lwe::Lwe::new(Protocol::Frodo, DEFAULT_LWE, shape(300, 1, 5)), orderly());
}

#[test]
fn double() {
    check(&lwe::Lwe::new(Protocol::Double, DEFAULT_LWE, shape(60, 3, 1)), orderly());
}

#[test]
fn colpack_s() {
    check(&column::Column::new(Protocol::ColpackS, INSECURE_COLPACK_N256, shape(300, 5, 100)), orderly());
}

#[test]
fn colpack() {
    check(&column::Column::new(Protocol::Colpack, INSECURE_COLPACK_N256, shape(300, 3, 300)), orderly());
}

#[test]
fn exppack_s() {
    check(&pack::Pack::new(Protocol::ExppackS, INSECURE_PACK_N256, shape(30, 5, 125)), orderly());
}

#[test]
fn exppack_d() {
    check(&pack::Pack::new(Protocol::ExppackD, INSECURE_PACK_N256, shape(30, 3, 3)), orderly());
}

#[test]
fn double_pack() {
    check(&pack::Pack::new(Protocol::DoublePack, INSECURE_PACK_N256, shape(10, 2, 300)), orderly());
}

#[test]
fn hybrid() {
    check(&pack::Pack::new(Protocol::Hybrid, INSECURE_PACK_N256, shape(30, 5, 300)), orderly());
}

#[test]
fn onion() {
    check(&onion::Onion::new(INSECURE_RING_N256, shape(7, 3, 705)), orderly());
}

/// Checks on a GPU: sets in use, whose keys alone would take the emulator long, at sizes that the reference answers in seconds.
/// Without a GPU nothing is done.
fn check_on_a_gpu<C: Case>(case: impl FnOnce() -> C) {
    if let Some(device) = gpu() {
        check(&case(), vec![device]);
    }
}

#[test]
fn onion_in_use() {
    check_on_a_gpu(|| onion::Onion::new(ONION_M31, shape(3, 2, 12 << 10)));
}

#[test]
fn hybrid_in_use() {
    check_on_a_gpu(|| pack::Pack::new(Protocol::Hybrid, PACK_M31, shape(30, 3, 4096)));
}

#[test]
fn double_pack_in_use() {
    check_on_a_gpu(|| pack::Pack::new(Protocol::DoublePack, PACK_M31, shape(30, 3, 4096)));
}

#[test]
fn colpack_in_use() {
    check_on_a_gpu(|| column::Column::new(Protocol::Colpack, COLPACK_N2048_Q52, shape(300, 3, 2048)));
}
