//! The trait [`Page`]: everything that defines a protocol.
//!
//! The server's half of a page is generic over the backend, without `dyn`. Facts that need no backend are plain data
//! ([`Facts`], [`FileSpec`], [`Step`]), so that the code that serves, asks, builds, plans and prints tables does not
//! distinguish protocols. [`crate::any_page::TableParams`] is a table of any page.

use std::{fmt, ops::Range, slice};

use hush_he::{HeError, entities::PublicSeed, params::ParameterSet};
use hush_math::csprng::Csprng;
use hush_ops::{contract::Steps, path::Step, tiling::DbBytes};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::{
    ProtocolError,
    client::Given,
    expansions::Expansions,
    facts::{Database, DbForm, Facts, FileSpec, HintPlan, WordBits},
    halves::{HeadFacts, PartFacts},
    registry::Protocol,
    table::{SegmentShape, TableShape, invalid_descriptor},
    target::Target,
    wire,
};

/// A protocol.
///
/// The functions are in the order in which they are used: the shape, the files, the client's half, the server's half.
pub trait Page: Send + Sync + 'static {
    /// The protocol that the page implements.
    const PROTOCOL: Protocol;
    /// The name used on the command line, in descriptors and on the wire.
    const NAME: &'static str;
    /// Whether the number of columns can be chosen. If not, a table has one block.
    const HAS_COLUMNS: bool = true;
    /// The fewest columns that a table by key should have. Filters waste space below some tens of slots.
    const KEY_COLUMNS: usize = 64;

    /// A parameter set.
    type Set: ParameterSet;
    /// The checked parameters and the shape of a table, which determine every size.
    type Table: Clone + fmt::Debug + PartialEq + Send + Sync;
    /// The client's half of a table.
    type Client: Send + Sync;
    /// The part of a query that a client makes before it knows the target: secrets, wiped when dropped.
    type Prepared: Send + Sync + 'static;
    /// The state that a client keeps between query and answer: secrets, wiped when dropped.
    type Pending: Send + Sync + 'static;
    /// The data of the parameter set on a backend.
    type Scheme<B: Steps>: Send + Sync;
    /// A part of a table on a backend: the data that a scan reads.
    type Part<B: Steps>: Send + Sync;
    /// The data on a backend, beside the parts, that finishing an answer needs.
    type Head<B: Steps>: Send + Sync;
    /// A batch of queries in the form in which a backend reads it.
    type Opened<B: Steps>: Send + Sync;

    /// Returns the parameter set that suits slots of `slot_bytes` bytes.
    fn default_set(slot_bytes: usize) -> Self::Set;

    /// Returns the number of columns (D0) that a table of `slots` slots should have.
    fn columns(set: &Self::Set, slots: usize, slot_bytes: usize) -> usize;

    /// Returns the number of blocks of a table of `slots` slots with about `columns` columns.
    fn blocks(slots: usize, columns: usize) -> usize {
        if Self::HAS_COLUMNS { slots.div_ceil(columns.clamp(1, slots.max(1))) } else { 1 }
    }

    /// Returns a table of `shape`, with word widths that suit it.
    ///
    /// # Errors
    /// [`ProtocolError`] if a limit is exceeded, or an answer would fail with probability above 2^-64.
    fn table(set: Self::Set, shape: TableShape) -> Result<Self::Table, ProtocolError>;

    /// Returns a table of `shape` with the word widths of a descriptor.
    ///
    /// # Errors
    /// The errors of [`Page::table`], and one for widths that this protocol does not have.
    fn described(
        set: Self::Set,
        shape: TableShape,
        word_bits: Option<WordBits>,
    ) -> Result<Self::Table, ProtocolError>;

    /// Returns a segment of `shape` that is asked with the queries of `base`, the base of its table. Its words have the
    /// widths of the base.
    ///
    /// # Errors
    /// The errors of [`Page::table`], and [`ProtocolError::Limit`] for a shape that [`Facts::segments`] of the base does not allow.
    fn segment(base: &Self::Table, shape: SegmentShape) -> Result<Self::Table, ProtocolError>;

    /// Returns the table with its database in `form`.
    ///
    /// # Errors
    /// [`ProtocolError::Descriptor`] if the protocol has no other form than the default.
    fn in_form(table: Self::Table, form: DbForm) -> Result<Self::Table, ProtocolError> {
        if form.is_default() {
            return Ok(table);
        }
        Err(no_symbols(Self::PROTOCOL))
    }

    /// Returns the facts of the table.
    fn facts(table: &Self::Table) -> Facts;

    /// Returns the ranges of units that a server scans one after another. Each is small enough that the intermediate data
    /// of its scan fits in memory.
    fn parts(table: &Self::Table) -> Vec<Range<usize>> {
        vec![0..Self::facts(table).units]
    }

    /// Returns the parts of [`Page::parts`], restricted to the units of a share.
    fn pieces(table: &Self::Table, units: &Range<usize>) -> Vec<Range<usize>> {
        Self::parts(table)
            .into_iter()
            .map(|piece: Range<usize>| piece.start.max(units.start)..piece.end.min(units.end))
            .filter(|units| !units.is_empty())
            .collect()
    }

    /// Returns whether a partial holds one array for the whole batch or one for each query.
    fn partials(table: &Self::Table) -> Partials;

    /// Returns whether [`Page::scan`] reads the expansions of all queries ([`Page::expansions`]). If not, a device that finishes
    /// some of the queries needs the expansions of these alone.
    fn scans_expansions(_table: &Self::Table) -> bool {
        false
    }

    /// Returns the table for devices that each finish some of the queries, if it differs: a device does for its own queries what a
    /// part would otherwise do for all. It takes more memory.
    fn finished_by_query(_table: &Self::Table) -> Option<Self::Table> {
        None
    }

    /// Returns the arrangement of slots in the database.
    fn database(table: &Self::Table) -> Database;

    /// Returns the plan for the database's hint, or `None` if there is no hint.
    fn hint(table: &Self::Table) -> Option<HintPlan>;

    /// Returns the files of a snapshot, the database first if a server reads one.
    fn files(table: &Self::Table) -> Vec<FileSpec>;

    /// Returns the steps of [`Page::open`], which every part and the head execute.
    fn opening(table: &Self::Table) -> Vec<Step>;

    /// Returns the facts of a part that has `units`, which is not empty: its files, steps and contribution.
    fn part(table: &Self::Table, units: &Range<usize>) -> PartFacts;

    /// Returns the facts of the head, which finishes the answers to which all `parts` of the table contribute. Its files
    /// are listed as if it runs apart from the parts.
    fn head(table: &Self::Table, parts: &[Range<usize>]) -> HeadFacts;

    /// Returns the steps of an answer of the whole table.
    fn path(table: &Self::Table) -> Vec<Step> {
        let all = 0..Self::facts(table).units;
        let part = Self::part(table, &all);
        let head = Self::head(table, slice::from_ref(&all));
        [Self::opening(table), part.steps, head.steps].concat()
    }

    /// Client: creates the client's half of a table.
    ///
    /// # Errors
    /// [`ProtocolError`] if `given` lacks something that the table needs.
    fn client(table: &Self::Table, given: &Given) -> Result<Self::Client, ProtocolError>;

    /// Client: makes the part of a query that does not depend on the target, under fresh secrets. It is good for one query.
    fn prepare(table: &Self::Table, client: &Self::Client, rng: &mut Csprng) -> Self::Prepared;

    /// Client: adds the part of [`Page::recover`] that does not depend on the answer, for an answer of this very table.
    ///
    /// # Errors
    /// [`ProtocolError`] if the hint has a wrong length.
    fn prepare_recovery(
        _table: &Self::Table,
        _client: &Self::Client,
        _prepared: &mut Self::Prepared,
    ) -> Result<(), ProtocolError> {
        Ok(())
    }

    /// Client: completes a prepared query with its target.
    fn ask(
        table: &Self::Table,
        client: &Self::Client,
        prepared: Self::Prepared,
        target: &Target,
        rng: &mut Csprng,
    ) -> (wire::Query, Self::Pending);

    /// Client: encrypts `target` under fresh secrets. A retry is a new call.
    fn query(
        table: &Self::Table,
        client: &Self::Client,
        target: &Target,
        rng: &mut Csprng,
    ) -> (wire::Query, Self::Pending) {
        let prepared = Self::prepare(table, client, rng);
        Self::ask(table, client, prepared, target, rng)
    }

    /// Client: returns the slot of `target` from an answer. `target` is the target of the query, or its image in a segment
    /// beside the base.
    ///
    /// # Errors
    /// [`ProtocolError::Length`] if the answer has a wrong length. [`ProtocolError::Keys`] if the query was made with other keys.
    fn recover(
        table: &Self::Table,
        client: &Self::Client,
        pending: &Self::Pending,
        target: &Target,
        answer: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, ProtocolError>;

    /// Server: returns the backend's data of the parameter set, with everything derived from `seed`, the seed of the
    /// table's public values.
    ///
    /// # Errors
    /// [`ProtocolError::Ops`] if the backend has not enough memory or does not support them.
    fn scheme<B: Steps>(
        backend: &B,
        table: &Self::Table,
        seed: PublicSeed,
    ) -> Result<Self::Scheme<B>, ProtocolError>;

    /// Server: opens the part of the table that has `units`, a subrange of 0 to [`Facts::units`].
    ///
    /// # Errors
    /// `F::Error` if a file is missing or damaged, or if the backend cannot hold it.
    fn open_part<B: Steps, F: Files>(
        host: &Host<'_, Self, B>,
        units: Range<usize>,
        files: &F,
    ) -> Result<Self::Part<B>, F::Error>
    where
        Self: Sized;

    /// Server: opens the head, which finishes answers. `parts` cover the whole table, and the head may share their data.
    fn open_head<B: Steps, F: Files>(
        host: &Host<'_, Self, B>,
        parts: &[Self::Part<B>],
        files: &F,
    ) -> Result<Self::Head<B>, F::Error>
    where
        Self: Sized;

    /// Server: reads uploaded evaluation keys.
    ///
    /// # Errors
    /// [`ProtocolError::Keys`] if the keys do not fit the table, or its protocol has none.
    fn open_keys<B: Steps>(host: &Host<'_, Self, B>, body: &[u8]) -> Result<B::Keys, ProtocolError>
    where
        Self: Sized,
    {
        let _ = (host, body);
        Err(ProtocolError::Keys(format!("tables of protocol {:?} have none", Self::NAME)))
    }

    /// Server: parses and checks a batch, and expands the queries `own`. Every invalid query is refused here, before a scan begins,
    /// by the device that expands it.
    ///
    /// # Errors
    /// [`ProtocolError::Query`] with the position of a query that is malformed for this table. [`ProtocolError::Length`] if
    /// a part of a query has a wrong length (the wire format refuses that before). [`ProtocolError::Keys`] if the number of
    /// keys is not the number of queries.
    fn open<B: Steps>(
        host: &Host<'_, Self, B>,
        batch: &Batch<'_, B>,
        own: &Range<usize>,
    ) -> Result<Self::Opened<B>, ProtocolError>
    where
        Self: Sized;

    /// Server: returns the expansions of an opened batch, if its protocol expands queries.
    fn expansions<B: Steps>(_opened: &mut Self::Opened<B>) -> Option<&mut Expansions<B::Words>> {
        None
    }

    /// Server: converts a batch that [`Page::open`] opened for the base to one for the segment `host.table`. Column and
    /// entry are reduced to those of the segment.
    ///
    /// # Errors
    /// [`ProtocolError::Ops`] if the segment does not fit the columns of the base.
    fn wrap<B: Steps>(
        host: &Host<'_, Self, B>,
        opened: &Self::Opened<B>,
    ) -> Result<Self::Opened<B>, ProtocolError>
    where
        Self: Sized;

    /// Server: restricts an opened batch to `queries`, for a server that finishes only these.
    fn narrow<B: Steps>(opened: &Self::Opened<B>, queries: &Range<usize>) -> Self::Opened<B>
    where
        Self: Sized;

    /// Server: scans a part, and returns its contribution to the answers.
    ///
    /// # Errors
    /// [`ProtocolError::Ops`] if a step fails.
    fn scan<B: Steps>(
        host: &Host<'_, Self, B>,
        part: &Self::Part<B>,
        opened: &Self::Opened<B>,
    ) -> Result<Partial<B::Words>, ProtocolError>
    where
        Self: Sized;

    /// Server: computes the answers from the partials of all parts, in their order.
    ///
    /// # Errors
    /// [`ProtocolError::Ops`] if a step fails.
    fn finish<B: Steps>(
        host: &Host<'_, Self, B>,
        head: &Self::Head<B>,
        opened: &Self::Opened<B>,
        batch: &Batch<'_, B>,
        partials: Vec<Partial<B::Words>>,
    ) -> Result<Vec<Vec<u8>>, ProtocolError>
    where
        Self: Sized;
}

/// The source of a snapshot's files on a server.
pub trait Files {
    /// The reason why a file cannot be read.
    type Error: From<ProtocolError>;

    /// Returns the content of the file `name`. Every call returns the same bytes.
    ///
    /// # Errors
    /// `Self::Error` if there is no such file.
    fn bytes(&self, name: &'static str) -> Result<DbBytes, Self::Error>;

    /// Returns a file of which only `ranges` are read. Its other bytes are unspecified.
    ///
    /// # Errors
    /// `Self::Error` if there is no such file, or it is too short for `ranges`.
    fn part(&self, name: &'static str, ranges: &[Range<usize>]) -> Result<DbBytes, Self::Error> {
        let _ = ranges;
        self.bytes(name)
    }
}

/// Files in memory, by name.
impl Files for Vec<(&'static str, DbBytes)> {
    type Error = ProtocolError;

    fn bytes(&self, name: &'static str) -> Result<DbBytes, ProtocolError> {
        let found = self.iter().find(|(own, _)| *own == name).map(|(_, bytes)| bytes.clone());
        found.ok_or_else(|| ProtocolError::Descriptor(format!("the table has no file {name}")))
    }
}

/// A table together with the backend that serves it and the backend's data of its parameter set.
pub struct Host<'a, P: Page + ?Sized, B: Steps> {
    /// The backend.
    pub backend: &'a B,
    /// The parameters.
    pub table: &'a P::Table,
    /// The seed of the table's public values.
    pub seed: PublicSeed,
    /// The backend's data of the parameter set.
    pub scheme: &'a P::Scheme<B>,
}

/// A batch of queries. If the protocol has evaluation keys, it includes those of each query's client.
pub struct Batch<'a, B: Steps> {
    /// The queries.
    pub queries: &'a [wire::Query],
    /// The evaluation keys: one for each query, or an empty slice.
    pub keys: &'a [&'a B::Keys],
}

