//! A table in memory, on a backend, and a client of it: whatever the page.

mod files;
mod recorder;

use std::{ops::Range, slice, sync::Arc};

pub(crate) use files::Stored;
use hush_he::{
    entities::PublicSeed,
    params::{ColumnParams, PackParams, ParameterSet},
};
use hush_math::csprng::Csprng;
use hush_ops::contract::Steps;
use hush_protocol::{
    Protocol, ProtocolError, Target,
    any_page::TableParams,
    client::{ClientHalf, Given, Hint, Pending},
    colpack::Colpack,
    colpack_s::ColpackS,
    column_page::ColumnPage,
    column_table::{ColumnSpec, ColumnTable},
    double_pack::DoublePack,
    exppack_d::ExppackD,
    exppack_s::ExppackS,
    facts::{Database, HINT_FILE},
    hosted::Hosted,
    hybrid::Hybrid,
    pack_page::PackPage,
    pack_table::{PackSpec, PackTable},
    page::{Files, Page},
    registry::Visitor,
    ring_keys::RingKeys,
    symbols::{from_symbols, to_symbols},
    table::TableShape,
    wire::{self, QuerySizes},
};
pub(crate) use recorder::Recorder;

/// The seed of the client's keys.
pub(crate) const CLIENT_SEED: [u8; 32] = [7; 32];
/// The seed of the whitening of a table over rings.
pub(crate) const WHITENING_SEED: [u8; 32] = [9; 32];

/// The seed of the public values of all tables.
pub(crate) const PUBLIC_SEED: PublicSeed = PublicSeed([11; 32]);

/// The protocols whose answers are packed by evaluation keys.
pub(crate) const PACK: [Protocol; 4] =
    [Protocol::ExppackS, Protocol::ExppackD, Protocol::DoublePack, Protocol::Hybrid];
/// The protocols of column packing.
pub(crate) const COLUMN: [Protocol; 2] = [Protocol::ColpackS, Protocol::Colpack];

/// Returns the facts of a protocol of [`PACK`].
pub(crate) fn pack_spec(protocol: Protocol) -> PackSpec {
    let specs = [ExppackS::SPEC, ExppackD::SPEC, DoublePack::SPEC, Hybrid::SPEC];
    specs.into_iter().find(|spec| spec.protocol == protocol).expect("one of PACK")
}

/// Returns the facts of a protocol of [`COLUMN`].
pub(crate) fn column_spec(protocol: Protocol) -> ColumnSpec {
    let specs = [ColpackS::SPEC, Colpack::SPEC];
    specs.into_iter().find(|spec| spec.protocol == protocol).expect("one of COLUMN")
}

/// A table on a backend, with all that was made of it, and a client.
pub(crate) struct Setup {
    pub(crate) table: TableParams,
    /// The slot bytes: a block is a band of `slot_bytes` rows, a slot a column of it.
    pub(crate) matrix: Vec<u8>,
    pub(crate) files: Stored,
    /// The evaluation keys, if the protocol has any.
    pub(crate) keys: Option<Arc<RingKeys>>,
    pub(crate) client: Box<dyn ClientHalf>,
    server: Box<dyn Server>,
}

