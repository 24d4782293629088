//! The options of a build.

use std::{fmt, str::FromStr, sync::Arc};

use hush_protocol::{
    Protocol, ProtocolError,
    any_page::{Slots, TableParams},
    descriptor::Descriptor,
    facts::DbForm,
    keyword::FilterKind,
    table::TableShape,
};
use hush_store::snapshot::{Changes, FollowedPosition};

use super::{BuildError, Signing};
use crate::{
    planner::{Machine, Wishes},
    sorted::SortedTable,
};

/// The options of a build. `None` leaves the choice to the program.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// The protocol; `None` is `auto`: the protocol of the table that suits `wishes` best, or the default wishes.
    pub protocol: Option<Protocol>,
    /// The name of the parameter set; `None` is one that suits the protocol and the records.
    pub preset: Option<String>,
    /// The key filter; `None` is the smallest that suits the table.
    pub filter: Option<FilterKind>,
    /// The form in which plaintexts are stored, if the protocol has several.
    pub form: Option<DbForm>,
    /// The length tiers.
    pub tiers: Tiers,
    /// Whether values are compressed.
    pub compress: Compress,
    /// The number of changes that the table has room for; `None` if it takes no changes.
    pub changes: Option<ChangeRoom>,
    /// The table whose changes are folded into this one.
    pub previous: Option<Arc<Previous>>,
    /// The description of a sorted table, whose records are leaves; `None` if the table is not sorted.
    pub sorted: Option<Arc<SortedTable>>,
    /// The table has room for values of up to this length in bytes, even if no value is that long.
    pub longest: Option<usize>,
    /// The bytes of a fingerprint, 1 to 16. An absent key is taken for present with probability `256^-bytes`.
    pub fingerprint_bytes: u8,
    /// The number of columns (D0) to aim for.
    pub columns: Option<usize>,
    /// Whether the table is built even if this machine lacks the disk or memory for it.
    pub force_size: bool,
    /// The publisher's signing options; `None` makes an unsigned table.
    pub signing: Option<Signing>,
    /// The wishes by which the planner chooses. With a protocol and without wishes, nothing is planned.
    pub wishes: Option<Wishes>,
    /// The machine for which the planner chooses; `None` is [`Machine::reference`].
    pub machine: Option<Arc<Machine>>,
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self {
            protocol: None,
            preset: None,
            filter: None,
            form: None,
            tiers: Tiers::AtMost(DEFAULT_TIERS),
            compress: Compress::None,
            changes: None,
            previous: None,
            sorted: None,
            longest: None,
            fingerprint_bytes: 8,
            columns: None,
            force_size: false,
            signing: None,
            wishes: None,
            machine: None,
        }
    }
}

/// The default maximum of length tiers in a table.
pub const DEFAULT_TIERS: usize = 4;

/// A table that a build replaces with another table of the same records.
pub struct Previous {
    /// Whether the build keeps the geometry of this table, if the records fit it.
    pub keeps_geometry: bool,
    /// The descriptor of the table.
    pub descriptor: Descriptor,
    /// The changes with which the new table begins.
    pub changes: Changes,
    /// The position in the changes of a database up to which the table has them.
    pub followed: Option<FollowedPosition>,
}

impl fmt::Debug for Previous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The epoch is a hash of the rest of the descriptor.
        f.debug_tuple("Previous").field(&self.descriptor.epoch).field(&self.keeps_geometry).finish()
    }
}

/// The default number of records for each change that a table has room for. `LEAST_ROOM` is the least default room, in
/// changes.
const RECORDS_A_CHANGE: usize = 100;
const LEAST_ROOM: usize = 1000;

/// Room for changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeRoom {
    /// Room for one change in a hundred records, at least for a thousand changes.
    Auto,
    /// Room for this number of changes.
    For(usize),
}

impl ChangeRoom {
    /// Returns the number of changes for a table of this many records.
    pub(super) fn changes(self, records: usize) -> usize {
        match self {
            Self::Auto => records.div_ceil(RECORDS_A_CHANGE).max(LEAST_ROOM),
            Self::For(changes) => changes,
        }
    }

    /// Returns room for no more changes than a table of this many records can have at once.
    pub(crate) fn at_most(self, records: usize) -> Self {
        Self::For(self.changes(records).min(records))
    }
}

/// The segments among which the bytes of values are divided by their position: a longer value has bytes in more segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tiers {
    /// The cheapest number of tiers, up to this one.
    AtMost(usize),
    /// Tiers that end at these lengths in bytes, ascending.
    Ends(Vec<usize>),
}

