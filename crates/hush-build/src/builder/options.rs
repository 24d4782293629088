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
use hush_store::snapshot::Changes;

use super::{BuildError, Signing};
use crate::planner::{Machine, Wishes};

/// Choices of a build. `None` leaves the choice to the program.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// The protocol; `None` is `auto`: that of the table that suits `wishes` best, or the default ones.
    pub protocol: Option<Protocol>,
    /// Name of the parameter set; `None` is one that suits protocol and records.
    pub preset: Option<String>,
    /// The key filter; `None` is the smallest that suits the table.
    pub filter: Option<FilterKind>,
    /// How plaintexts are kept, where there is a choice.
    pub form: Option<DbForm>,
    /// The length tiers.
    pub tiers: Tiers,
    /// Whether values are compressed.
    pub compress: Compress,
    /// Room for changes, if the table is to take some.
    pub changes: Option<ChangeRoom>,
    /// The table whose changes are folded into this one.
    pub previous: Option<Arc<Previous>>,
    /// Values up to this length have room, although none is as long.
    pub longest: Option<usize>,
    /// Bytes of a fingerprint, 1 to 16: absent keys are taken for present with probability `256^-bytes`.
    pub fingerprint_bytes: u8,
    /// Columns (D0) to aim for.
    pub columns: Option<usize>,
    /// Whether a table is built that this machine has no room for.
    pub force_size: bool,
    /// How the table is signed, if it is.
    pub signing: Option<Signing>,
    /// The wishes that the planner chooses by; with a protocol and without any of these, nothing is planned.
    pub wishes: Option<Wishes>,
    /// The machine that it plans for; `None` is [`Machine::reference`].
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

/// The most length tiers of a table, unless told otherwise.
pub const DEFAULT_TIERS: usize = 4;

/// A table that another one takes the place of, with the same records.
pub struct Previous {
    /// Whether its geometry is kept, if the records fit it.
    pub keeps_geometry: bool,
    /// The descriptor of the table.
    pub descriptor: Descriptor,
    /// The changes that the other one begins with.
    pub changes: Changes,
}

impl fmt::Debug for Previous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // All else of it is in this hash.
        f.debug_tuple("Previous").field(&self.descriptor.epoch).field(&self.keeps_geometry).finish()
    }
}

/// The records for each change that a table has room for, if nothing is specified; the next constant is the least
/// room.
const RECORDS_A_CHANGE: usize = 100;
const LEAST_ROOM: usize = 1000;

/// Room for changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeRoom {
    /// For a hundredth of the records, and at least a thousand.
    Auto,
    /// For so many.
    For(usize),
}

impl ChangeRoom {
    /// Returns how many changes of so many records.
    pub(super) fn changes(self, records: usize) -> usize {
        match self {
            Self::Auto => records.div_ceil(RECORDS_A_CHANGE).max(LEAST_ROOM),
            Self::For(changes) => changes,
        }
    }
}

/// Into how many segments the bytes of values go, by their place: longer values have bytes in more of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tiers {
    /// The number of tiers is the cheapest, up to this one.
    AtMost(usize),
    /// So many, which end at these lengths, ascending.
    Ends(Vec<usize>),
}

/// Whether values are compressed, each by itself, with a dictionary that clients download once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compress {
    /// Values are not compressed.
    None,
    /// If that saves a quarter of what a server keeps, of a table that is many times as long as the dictionary.
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

/// The filter of a table of one segment, if none is asked for.
const FILTER: FilterKind = FilterKind::Band256;
/// The filter of a table of several segments, if none is asked for: the smallest that can be wrapped.
const WRAPPED_FILTER: FilterKind = FilterKind::Band128;

impl BuildOptions {
    /// Returns whether a table whose tiers end at `ends` has several segments.
    pub(super) fn has_segments(&self, ends: &[usize]) -> bool {
        ends.len() > 1 || self.changes.is_some()
    }

    /// Returns how many changes there is to be room for, of so many records.
    pub(super) fn room(&self, records: usize) -> Option<usize> {
        self.changes.map(|room| room.changes(records))
    }

    /// Returns the key filter of a table of one or of several segments.
    pub(super) fn filter_for(&self, several: bool) -> FilterKind {
        self.filter.unwrap_or(if several { WRAPPED_FILTER } else { FILTER })
    }

    /// Returns whether there is nothing to plan: a protocol is named, and nothing is wished of it.
    pub(crate) fn is_settled(&self) -> bool {
        self.protocol.is_some() && self.wishes.is_none()
    }

    /// Returns the parameters of a table of these slots, of the protocol that is asked for.
    ///
    /// # Panics
    /// If there is none.
    pub(super) fn scheme_for(&self, slots: Slots) -> Scheme {
        let protocol = self.protocol.expect("the planner names one");
        let preset =
            self.preset.clone().unwrap_or_else(|| protocol.page().default_set(slots.slot_bytes).into());
        Scheme { protocol, preset, columns: self.columns, form: self.form }
    }
}

/// The longest database that is kept in evaluation form although it could be kept as symbols, unless told otherwise.
const EVALUATION_BYTES: u64 = 1 << 30;

/// A protocol with its parameter set, and the columns that were asked for.
#[derive(Clone)]
pub(super) struct Scheme {
    pub(super) protocol: Protocol,
    preset: String,
    pub(super) columns: Option<usize>,
    form: Option<DbForm>,
}

impl Scheme {
    /// Returns the options of a table that is there.
    pub(super) fn of(descriptor: &Descriptor) -> Self {
        let columns = descriptor.protocol.page().has_columns().then_some(descriptor.columns);
        let form = Some(descriptor.form);
        Self { protocol: descriptor.protocol, preset: descriptor.preset.clone(), columns, form }
    }

    /// Returns the shape that suits these slots.
    pub(super) fn shape(&self, slots: Slots) -> Result<TableShape, BuildError> {
        Ok(self.protocol.page().shape(&self.preset, slots, self.columns)?)
    }

    /// Returns the parameters of a table of `shape`. A limit that it exceeds has to do with the columns that were asked for, if
    /// any, and is named with them; what no number of columns would mend has errors of its own.
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

    /// Returns the table in the form that was asked for; else in that of evaluation, unless symbols are possible and it would
    /// be long.
    fn in_form(&self, table: TableParams) -> Result<TableParams, BuildError> {
        if let Some(form) = self.form {
            return table.in_form(form).map_err(|_| BuildError::NoForm { protocol: self.protocol });
        }
        let symbols = table.clone().in_form(DbForm::Symbols);
        Ok(symbols.ok().filter(|_| table.facts().encoded_bytes > EVALUATION_BYTES).unwrap_or(table))
    }
}
