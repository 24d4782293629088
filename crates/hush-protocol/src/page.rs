//! The trait of a page: everything that a protocol is.
//!
//! A page is static inside: its server's half is generic over the backend, and no step is `dyn`. What can be said without a backend
//! is plain data ([`Facts`], [`FileSpec`], [`Step`]), for those who serve, ask, build, plan and print tables, and who match on
//! nothing. [`crate::any_page::TableParams`] is a table of any page.

use std::{fmt, ops::Range, slice};

use hush_he::{HeError, entities::PublicSeed, params::ParameterSet};
use hush_math::csprng::Csprng;
use hush_ops::{contract::Steps, path::Step, tiling::DbBytes};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::{
    ProtocolError,
    client::Given,
    facts::{Database, DbForm, Facts, FileSpec, HintPlan, WordBits},
    halves::{HeadFacts, PartFacts},
    registry::Protocol,
    table::{SegmentShape, TableShape, invalid_descriptor},
    target::Target,
    wire,
};

/// A protocol.
///
/// The functions are in the order in which a table lives: its shape, its files, a client's half, the server's half.
pub trait Page: Send + Sync + 'static {
    /// Which one it is.
    const PROTOCOL: Protocol;
    /// The name used on the command line, in descriptors and on the wire.
    const NAME: &'static str;
    /// Whether the number of columns is a choice: if not, there is one block.
    const HAS_COLUMNS: bool = true;
    /// Fewest columns that a table by key should have: filters are poor below some tens of slots.
    const KEY_COLUMNS: usize = 64;
    /// How the words of a part's partial are those of the queries.
    const PARTIALS: Partials;

    /// A parameter set.
    type Set: ParameterSet;
    /// Checked parameters and shape of a table, from which every size follows.
    type Table: Clone + fmt::Debug + PartialEq + Send + Sync;
    /// A client's half of a table.
    type Client: Send + Sync;
    /// The state that a client keeps between query and answer: secrets, wiped when dropped.
    type Pending: Send + Sync + 'static;
    /// The parameter set on a backend.
    type Scheme<B: Steps>: Send + Sync;
    /// A part of a table on a backend: what a scan reads.
    type Part<B: Steps>: Send + Sync;
    /// The end of an answer on a backend, beside the parts.
    type Head<B: Steps>: Send + Sync;
    /// A batch of queries as a backend reads it.
    type Opened<B: Steps>: Send;

    /// Returns the set that suits slots of so many bytes.
    fn default_set(slot_bytes: usize) -> Self::Set;

    /// Columns (D0) that a table of `slots` slots should have.
    fn columns(set: &Self::Set, slots: usize, slot_bytes: usize) -> usize;

    /// Blocks of a table of `slots` slots with about so many columns.
    fn blocks(slots: usize, columns: usize) -> usize {
        if Self::HAS_COLUMNS { slots.div_ceil(columns.clamp(1, slots.max(1))) } else { 1 }
    }

    /// Returns a table of `shape`, with the widths of words that suit it.
    ///
    /// # Errors
    /// [`ProtocolError`] if a limit is exceeded, or an answer would fail with probability above 2^-64.
    fn table(set: Self::Set, shape: TableShape) -> Result<Self::Table, ProtocolError>;

    /// Returns the table with the widths that a descriptor gives.
    ///
    /// # Errors
    /// As [`Page::table`], and if the widths are none of this protocol.
    fn described(
        set: Self::Set,
        shape: TableShape,
        word_bits: Option<WordBits>,
    ) -> Result<Self::Table, ProtocolError>;

    /// Returns a segment of `shape` that is asked with the queries of `base`, the base of its table. Its words are as wide.
    ///
    /// # Errors
    /// As [`Page::table`], and [`ProtocolError::Limit`] for what [`Facts::segments`] of the base does not allow.
    fn segment(base: &Self::Table, shape: SegmentShape) -> Result<Self::Table, ProtocolError>;

    /// Returns the table with its database in `form`.
    ///
    /// # Errors
    /// [`ProtocolError::Descriptor`] if its protocol has no other form than that of evaluation.
    fn in_form(table: Self::Table, form: DbForm) -> Result<Self::Table, ProtocolError> {
        if form.is_default() {
            return Ok(table);
        }
        Err(no_symbols(Self::PROTOCOL))
    }

    /// Returns the facts of the table.
    fn facts(table: &Self::Table) -> Facts;

    /// Returns the units of the table in the parts in which a server scans it one after another, so that what a pass makes is
    /// no longer than it has memory for.
    fn parts(table: &Self::Table) -> Vec<Range<usize>> {
        vec![0..Self::facts(table).units]
    }

    /// Returns the pieces of a share of the table.
    fn pieces(table: &Self::Table, units: &Range<usize>) -> Vec<Range<usize>> {
        Self::parts(table)
            .into_iter()
            .map(|piece: Range<usize>| piece.start.max(units.start)..piece.end.min(units.end))
            .filter(|units| !units.is_empty())
            .collect()
    }

    /// Returns the database of the slots.
    fn database(table: &Self::Table) -> Database;

    /// Returns the plan for the database's hint; `None` if there is no hint.
    fn hint(table: &Self::Table) -> Option<HintPlan>;

    /// Returns the files of a snapshot, the database first if a server reads one.
    fn files(table: &Self::Table) -> Vec<FileSpec>;

    /// Returns the steps of [`Page::open`], which every part does, and the head.
    fn opening(table: &Self::Table) -> Vec<Step>;

    /// Returns the facts of the part that has `units`, at least one: what it holds, does and contributes.
    fn part(table: &Self::Table, units: &Range<usize>) -> PartFacts;

    /// Returns the facts of the head, which finishes the answers that all `parts` of the table contribute to: what it
    /// holds if it is apart from them, and does.
    fn head(table: &Self::Table, parts: &[Range<usize>]) -> HeadFacts;

    /// Returns the steps of an answer of the whole table.
    fn path(table: &Self::Table) -> Vec<Step> {
        let all = 0..Self::facts(table).units;
        let part = Self::part(table, &all);
        let head = Self::head(table, slice::from_ref(&all));
        [Self::opening(table), part.steps, head.steps].concat()
    }

    /// Client: what it has of a table.
    ///
    /// # Errors
    /// [`ProtocolError`] if something that the table needs is not `given`.
    fn client(table: &Self::Table, given: &Given) -> Result<Self::Client, ProtocolError>;

    /// Client: encrypts `target` under fresh secrets. A retry is a new call.
    fn query(
        table: &Self::Table,
        client: &Self::Client,
        target: &Target,
        rng: &mut Csprng,
    ) -> (wire::Query, Self::Pending);

    /// Client: the slot of `target`, which is what was asked for; of a segment beside the base it is its place in that segment.
    ///
    /// # Errors
    /// [`ProtocolError::Length`] if the answer is not as long as the shape says, [`ProtocolError::Keys`] if the query was made with
    /// other keys.
    fn recover(
        table: &Self::Table,
        client: &Self::Client,
        pending: &Self::Pending,
        target: &Target,
        answer: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, ProtocolError>;

    /// Server: the backend's tables of the parameter set, with what it derives from the seed of the table's public values.
    ///
    /// # Errors
    /// [`ProtocolError::Ops`] if the backend cannot hold them.
    fn scheme<B: Steps>(
        backend: &B,
        table: &Self::Table,
        seed: PublicSeed,
    ) -> Result<Self::Scheme<B>, ProtocolError>;

    /// Server: the part of the table that has the units in `units` (0 to [`Facts::units`]).
    ///
    /// # Errors
    /// `F::Error` if a file is not to be had or is damaged, or the backend cannot hold it.
    fn open_part<B: Steps, F: Files>(
        host: &Host<'_, Self, B>,
        units: Range<usize>,
        files: &F,
    ) -> Result<Self::Part<B>, F::Error>
    where
        Self: Sized;

    /// Server: what finishes the answers to which `parts`, all of the table, contribute. Parts may share what they have.
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
    /// [`ProtocolError::Keys`] if they are none of the table's, or it has none.
    fn open_keys<B: Steps>(host: &Host<'_, Self, B>, body: &[u8]) -> Result<B::Keys, ProtocolError>
    where
        Self: Sized,
    {
        let _ = (host, body);
        Err(ProtocolError::Keys(format!("tables of protocol {:?} have none", Self::NAME)))
    }

    /// Server: reads a batch. All that can be refused is refused here, before anything is scanned.
    ///
    /// # Errors
    /// [`ProtocolError::Query`] with the position of a query that is malformed for this table, [`ProtocolError::Length`] if a part
    /// has
    /// another length (which the wire format refuses), [`ProtocolError::Keys`] if there are not as many keys as queries.
    fn open<B: Steps>(
        host: &Host<'_, Self, B>,
        batch: &Batch<'_, B>,
    ) -> Result<Self::Opened<B>, ProtocolError>
    where
        Self: Sized;

    /// Server: the batch as the segment `host.table` reads it, from what [`Page::open`] made of it for the base: columns and entry
    /// are wrapped to those of the segment.
    ///
    /// # Errors
    /// [`ProtocolError::Ops`] if the base has other columns than the segment is asked with.
    fn wrap<B: Steps>(
        host: &Host<'_, Self, B>,
        opened: &Self::Opened<B>,
    ) -> Result<Self::Opened<B>, ProtocolError>
    where
        Self: Sized;

    /// Server: restricts an opened batch to some queries, for a server that finishes no others.
    fn narrow<B: Steps>(opened: &Self::Opened<B>, queries: &Range<usize>) -> Self::Opened<B>
    where
        Self: Sized;

    /// Server: the pass over a part.
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

    /// Server: the answers, from the partials of all parts in order.
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

/// Where a server finds the files of a snapshot.
pub trait Files {
    /// Why a file is not to be had.
    type Error: From<ProtocolError>;

    /// Returns the content of the file `name`; the same at every call.
    ///
    /// # Errors
    /// If there is no such file.
    fn bytes(&self, name: &'static str) -> Result<DbBytes, Self::Error>;

    /// Returns a file of which only some ranges are read: the other bytes may be anything.
    ///
    /// # Errors
    /// If there is no such file, or it does not have them.
    fn part(&self, name: &'static str, ranges: &[Range<usize>]) -> Result<DbBytes, Self::Error> {
        let _ = ranges;
        self.bytes(name)
    }
}

/// Files that are there, by name.
impl Files for Vec<(&'static str, DbBytes)> {
    type Error = ProtocolError;

    fn bytes(&self, name: &'static str) -> Result<DbBytes, ProtocolError> {
        let found = self.iter().find(|(own, _)| *own == name).map(|(_, bytes)| bytes.clone());
        found.ok_or_else(|| ProtocolError::Descriptor(format!("the table has no file {name}")))
    }
}

/// A table whose parameter set a backend has.
pub struct Host<'a, P: Page + ?Sized, B: Steps> {
    /// The backend.
    pub backend: &'a B,
    /// The parameters.
    pub table: &'a P::Table,
    /// The seed of the table's public values.
    pub seed: PublicSeed,
    /// The backend's tables.
    pub scheme: &'a P::Scheme<B>,
}

/// A batch of queries, and the evaluation keys of the client of each where the protocol has any.
pub struct Batch<'a, B: Steps> {
    /// The queries.
    pub queries: &'a [wire::Query],
    /// The clients' keys: as many keys as queries, or none.
    pub keys: &'a [&'a B::Keys],
}

