//! Whole answers: a table of every protocol, made and served by the CUDA backend, is answered byte for byte as by the reference
//! backend, and the client reads the right slot.

mod content;

use std::{ops::Range, sync::Arc};

use hush_cuda::{
    Cuda,
    device::{Device, Emulation},
};
use hush_he::params::{
    COLPACK_N2048_Q52, DEFAULT_LWE, INSECURE_COLPACK_N256, INSECURE_PACK_N256, INSECURE_RING_N256, ONION_M31,
    ONION_S, PACK_M31,
};
use hush_math::csprng::Csprng;
use hush_ops::{contract::Steps, reference::Reference, tiling::DbBytes};
use hush_protocol::{
    ProtocolError, Target,
    any_page::TableParams,
    client::Given,
    colpack::Colpack,
    colpack_s::ColpackS,
    column_page::ColumnPacked,
    double::Double,
    double_pack::DoublePack,
    exppack_d::ExppackD,
    exppack_s::ExppackS,
    facts::HINT_FILE,
    frodo::Frodo,
    hosted::Hosted,
    hybrid::Hybrid,
    lwe_page::OverLwe,
    onion::Onion,
    pack_page::Packed,
    page::{Files, Page},
    ring_keys::RingKeys,
    ring_page::OverRing,
    simple::Simple,
    table::TableShape,
    wire,
};

use self::content::{Content, QUERIES, SEED, WHITENING};
use crate::{
    devices::{gpu, orderly},
    made::{File, bytes},
};

/// A table with random bytes, a client, and queries for some of its slots.
struct Case<P: Page> {
    table: P::Table,
    content: Content,
    keys: Option<Arc<RingKeys>>,
    /// The files as the reference makes them.
    files: Vec<File>,
    client: P::Client,
    queries: Vec<wire::Query>,
    pending: Vec<P::Pending>,
}

/// The table on a backend, with the client's keys if it needs any.
struct Server<P: Page, B: Steps> {
    hosted: Hosted<P, B>,
    keys: Option<B::Keys>,
}

/// The files of a table by name.
struct Made<'a>(&'a [File]);

impl Files for Made<'_> {
    type Error = ProtocolError;

    fn bytes(&self, name: &'static str) -> Result<DbBytes, ProtocolError> {
        Ok(found(self.0, name).unwrap_or_else(|| panic!("there is no {name}")))
    }
}

fn found(files: &[File], name: &str) -> Option<DbBytes> {
    files.iter().find(|(own, _)| *own == name).map(|(_, bytes)| bytes.clone())
}

impl<P: Page> Case<P> {
    fn new(set: P::Set, shape: TableShape) -> Self {
        let table = P::table(set, shape).unwrap();
        let params = TableParams::new::<P>(table.clone());
        let facts = params.facts();
        let keys = facts.keys.map(|ring| Arc::new(RingKeys::from_seed(&ring, &[9; 32])));
        let whitening = facts.is_whitened.then_some(WHITENING);
        let content = Content::new(params);
        let files = content.files(&Reference);
        let hint = found(&files, HINT_FILE);
        let client = P::client(&table, &Given { seed: SEED, hint, whitening, keys: keys.clone() }).unwrap();
        let rng = &mut Csprng::insecure_from_seed(1);
        let query = |target: Target| P::query(&table, &client, &target, rng);
        let (queries, pending) = content.targets().into_iter().map(query).unzip();
        Self { table, content, keys, files, client, queries, pending }
    }

    /// Returns the table of these files on a backend.
    fn serve<B: Steps>(&self, backend: Arc<B>, files: &[File]) -> Server<P, B> {
        let hosted = Hosted::open(backend, self.table.clone(), SEED, &Made(files)).unwrap();
        let keys = self.keys.as_ref().map(|keys| hosted.share().open_keys(keys.upload()).unwrap());
        Server { hosted, keys }
    }

    /// Returns the answers to some of the queries, in one batch.
    fn answer<B: Steps>(&self, server: &Server<P, B>, queries: Range<usize>) -> Vec<Vec<u8>> {
        let keys: Vec<_> = server.keys.iter().cycle().take(queries.len()).collect();
        server.hosted.answer(&self.queries[queries], &keys).unwrap()
    }

