//! Pages and tables with their types erased, for code that knows a protocol only by name.

use std::{fmt, marker::PhantomData, ops::Range, sync::Arc};

use hush_he::params::ParameterSet;
use hush_ops::path::Step;

use crate::{
    ProtocolError,
    client::{AskedTable, ClientHalf, Given},
    facts::{Content, Database, DbForm, Facts, FileSpec, HintPlan, WordBits},
    halves::{HeadFacts, PartFacts},
    page::Page,
    share::SegmentSize,
    table::{SegmentShape, TableShape, check_failure},
    wire::QuerySizes,
};

/// A page with its type erased: the functions of [`Page`] that need no backend.
pub trait AnyPage: Send + Sync {
    /// [`Page::NAME`].
    fn name(&self) -> &'static str;

    /// [`Page::HAS_COLUMNS`].
    fn has_columns(&self) -> bool;

    /// Returns whether there is a parameter set with this name.
    fn has_set(&self, preset: &str) -> bool;

    /// Returns the name of the parameter set that suits slots of `slot_bytes` bytes.
    fn default_set(&self, slot_bytes: usize) -> &'static str;

    /// Returns the shape of a table for `slots`, with about `columns` columns. `None` lets the page choose their number.
    ///
    /// # Errors
    /// [`ProtocolError::He`] if there is no parameter set `preset`.
    fn shape(&self, preset: &str, slots: Slots, columns: Option<usize>) -> Result<TableShape, ProtocolError>;

    /// Returns a table of one segment of `shape`, with word widths that suit it.
    ///
    /// # Errors
    /// The errors of [`Page::table`]. [`ProtocolError::He`] if there is no parameter set `preset`.
    fn table(&self, preset: &str, shape: TableShape) -> Result<TableParams, ProtocolError>;

    /// Returns a table of `shape` with the word widths of a descriptor.
    ///
    /// # Errors
    /// The errors of [`Page::described`]. [`ProtocolError::He`] if there is no parameter set `preset`.
    fn described(
        &self,
        preset: &str,
        shape: TableShape,
        word_bits: Option<WordBits>,
    ) -> Result<TableParams, ProtocolError>;
}

/// The slots of a table whose shape is not chosen yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// The number of slots.
    pub count: usize,
    /// The number of bytes of a slot.
    pub slot_bytes: usize,
    /// Whether a look-up is by key.
    pub by_key: bool,
}

/// Returns a page as [`AnyPage`].
pub(crate) fn erased<P: Page>() -> &'static dyn AnyPage {
    const { &Erased::<P>(PhantomData) }
}

struct Erased<P>(PhantomData<fn() -> P>);

impl<P: Page> AnyPage for Erased<P> {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn has_columns(&self) -> bool {
        P::HAS_COLUMNS
    }

    fn has_set(&self, preset: &str) -> bool {
        P::Set::named(preset).is_ok()
    }

    fn default_set(&self, slot_bytes: usize) -> &'static str {
        P::default_set(slot_bytes).name()
    }

    fn shape(&self, preset: &str, slots: Slots, columns: Option<usize>) -> Result<TableShape, ProtocolError> {
        Ok(shape::<P>(&P::Set::named(preset)?, slots, columns))
    }

    fn table(&self, preset: &str, shape: TableShape) -> Result<TableParams, ProtocolError> {
        Ok(TableParams::new::<P>(P::table(P::Set::named(preset)?, shape)?))
    }

    fn described(
        &self,
        preset: &str,
        shape: TableShape,
        word_bits: Option<WordBits>,
    ) -> Result<TableParams, ProtocolError> {
        Ok(TableParams::new::<P>(P::described(P::Set::named(preset)?, shape, word_bits)?))
    }
}

/// Returns the shape of a table, with about `columns` columns. `None` lets the page choose their number.
pub fn shape<P: Page>(set: &P::Set, slots: Slots, columns: Option<usize>) -> TableShape {
    let Slots { count, slot_bytes, by_key } = slots;
    let least = if by_key { P::KEY_COLUMNS } else { 1 };
    let blocks = P::blocks(
        count,
        columns.unwrap_or_else(|| P::columns(set, count, slot_bytes).max(least).clamp(1, count.max(1))),
    );
    // The columns are reduced to the fewest that hold all slots in this number of blocks.
    TableShape { columns: count.div_ceil(blocks), blocks, slot_bytes }
}

/// A table of any page, as a list of segments. One query, made for the first segment (the *base*), asks all of them.
#[derive(Clone)]
pub struct TableParams {
    /// The facts of a look-up in all segments.
    facts: Arc<Facts>,
    /// The segments, the base first.
    segments: Vec<SegmentParams>,
}