impl Setup {
    /// Creates the table whose slot bytes are `matrix`.
    pub(crate) fn new<B: Steps + 'static>(backend: B, table: TableParams, matrix: Vec<u8>) -> Self {
        let files = Stored::build(&backend, &table, &matrix, None);
        Self::of_files(backend, table, matrix, files)
    }

    /// Creates the set-up from files that are there.
    pub(crate) fn of_files<B: Steps + 'static>(
        backend: B,
        table: TableParams,
        matrix: Vec<u8>,
        files: Stored,
    ) -> Self {
        let facts = table.facts();
        let keys = facts.keys.map(|ring| Arc::new(RingKeys::from_seed(&ring, &CLIENT_SEED)));
        let hint = (facts.hint_bytes > 0).then(|| files.bytes(HINT_FILE).unwrap());
        let whitening = facts.is_whitened.then_some(WHITENING_SEED);
        let client = table.client(&Given { seed: PUBLIC_SEED, hint, whitening, keys: keys.clone() }).unwrap();
        let all = 0..facts.units;
        let server = serve(Arc::new(backend), &table, &files, keys.as_deref(), slice::from_ref(&all));
        Self { table, matrix, files, keys, client, server }
    }

    /// Serves the table on any backend, in parts.
    pub(crate) fn serve<B: Steps + 'static>(
        &self,
        backend: &Arc<B>,
        parts: &[Range<usize>],
    ) -> Box<dyn Server> {
        serve(backend.clone(), &self.table, &self.files, self.keys.as_deref(), parts)
    }

    /// Returns a client's query.
    pub(crate) fn query(&self, target: &Target) -> (wire::Query, Pending) {
        self.client.query(target.clone(), &mut Csprng::from_os())
    }

    /// Returns a client's queries.
    pub(crate) fn queries(&self, targets: &[Target]) -> (Vec<wire::Query>, Vec<Pending>) {
        targets.iter().map(|target| self.query(target)).unzip()
    }

    /// Returns the server's answers.
    pub(crate) fn answer(&self, queries: &[wire::Query]) -> Result<Vec<Vec<u8>>, ProtocolError> {
        self.server.answer(queries)
    }

    /// Opens queries, as the server does before it scans anything: it has no part of the table here.
    pub(crate) fn open(&self, queries: &[wire::Query]) -> Result<(), ProtocolError> {
        self.server.open(queries)
    }

    /// Returns the client's slot.
    pub(crate) fn recover(&self, pending: &Pending, answer: &[u8]) -> Result<Vec<u8>, ProtocolError> {
        self.client.recover(pending, answer).map(|slot| slot.to_vec())
    }

    /// Looks targets up by prepared queries, in turns with and without the part of the recovery that is made ahead.
    fn check_prepared(&self, targets: &[Target]) {
        let rng = &mut Csprng::from_os();
        let mut asked = Vec::new();
        for (index, target) in targets.iter().enumerate() {
            let prepared = self.client.prepare(index % 2 == 0, rng).unwrap();
            asked.push(self.client.ask(prepared, target.clone(), rng).unwrap());
        }
        let (queries, pending): (Vec<_>, Vec<_>) = asked.into_iter().unzip();
        assert!(queries.iter().all(|query| sizes(query) == self.table.facts().query));
        self.check_answers(targets, &pending, &self.answer(&queries).unwrap());
    }

    /// Looks all targets up in one batch.
    pub(crate) fn check(&self, targets: &[Target]) {
        let (queries, pending) = self.queries(targets);
        assert!(queries.iter().all(|query| sizes(query) == self.table.facts().query));
        self.check_answers(targets, &pending, &self.answer(&queries).unwrap());
        if self.table.facts().prepared_bytes > 0 {
            self.check_prepared(targets);
        }
    }

    /// The answers are those of the targets.
    pub(crate) fn check_answers(&self, targets: &[Target], pending: &[Pending], answers: &[Vec<u8>]) {
        assert_eq!(answers.len(), targets.len());
        for ((target, pending), answer) in targets.iter().zip(pending).zip(answers) {
            assert_eq!(answer.len(), self.table.facts().answer_bytes);
            assert_eq!(self.recover(pending, answer).unwrap(), self.expected(target), "{:?}", self.table);
        }
    }

    /// Returns the slot that `target` selects, in the clear: a sum of bytes, or over rings of symbols.
    pub(crate) fn expected(&self, target: &Target) -> Vec<u8> {
        let shape = self.table.facts().shape;
        let slots = target.columns.iter().map(|&(column, coefficient)| {
            (slot(shape, &self.matrix, column as usize, target.block), u32::from(coefficient))
        });
        let (length, bits) = match self.table.database() {
            Database::Bytes(_) | Database::Slots => (shape.slot_bytes, u8::BITS),
            Database::Plaintexts(table) => (table.slot_symbols(), table.ring().plaintext_bits()),
        };
        let (mut sum, mut symbols) = (vec![0u32; length], vec![0; length]);
        for (slot, coefficient) in slots {
            to_symbols(&slot, bits, &mut symbols);
            for (sum, symbol) in sum.iter_mut().zip(&symbols) {
                *sum = sum.wrapping_add(symbol.wrapping_mul(coefficient)) & (u32::MAX >> (32 - bits));
            }
        }
        let mut bytes = vec![0; shape.slot_bytes];
        from_symbols(&sum, bits, &mut bytes);
        bytes
    }
}

/// A table on a backend.
pub(crate) trait Server {
    fn answer(&self, queries: &[wire::Query]) -> Result<Vec<Vec<u8>>, ProtocolError>;
    fn open(&self, queries: &[wire::Query]) -> Result<(), ProtocolError>;
}

struct Served<P: Page, B: Steps> {
    hosted: Hosted<P, B>,
    /// The client's keys, if the protocol has any.
    keys: Option<B::Keys>,
}

impl<P: Page, B: Steps> Served<P, B> {
    fn keys(&self, queries: &[wire::Query]) -> Vec<&B::Keys> {
        queries.iter().flat_map(|_| &self.keys).collect()
    }
}