    /// Checks batches of five queries, of three, two, one and none on all of `devices`, one after another and from two threads at
    /// once.
    fn check(&self, devices: Vec<Device>) {
        let reference = self.serve(Arc::new(Reference), &self.files);
        let expected = self.answer(&reference, 0..QUERIES);
        for (query, (answer, target)) in expected.iter().zip(self.content.targets()).enumerate() {
            let slot = P::recover(&self.table, &self.client, &self.pending[query], &target, answer).unwrap();
            assert_eq!(*slot, self.content.slot(&target), "query {query}");
        }
        assert!(self.answer(&reference, 0..0).is_empty());
        for device in devices {
            let name = format!("{}, {:?}", device.info().name, device.info().capability);
            let cuda = Arc::new(Cuda::new(device));
            let files = self.content.files(&*cuda);
            for ((file, expected), (_, made)) in self.files.iter().zip(&files) {
                assert!(bytes(made) == bytes(expected), "{file} on {name}");
            }
            let server = self.serve(cuda, &files);
            let answer = |queries: Range<usize>| {
                let answers = self.answer(&server, queries.clone());
                assert!(answers == expected[queries.clone()], "queries {queries:?} on {name}");
            };
            answer(1..2);
            answer(0..0);
            answer(1..3);
            answer(2..5);
            std::thread::scope(|scope| {
                scope.spawn(|| answer(0..QUERIES));
                scope.spawn(|| answer(2..3));
            });
        }
    }

    /// Checks that a batch of any size is waited for as often as a single query: so many downloads, each of all queries.
    fn check_waits(&self) {
        let device = Device::emulated(Emulation::default());
        let server = self.serve(Arc::new(Cuda::new(device.clone())), &self.files);
        let [one, two, three, five] = [0..1, 0..2, 2..5, 0..5].map(|queries| {
            let before = device.emulated_waits();
            self.answer(&server, queries);
            device.emulated_waits() - before
        });
        assert!(one > 0 && [two, three, five] == [one; 3], "{one}, {two}, {three}, {five} of 1, 2, 3, 5");
    }
}

fn shape(columns: usize, blocks: usize, slot_bytes: usize) -> TableShape {
    TableShape { columns, blocks, slot_bytes }
}

/// Checks a table of `columns` columns, so many blocks, and bytes of a slot.
fn check<P: Page>(set: P::Set, shape: TableShape) {
    let case = Case::<P>::new(set, shape);
    case.check_waits();
    case.check(orderly());
}

#[test]
fn simple() {
    check::<OverLwe<Simple>>(DEFAULT_LWE, shape(300, 3, 5));
}

#[test]
fn frodo() {
    check::<OverLwe<Frodo>>(DEFAULT_LWE, shape(300, 1, 5));
}

#[test]
fn double() {
    check::<OverLwe<Double>>(DEFAULT_LWE, shape(60, 3, 1));
}

#[test]
fn colpack_s() {
    check::<ColumnPacked<ColpackS>>(INSECURE_COLPACK_N256, shape(300, 5, 100));
}

#[test]
fn colpack() {
    check::<ColumnPacked<Colpack>>(INSECURE_COLPACK_N256, shape(300, 3, 300));
}

#[test]
fn exppack_s() {
    check::<Packed<ExppackS>>(INSECURE_PACK_N256, shape(30, 5, 125));
}

#[test]
fn exppack_d() {
    check::<Packed<ExppackD>>(INSECURE_PACK_N256, shape(30, 3, 3));
}

#[test]
fn double_pack() {
    check::<Packed<DoublePack>>(INSECURE_PACK_N256, shape(10, 2, 300));
}

#[test]
fn hybrid() {
    check::<Packed<Hybrid>>(INSECURE_PACK_N256, shape(30, 5, 300));
}

#[test]
fn onion() {
    check::<OverRing<Onion>>(INSECURE_RING_N256, shape(7, 3, 705));
}

/// The set with a prime of 32 bits.
#[test]
fn onion_of_short_records() {
    check::<OverRing<Onion>>(ONION_S, shape(3, 2, 4 << 10));
}

/// Checks on a GPU: sets in use, whose keys alone would take the emulator long, at sizes that the reference answers in seconds.
/// Without a GPU nothing is done.
fn check_on_a_gpu<P: Page>(set: P::Set, shape: TableShape) {
    if let Some(device) = gpu() {
        Case::<P>::new(set, shape).check(vec![device]);
    }
}

#[test]
fn onion_in_use() {
    check_on_a_gpu::<OverRing<Onion>>(ONION_M31, shape(3, 2, 12 << 10));
}

#[test]
fn hybrid_in_use() {
    check_on_a_gpu::<Packed<Hybrid>>(PACK_M31, shape(30, 3, 4096));
}

#[test]
fn double_pack_in_use() {
    check_on_a_gpu::<Packed<DoublePack>>(PACK_M31, shape(30, 3, 4096));
}

#[test]
fn colpack_in_use() {
    check_on_a_gpu::<ColumnPacked<Colpack>>(COLPACK_N2048_Q52, shape(300, 3, 2048));
}