/// Whether values are compressed, each by itself, with a dictionary that clients download once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compress {
    /// Values are not compressed.
    None,
    /// Values are compressed if that saves a quarter of the files, and the values are many times as long as the dictionary.
    Auto,
    /// Values are compressed with zstd.
    Zstd,
}

impl FromStr for Compress {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "none" => Ok(Self::None),
            "auto" => Ok(Self::Auto),
            "zstd" => Ok(Self::Zstd),
            _ => Err(format!("unknown compression '{name}': use none, auto or zstd")),
        }
    }
}

/// The default filter of a table of one segment.
const FILTER: FilterKind = FilterKind::Band256;
/// The default filter of a table of several segments: the smallest that can be wrapped.
const WRAPPED_FILTER: FilterKind = FilterKind::Band128;

impl BuildOptions {
    /// Returns whether a table whose tiers end at `ends` has several segments.
    pub(super) fn has_segments(&self, ends: &[usize]) -> bool {
        ends.len() > 1 || self.changes.is_some()
    }

    /// Returns the number of changes for which a table of this many records has room; `None` if it takes no changes.
    pub(super) fn room(&self, records: usize) -> Option<usize> {
        self.changes.map(|room| room.changes(records))
    }

    /// Returns the key filter of a table of one or of several segments.
    pub(super) fn filter_for(&self, several: bool) -> FilterKind {
        self.filter.unwrap_or(if several { WRAPPED_FILTER } else { FILTER })
    }

    /// Returns whether nothing has to be planned: a protocol is named, and there are no wishes.
    pub(crate) fn is_settled(&self) -> bool {
        self.protocol.is_some() && self.wishes.is_none()
    }

    /// Returns the protocol, parameter set, columns and form for a table of these slots.
    ///
    /// # Panics
    /// If no protocol is set.
    pub(super) fn scheme_for(&self, slots: Slots) -> Scheme {
        let protocol = self.protocol.expect("the planner names one");
        let preset =
            self.preset.clone().unwrap_or_else(|| protocol.page().default_set(slots.slot_bytes).into());
        Scheme { protocol, preset, columns: self.columns, form: self.form }
    }
}

/// The size in bytes above which a database is stored as symbols by default, where symbols are possible.
const EVALUATION_BYTES: u64 = 1 << 30;

/// A protocol with its parameter set, and the requested columns and form.
#[derive(Clone)]
pub(super) struct Scheme {
    pub(super) protocol: Protocol,
    preset: String,
    pub(super) columns: Option<usize>,
    form: Option<DbForm>,
}

impl Scheme {
    /// Returns the scheme of an existing table.
    pub(super) fn of(descriptor: &Descriptor) -> Self {
        let columns = descriptor.protocol.page().has_columns().then_some(descriptor.columns);
        let form = Some(descriptor.form);
        Self { protocol: descriptor.protocol, preset: descriptor.preset.clone(), columns, form }
    }

    /// Returns the shape that suits these slots.
    pub(super) fn shape(&self, slots: Slots) -> Result<TableShape, BuildError> {
        Ok(self.protocol.page().shape(&self.preset, slots, self.columns)?)
    }

    /// Returns the parameters of a table of `shape`. If a limit is exceeded and columns were requested, the error names the
    /// columns. Errors that no number of columns would avoid are returned unchanged.
    pub(super) fn params(&self, shape: TableShape) -> Result<TableParams, BuildError> {
        let table =
            self.protocol.page().table(&self.preset, shape).map_err(|error| match (error, self.columns) {
                (source @ ProtocolError::Limit { .. }, Some(columns)) => {
                    BuildError::Columns { columns, source }
                }
                (error, _) => error.into(),
            })?;
        self.in_form(table)
    }

    /// Returns the table in the requested form. By default that is evaluation form, or symbols if they are possible and the table
    /// would be longer than [`EVALUATION_BYTES`].
    fn in_form(&self, table: TableParams) -> Result<TableParams, BuildError> {
        if let Some(form) = self.form {
            return table.in_form(form).map_err(|_| BuildError::NoForm { protocol: self.protocol });
        }
        let symbols = table.clone().in_form(DbForm::Symbols);
        Ok(symbols.ok().filter(|_| table.facts().encoded_bytes > EVALUATION_BYTES).unwrap_or(table))
    }
}