impl TableParams {
    /// Creates a table of the page `P` that has one segment.
    pub fn new<P: Page>(table: P::Table) -> Self {
        Self::of(vec![SegmentParams::new::<P>(table)])
    }

    fn of(segments: Vec<SegmentParams>) -> Self {
        let [base, beside @ ..] = &segments[..] else { unreachable!("a table has a base") };
        if beside.is_empty() {
            return Self { facts: base.facts.clone(), segments };
        }
        let mut facts = Facts::clone(&base.facts);
        for SegmentParams { facts: own, .. } in beside {
            facts.answer_bytes += own.answer_bytes;
            facts.hint_bytes += own.hint_bytes;
            facts.encoded_bytes += own.encoded_bytes;
            facts.sigmas = facts.sigmas.min(own.sigmas);
            facts.log2_failure = log2_sum(facts.log2_failure, own.log2_failure);
        }
        Self { facts: Arc::new(facts), segments }
    }

    /// Returns the table with one more segment.
    ///
    /// # Errors
    /// The errors of [`Page::segment`]. [`ProtocolError::TooNoisy`] if the answers of all segments together fail too often.
    pub fn with_segment(mut self, shape: SegmentShape) -> Result<Self, ProtocolError> {
        let segment = self.segment(shape)?;
        self.segments.push(segment);
        let table = Self::of(self.segments);
        check_failure(table.facts.log2_failure, table.facts.shape, table.facts.preset)?;
        Ok(table)
    }

    /// Returns a segment that is asked with the queries of the table. The table itself is not changed. The errors are those of
    /// [`Page::segment`].
    pub fn segment(&self, shape: SegmentShape) -> Result<SegmentParams, ProtocolError> {
        self.base().table.segment(shape)
    }

    /// Returns the table, which has only its base so far, with its database in `form`. Later segments have that form too. Fails
    /// like [`Page::in_form`].
    pub fn in_form(self, form: DbForm) -> Result<Self, ProtocolError> {
        Ok(Self::of(vec![self.base().table.in_form(form)?]))
    }

    /// Returns the table for devices that each finish some of the queries, if it differs ([`Page::finished_by_query`]).
    pub fn finished_by_query(&self) -> Option<Self> {
        let segments = self.segments.iter().map(|segment| {
            Some(SegmentParams { facts: segment.facts.clone(), table: segment.table.finished_by_query()? })
        });
        Some(Self { facts: self.facts.clone(), segments: segments.collect::<Option<_>>()? })
    }

    /// [`Page::scans_expansions`].
    pub fn scans_expansions(&self) -> bool {
        self.base().table.scans_expansions()
    }

    /// Returns the facts of a look-up. The query and the shape are those of the base. The sizes of answers, hints and
    /// databases, and the failure probability, are those of all segments.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Returns the base, for which queries are made.
    pub fn base(&self) -> &SegmentParams {
        &self.segments[0]
    }

    /// Returns all segments, the base first.
    pub fn segments(&self) -> &[SegmentParams] {
        &self.segments
    }

    /// Returns the sizes of all segments in a scan, from which shares are computed.
    pub fn scanned(&self) -> Vec<SegmentSize> {
        self.segments.iter().map(|segment| SegmentSize::new(segment.facts().units, segment.files())).collect()
    }

    /// [`Page::database`] of the base.
    pub fn database(&self) -> Database {
        self.base().database()
    }

    /// [`Page::hint`] of the base.
    pub fn hint(&self) -> Option<HintPlan> {
        self.base().hint()
    }

    /// Returns the files of all segments. Each segment has files of the same names.
    pub fn files(&self) -> Vec<FileSpec> {
        self.segments.iter().flat_map(SegmentParams::files).collect()
    }

    /// Returns the bytes that a server holds: all files except those that only clients download.
    pub fn held_bytes(&self) -> u64 {
        let files = self.files().into_iter().map(|file| file.content);
        files.filter(Content::is_held).map(|content| content.bytes()).sum()
    }

    /// [`Page::path`] of the base. Segments are answered one after another, each along its own path.
    pub fn path(&self) -> Vec<Step> {
        self.base().path()
    }

    /// Returns a client's half of the base. Fails like [`Page::client`].
    pub fn client(&self, given: &Given) -> Result<Box<dyn ClientHalf>, ProtocolError> {
        self.base().client(given)
    }
}

/// Returns log2 of the sum of two numbers, which are given by their log2.
fn log2_sum(a: f64, b: f64) -> f64 {
    let worst = a.max(b);
    if worst == f64::NEG_INFINITY { worst } else { worst + ((a - worst).exp2() + (b - worst).exp2()).log2() }
}

/// A segment of a table of any page, with its type erased.
#[derive(Clone)]
pub struct SegmentParams {
    facts: Arc<Facts>,
    table: Arc<dyn AnyTable>,
}