impl<B: Steps> Batch<'_, B> {
    /// `Ok` if there are as many keys as queries.
    pub(crate) fn check_keys(&self) -> Result<(), ProtocolError> {
        let queries = self.queries.len();
        let keys = self.keys.len();
        if queries == keys {
            Ok(())
        } else {
            Err(ProtocolError::Keys(format!("{keys} for {queries} queries")))
        }
    }

    /// Returns some of the queries.
    pub(crate) fn narrow(&self, queries: &Range<usize>) -> Self {
        let keys = if self.keys.is_empty() { self.keys } else { &self.keys[queries.clone()] };
        Self { queries: &self.queries[queries.clone()], keys }
    }

    /// Reads every query with `read`, on all cores: on one, that takes longer than a GPU takes for the batch.
    ///
    /// # Errors
    /// [`ProtocolError::Query`] for the first that it refuses.
    pub(crate) fn read<T: Send>(
        &self,
        read: impl Fn(&wire::Query) -> Result<T, HeError> + Sync,
    ) -> Result<Vec<T>, ProtocolError> {
        let read: Vec<_> = self.queries.par_iter().map(&read).collect();
        let refused =
            |(index, read): (_, Result<T, _>)| read.map_err(|source| ProtocolError::Query { index, source });
        read.into_iter().enumerate().map(refused).collect()
    }
}

/// Returns the error of a table that has no form of symbols.
pub(crate) fn no_symbols(protocol: Protocol) -> ProtocolError {
    invalid_descriptor(&format!("a table of {protocol} is not kept as symbols"))
}

/// How the words of a [`Partial`] are those of the queries of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partials {
    /// All together: as many of each query, query after query.
    Together,
    /// The words of each query by themselves.
    Apart,
}

/// The contribution of a part to the answers of a batch.
pub struct Partial<W> {
    /// The units of the part.
    pub units: Range<usize>,
    /// Words of the batch, or of each query by itself ([`Page::PARTIALS`]).
    pub words: Vec<W>,
}

impl<W> Partial<W> {
    /// Returns the partial with its words in another memory, as `carry` copies them.
    pub fn carried<V, E>(self, carry: impl FnMut(W) -> Result<V, E>) -> Result<Partial<V>, E> {
        let words = self.words.into_iter().map(carry).collect::<Result<_, _>>()?;
        Ok(Partial { units: self.units, words })
    }
}