impl<P: Page, B: Steps> Server for Served<P, B> {
    fn answer(&self, queries: &[wire::Query]) -> Result<Vec<Vec<u8>>, ProtocolError> {
        self.hosted.answer(queries, &self.keys(queries))
    }

    fn open(&self, queries: &[wire::Query]) -> Result<(), ProtocolError> {
        self.hosted.share().open_batch(queries, &self.keys(queries)).map(drop)
    }
}

fn serve<B: Steps + 'static>(
    backend: Arc<B>,
    table: &TableParams,
    files: &Stored,
    keys: Option<&RingKeys>,
    parts: &[Range<usize>],
) -> Box<dyn Server> {
    struct Serve<'a, B>(Arc<B>, &'a TableParams, &'a Stored, Option<&'a RingKeys>, &'a [Range<usize>]);
    impl<B: Steps + 'static> Visitor for Serve<'_, B> {
        type Output = Box<dyn Server>;

        fn visit<P: Page>(self) -> Box<dyn Server> {
            let Self(backend, params, files, keys, parts) = self;
            let facts = params.facts();
            let table = P::table(P::Set::named(facts.preset).unwrap(), facts.shape).unwrap();
            let table = P::in_form(table, params.database().form()).unwrap();
            assert_eq!(P::facts(&table), *facts);
            let hosted = Hosted::<P, B>::open_in_parts(backend, table, PUBLIC_SEED, parts, files).unwrap();
            let keys = keys.map(|keys| hosted.share().open_keys(keys.upload()).unwrap());
            Box::new(Served { hosted, keys })
        }
    }
    table.facts().protocol.visit(Serve(backend, table, files, keys, parts))
}

/// Returns a table of a protocol, which has no limit that it exceeds.
pub(crate) fn table(protocol: Protocol, set: &str, shape: TableShape) -> TableParams {
    protocol.page().table(set, shape).unwrap()
}

/// Returns a table of [`PACK`].
pub(crate) fn pack_table(protocol: Protocol, params: PackParams, shape: TableShape) -> PackTable {
    PackTable::new(pack_spec(protocol), params, shape).unwrap()
}

/// Returns a table of [`COLUMN`].
pub(crate) fn column_table(protocol: Protocol, params: ColumnParams, shape: TableShape) -> ColumnTable {
    ColumnTable::new(column_spec(protocol), params, shape).unwrap()
}

/// Returns what a client of a table without keys is given, with zeros for a hint.
pub(crate) fn given(table: &TableParams) -> Given {
    let hint: Hint = Arc::new(vec![0; table.facts().hint_bytes as usize]);
    Given { hint: Some(hint), ..Given::new(PUBLIC_SEED) }
}

pub(crate) fn shape(columns: usize, blocks: usize, slot_bytes: usize) -> TableShape {
    TableShape { columns, blocks, slot_bytes }
}

/// Returns the lengths of the parts of a query.
pub(crate) fn sizes(query: &wire::Query) -> QuerySizes {
    let [first, second, packed, key_id] =
        [&query.first, &query.second, &query.packed, &query.key_id].map(|part| part.len());
    QuerySizes { first, second, packed, key_id }
}

/// Returns the slot bytes of a table, random or all of one value.
pub(crate) fn filled(shape: TableShape, fill: Option<u8>) -> Vec<u8> {
    let mut bytes = vec![fill.unwrap_or(0); shape.blocks * shape.slot_bytes * shape.columns];
    if fill.is_none() {
        Csprng::insecure_from_seed(9).fill_bytes(&mut bytes);
    }
    bytes
}

/// Returns a slot of a matrix.
fn slot(shape: TableShape, matrix: &[u8], column: usize, block: usize) -> Vec<u8> {
    let rows = block * shape.slot_bytes..(block + 1) * shape.slot_bytes;
    rows.map(|row| matrix[row * shape.columns + column]).collect()
}

/// Returns a look-up of one slot.
pub(crate) fn one(column: usize, block: usize) -> Target {
    Target { columns: vec![(column as u32, 1)], block }
}

/// Look-ups of all slots.
pub(crate) fn every_slot(shape: TableShape) -> Vec<Target> {
    (0..shape.blocks * shape.columns).map(|index| one(index % shape.columns, index / shape.columns)).collect()
}

/// Returns a vector that has every column, each at another coefficient.
pub(crate) fn all_columns(shape: TableShape, block: usize) -> Target {
    Target { columns: (0..shape.columns as u32).map(|c| (c, (c * 77 + 1) as u8)).collect(), block }
}
