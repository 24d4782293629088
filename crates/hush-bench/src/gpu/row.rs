//! A row of a benchmark on a GPU: what was measured, or why it was not.

use hush_protocol::table::Protocol;
use serde::Serialize;

use super::{floors::Floors, work::Work};

/// What a row is about.
#[derive(Clone, Serialize)]
pub(super) struct What {
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) protocol: Option<String>,
    /// Bytes of the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) table_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) batch: Option<usize>,
    /// Whether these are whole answers, whose queries a second are told.
    #[serde(skip)]
    answers: bool,
}

impl What {
    /// Something by its name.
    pub(super) fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), protocol: None, table_bytes: None, batch: None, answers: false }
    }

    /// Whole answers.
    pub(super) fn answers(name: impl Into<String>) -> Self {
        Self { answers: true, ..Self::named(name) }
    }

    /// The same by another name.
    pub(super) fn renamed(self, name: String) -> Self {
        Self { name, ..self }
    }

    /// Says for how many queries at once.
    pub(super) fn batch(self, batch: usize) -> Self {
        Self { batch: Some(batch), ..self }
    }

    /// Says in which protocol it is done.
    pub(super) fn of(self, protocol: Protocol) -> Self {
        Self { protocol: Some(protocol.to_string()), ..self }
    }

    /// Says of how long a table it is.
    pub(super) fn table(self, bytes: usize) -> Self {
        Self { table_bytes: Some(bytes as u64), ..self }
    }
}

/// One measurement.
#[derive(Serialize)]
pub(super) struct Row {
    #[serde(flatten)]
    pub(super) what: What,
    pub(super) seconds: f64,
    /// Seconds that the work takes at the rates that were measured in this run: the longest of its parts.
    pub(super) floor_seconds: f64,
    /// Which part that is: memory, tensor, cores or copy.
    pub(super) bound: &'static str,
    /// `floor_seconds / seconds`.
    pub(super) share: f64,
    /// Seconds over those in which the bytes are read once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) streams: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) queries_per_second: Option<f64>,
}

impl Row {
    /// A row for `work` in `seconds`.
    pub(super) fn new(what: What, seconds: f64, work: &Work, floors: &Floors) -> Self {
        let (bound, floor_seconds) = floors.longest(work);
        let stream = work.bytes / floors.read;
        let answered = what.batch.filter(|_| what.answers);
        Self {
            what,
            seconds,
            floor_seconds,
            bound,
            share: floor_seconds / seconds,
            streams: (stream > 0.0).then(|| seconds / stream),
            queries_per_second: answered.map(|batch| batch as f64 / seconds),
        }
    }
}

/// What is not measured.
#[derive(Serialize)]
pub(super) struct Skipped<'a> {
    #[serde(flatten)]
    pub(super) what: &'a What,
    /// Why.
    pub(super) skipped: String,
}

/// A rate that was measured.
#[derive(Serialize)]
pub(super) struct Rate {
    pub(super) name: String,
    pub(super) rate: f64,
    pub(super) unit: &'static str,
}