impl SegmentParams {
    /// Creates a segment of the page `P`.
    fn new<P: Page>(table: P::Table) -> Self {
        Self { facts: Arc::new(P::facts(&table)), table: Arc::new(TableOf::<P>(table)) }
    }

    /// Returns the facts of the segment. A segment beside the base has a query of 0 bytes.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Returns the total size of the segment's files in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.files().iter().map(|file| file.content.bytes()).sum()
    }

    /// Returns whether the segment's database could be kept in `form` ([`Page::in_form`]).
    pub fn has_form(&self, form: DbForm) -> bool {
        self.table.in_form(form).is_ok()
    }

    /// [`Page::database`].
    pub fn database(&self) -> Database {
        self.table.database()
    }

    /// [`Page::hint`].
    pub fn hint(&self) -> Option<HintPlan> {
        self.table.hint()
    }

    /// [`Page::files`].
    pub fn files(&self) -> Vec<FileSpec> {
        self.table.files()
    }

    /// [`Page::path`].
    pub fn path(&self) -> Vec<Step> {
        self.table.path()
    }

    /// [`Page::opening`]. Only the base is opened: a segment beside it reuses the base's opened batch.
    pub fn opening(&self) -> Vec<Step> {
        self.table.opening()
    }

    /// [`Page::part`].
    pub fn part(&self, units: &Range<usize>) -> PartFacts {
        self.table.part(units)
    }

    /// [`Page::head`].
    pub fn head(&self, parts: &[Range<usize>]) -> HeadFacts {
        self.table.head(parts)
    }

    /// Returns a client's half of the segment. Fails like [`Page::client`].
    pub fn client(&self, given: &Given) -> Result<Box<dyn ClientHalf>, ProtocolError> {
        self.table.client(given)
    }
}

impl fmt::Debug for TableParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.facts.fmt(f)
    }
}

impl PartialEq for TableParams {
    fn eq(&self, other: &Self) -> bool {
        self.facts == other.facts
    }
}

trait AnyTable: Send + Sync {
    fn in_form(&self, form: DbForm) -> Result<SegmentParams, ProtocolError>;
    fn segment(&self, shape: SegmentShape) -> Result<SegmentParams, ProtocolError>;
    fn finished_by_query(&self) -> Option<Arc<dyn AnyTable>>;
    fn scans_expansions(&self) -> bool;
    fn database(&self) -> Database;
    fn hint(&self) -> Option<HintPlan>;
    fn files(&self) -> Vec<FileSpec>;
    fn path(&self) -> Vec<Step>;
    fn opening(&self) -> Vec<Step>;
    fn part(&self, units: &Range<usize>) -> PartFacts;
    fn head(&self, parts: &[Range<usize>]) -> HeadFacts;
    fn client(&self, given: &Given) -> Result<Box<dyn ClientHalf>, ProtocolError>;
}

struct TableOf<P: Page>(P::Table);

impl<P: Page> AnyTable for TableOf<P> {
    fn in_form(&self, form: DbForm) -> Result<SegmentParams, ProtocolError> {
        Ok(SegmentParams::new::<P>(P::in_form(self.0.clone(), form)?))
    }

    fn segment(&self, shape: SegmentShape) -> Result<SegmentParams, ProtocolError> {
        let table = P::segment(&self.0, shape)?;
        // The segment is asked with the query of the base.
        let facts = Facts { query: QuerySizes::default(), ..P::facts(&table) };
        Ok(SegmentParams { facts: Arc::new(facts), table: Arc::new(TableOf::<P>(table)) })
    }

    fn finished_by_query(&self) -> Option<Arc<dyn AnyTable>> {
        P::finished_by_query(&self.0).map(|table| Arc::new(TableOf::<P>(table)) as Arc<dyn AnyTable>)
    }

    fn scans_expansions(&self) -> bool {
        P::scans_expansions(&self.0)
    }

    fn database(&self) -> Database {
        P::database(&self.0)
    }

    fn hint(&self) -> Option<HintPlan> {
        P::hint(&self.0)
    }

    fn files(&self) -> Vec<FileSpec> {
        P::files(&self.0)
    }

    fn path(&self) -> Vec<Step> {
        P::path(&self.0)
    }

    fn opening(&self) -> Vec<Step> {
        P::opening(&self.0)
    }

    fn part(&self, units: &Range<usize>) -> PartFacts {
        P::part(&self.0, units)
    }

    fn head(&self, parts: &[Range<usize>]) -> HeadFacts {
        P::head(&self.0, parts)
    }

    fn client(&self, given: &Given) -> Result<Box<dyn ClientHalf>, ProtocolError> {
        Ok(Box::new(AskedTable::<P>::new(self.0.clone(), given)?))
    }
}
