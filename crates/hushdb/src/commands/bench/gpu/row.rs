//! A row of a benchmark on a GPU: one JSON object, or one line of a table.

use hush_protocol::table::Protocol;
use serde::Serialize;

use super::floors::Floors;

/// What the work of a row is, of which its floor follows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work {
    /// Bytes of device memory that are read or written, each once.
    pub(super) bytes: f64,
    /// Operations on bytes (2 a multiply-add).
    pub(super) byte_ops: f64,
    /// Multiply-adds of 32 bits on the cores.
    pub(super) word_ops: f64,
    /// Bytes that go between host and device.
    pub(super) copied: f64,
}

/// One measurement.
#[derive(Clone, Serialize)]
pub(super) struct Row {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<String>,
    /// Bytes of the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    table_bytes: Option<u64>,
    batch: usize,
    seconds: f64,
    /// Seconds that the work takes at the rates that were measured in this run: the longest of its parts.
    floor_seconds: f64,
    /// Which part that is: memory, tensor, cores or copy.
    bound: &'static str,
    /// `floor_seconds / seconds`.
    share: f64,
    /// Seconds over those in which the bytes are read once.
    #[serde(skip_serializing_if = "Option::is_none")]
    streams: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queries_per_second: Option<f64>,
}

impl Row {
    /// A row for `work` in `seconds`.
    pub(super) fn new(
        name: impl Into<String>,
        batch: usize,
        seconds: f64,
        work: Work,
        floors: &Floors,
    ) -> Self {
        let parts = [
            ("memory", work.bytes / floors.read),
            ("tensor", work.byte_ops / floors.byte_ops),
            ("cores", work.word_ops / floors.word_ops),
            ("copy", work.copied / floors.copy),
        ];
        let (bound, floor_seconds) =
            parts.into_iter().max_by(|one, other| one.1.total_cmp(&other.1)).expect("there are four");
        let streams = (work.bytes > 0.0).then(|| seconds * floors.read / work.bytes);
        Self {
            name: name.into(),
            protocol: None,
            table_bytes: None,
            batch,
            seconds,
            floor_seconds,
            bound,
            share: floor_seconds / seconds,
            streams,
            queries_per_second: None,
        }
    }

    /// Makes this the row of whole answers of `protocol` from a table of `table_bytes` bytes.
    pub(super) fn answer(mut self, protocol: Protocol, table_bytes: usize) -> Self {
        self.queries_per_second = Some(self.batch as f64 / self.seconds);
        self.of(protocol).table(table_bytes)
    }

    /// Says in which protocol it is done.
    pub(super) fn of(mut self, protocol: Protocol) -> Self {
        self.protocol = Some(protocol.to_string());
        self
    }

    /// Says of how long a table it is.
    pub(super) fn table(mut self, table_bytes: usize) -> Self {
        self.table_bytes = Some(table_bytes as u64);
        self
    }
}

/// What is not measured.
#[derive(Serialize)]
pub(super) struct Skipped {
    name: String,
    protocol: String,
    /// Bytes of the table.
    table_bytes: u64,
    /// Why.
    skipped: String,
}

impl Skipped {
    /// Answers of `protocol` from a table of `table_bytes` bytes, because of `why`.
    pub(super) fn answers(protocol: Protocol, table_bytes: usize, why: String) -> Self {
        let (name, table_bytes) = ("answer".into(), table_bytes as u64);
        Self { name, protocol: protocol.to_string(), table_bytes, skipped: why }
    }
}

/// A rate that was measured.
#[derive(Serialize)]
pub(super) struct Rate {
    pub(super) name: String,
    pub(super) rate: f64,
    pub(super) unit: &'static str,
}

/// Prints rows as they come.
pub(super) struct Table {
    json: bool,
    started: bool,
}

impl Table {
    pub(super) fn new(json: bool) -> Self {
        Self { json, started: false }
    }

    pub(super) fn rate(&mut self, rate: &Rate) {
        match self.json {
            true => println!("{}", serde_json::to_string(rate).expect("plain data")),
            false => println!("{:<44} {:>12.4e} {}", rate.name, rate.rate, rate.unit),
        }
    }

    pub(super) fn push(&mut self, row: &Row) {
        if self.json {
            println!("{}", serde_json::to_string(row).expect("plain data"));
            return;
        }
        self.head();
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        println!(
            "{:<30} {:>11} {:>8} {:>4} {:>10.3} {:>10.3} {:>6} {:>5.0}% {:>8} {:>10}",
            row.name,
            row.protocol.as_deref().unwrap_or("-"),
            or_dash(row.table_bytes.map(gib)),
            row.batch,
            1e3 * row.seconds,
            1e3 * row.floor_seconds,
            row.bound,
            100.0 * row.share,
            or_dash(row.streams.map(|streams| format!("{streams:.2}x"))),
            or_dash(row.queries_per_second.map(|rate| format!("{rate:.0}"))),
        );
    }

    pub(super) fn skip(&mut self, row: &Skipped) {
        if self.json {
            println!("{}", serde_json::to_string(row).expect("plain data"));
            return;
        }
        self.head();
        let Skipped { name, protocol, table_bytes, skipped } = row;
        println!("{name:<30} {protocol:>11} {:>8} skipped: {skipped}", gib(*table_bytes));
    }

    fn head(&mut self) {
        if !std::mem::replace(&mut self.started, true) {
            println!(
                "{:<30} {:>11} {:>8} {:>4} {:>10} {:>10} {:>6} {:>6} {:>8} {:>10}",
                "what", "protocol", "GiB", "B", "ms", "floor ms", "bound", "share", "streams", "queries/s"
            );
        }
    }
}

fn gib(bytes: u64) -> String {
    format!("{:.2}", bytes as f64 / f64::from(1 << 30))
}