impl<B: Steps> Batch<'_, B> {
    /// Refuses a batch that has not as many keys as queries.
    pub(crate) fn check_keys(&self) -> Result<(), ProtocolError> {
        let queries = self.queries.len();
        let keys = self.keys.len();
        if queries == keys {
            Ok(())
        } else {
            Err(ProtocolError::Keys(format!("{keys} for {queries} queries")))
        }
    }

    /// Restricts the batch to the range `queries`.
    pub(crate) fn narrow(&self, queries: &Range<usize>) -> Self {
        let keys = if self.keys.is_empty() { self.keys } else { &self.keys[queries.clone()] };
        Self { queries: &self.queries[queries.clone()], keys }
    }

    /// Reads every query with `read`, on all cores. On one core this would take longer than a GPU takes for the batch.
    ///
    /// # Errors
    /// [`ProtocolError::Query`] for the first query that `read` refuses.
    pub(crate) fn read<T: Send>(
        &self,
        read: impl Fn(&wire::Query) -> Result<T, HeError> + Sync,
    ) -> Result<Vec<T>, ProtocolError> {
        self.read_some(&(0..self.queries.len()), read)
    }

    /// Reads the queries `own` as [`Batch::read`] does.
    ///
    /// # Errors
    /// The errors of [`Batch::read`].
    pub(crate) fn read_some<T: Send>(
        &self,
        own: &Range<usize>,
        read: impl Fn(&wire::Query) -> Result<T, HeError> + Sync,
    ) -> Result<Vec<T>, ProtocolError> {
        let read: Vec<_> = self.queries[own.clone()].par_iter().map(&read).collect();
        let refused =
            |(index, read): (_, Result<T, _>)| read.map_err(|source| ProtocolError::Query { index, source });
        own.clone().zip(read).map(refused).collect()
    }
}

/// Returns the error for a table that cannot be kept as symbols.
pub(crate) fn no_symbols(protocol: Protocol) -> ProtocolError {
    invalid_descriptor(&format!("a table of {protocol} is not kept as symbols"))
}

/// The assignment of the words of a [`Partial`] to the queries of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partials {
    /// A single array for the batch: query after query, with equally many words for each.
    Together,
    /// An array for each query.
    Apart,
}

/// The contribution of a part to the answers of a batch.
pub struct Partial<W> {
    /// The units of the part.
    pub units: Range<usize>,
    /// The words, in one array for the batch or one for each query ([`Page::partials`]).
    pub words: Vec<W>,
}

impl<W> Partial<W> {
    /// Returns the partial with its words moved to another memory by `carry`, or the first error of `carry`.
    pub fn carried<V, E>(self, carry: impl FnMut(W) -> Result<V, E>) -> Result<Partial<V>, E> {
        let words = self.words.into_iter().map(carry).collect::<Result<_, _>>()?;
        Ok(Partial { units: self.units, words })
    }
}
