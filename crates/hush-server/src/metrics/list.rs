//! Every metric, a line each: the help texts of `/metrics`, and the page `docs/reference/metrics.md`, are written from them.

use prometheus_client::registry::{Metric as Measured, Registry};

/// A kind of metric, in the words of OpenMetrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A number that only grows while the server runs. Its name ends with `_total` in `/metrics`.
    Counter,
    /// A number that rises and falls.
    Gauge,
    /// Counts of values, by the buckets that they are in.
    Histogram,
    /// Always 1: what it tells is in its labels. Its name ends with `_info` in `/metrics`.
    Info,
}

/// A metric of a server.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// The name without the suffix of its kind.
    pub name: &'static str,
    /// The kind.
    pub kind: MetricKind,
    /// The names of its labels, in the order of `/metrics`.
    pub labels: &'static [&'static str],
    /// The meaning of a value, without a full stop.
    pub help: &'static str,
}

impl Metric {
    /// Returns the name in `/metrics` (a histogram: without `_bucket`, `_sum` and `_count`).
    pub fn shown(&self) -> String {
        let suffix = match self.kind {
            MetricKind::Counter => "_total",
            MetricKind::Gauge | MetricKind::Histogram => "",
            MetricKind::Info => "_info",
        };
        format!("{}{suffix}", self.name)
    }
}

const fn metric(
    name: &'static str,
    kind: MetricKind,
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric { name, kind, labels, help }
}

use MetricKind::{Counter, Gauge, Histogram, Info};

const TABLE: &[&str] = &["table"];
const PART: &[&str] = &["table", "part"];

/// Every metric that a server has: of HTTP, of tables, of keys, of sealed requests, of background tasks, of parts, of the process.
#[rustfmt::skip]
pub const METRICS: &[Metric] = &[
    metric("http_server_request_duration_seconds", Histogram, &["http_request_method", "http_route", "http_response_status_code"], "Seconds from a request to the head of its response, in the buckets of OpenTelemetry's conventions"),
    metric("hush_http_requests", Counter, &["route", "status"], "Requests; the route is the template of the endpoint, or other if none matched"),
    metric("hush_connections", Gauge, &[], "Open connections"),
    metric("hush_received_bytes", Counter, &[], "Bytes read from sockets, headers included"),
    metric("hush_sent_bytes", Counter, &[], "Bytes written to sockets, headers included"),
    metric("hush_queries_answered", Counter, TABLE, "Queries answered"),
    metric("hush_batch_size", Histogram, TABLE, "Queries answered by one scan"),
    metric("hush_scan_seconds", Histogram, TABLE, "Seconds that a scan took; on a GPU two may run at once, and each includes its wait for the other"),
    metric("hush_queue_depth", Gauge, TABLE, "Queries that wait for a scan"),
    metric("hush_table_ready", Gauge, TABLE, "1 for a table that answers, 0 for one that is loading, has failed, or has lost its GPU"),
    metric("hush_table_degraded", Gauge, TABLE, "1 for a table that has lost some of the GPUs with a copy of it, while others answer"),
    metric("hush_table_epoch_info", Gauge, &["table", "epoch"], "1 for the epoch that is served"),
    metric("hush_table_epoch_timestamp_seconds", Gauge, TABLE, "When the served epoch was taken up, in seconds since 1970"),
    metric("hush_table_epochs", Gauge, TABLE, "Epochs in memory: the served one, and replaced ones that still answer"),
    metric("hush_stale_tables", Gauge, &[], "Tables that are not known to be up to date: /readyz names them"),
    metric("hush_last_look_timestamp_seconds", Gauge, TABLE, "When the server last looked for a new epoch of the table, in seconds since 1970"),
    metric("hush_reload_failures", Counter, TABLE, "Times that a new epoch could not be served, while the server follows the table's place, at SIGHUP, or by a reload; the epoch before is served. Each attempt counts: while an object store does not answer, one every ten seconds"),
    metric("hush_keys", Gauge, &[], "Evaluation keys in the store"),
    metric("hush_key_bytes", Gauge, &[], "Bytes of evaluation keys in the store"),
    metric("hush_key_uploads", Counter, &[], "Uploads of evaluation keys that were taken, those of keys that were there already included"),
    metric("hush_key_misses", Counter, &[], "Queries whose keys were not in the store"),
    metric("hush_keys_evicted", Counter, &[], "Keys removed to make room"),
    metric("hush_keys_expired", Counter, &[], "Keys removed because no query had used them for their lifetime"),
    metric("hush_ohttp_replays", Counter, &[], "Sealed requests that were refused because they had been answered before"),
    metric("hush_ohttp_dates_refused", Counter, &[], "Sealed requests that were refused because of their date"),
    metric("hush_background_restarts", Counter, &["task"], "Background tasks that panicked and were started again: accept, scan, keys, epochs, files, mapped, folders, copies, tasks, compaction"),
    metric("hush_part_up", Gauge, PART, "Of a cluster's head: whether a replica of the part is alive and has the served epoch"),
    metric("hush_part_replicas", Gauge, PART, "Replicas of the part that are alive and have the served epoch"),
    metric("hush_part_restarts", Counter, PART, "Processes of the part that took the place of others, as this head saw them"),
    metric("hush_part_seconds", Histogram, PART, "Seconds from the hand-out of a batch to the part's reply"),
    metric("hush_build", Info, &["version", "program"], "The version of the program, and its BLAKE3 hash as in /info"),
    metric("process_resident_memory_bytes", Gauge, &[], "Memory of the process, mapped files included"),
    metric("process_cpu_seconds", Counter, &[], "CPU time of the process"),
    metric("process_start_time_seconds", Gauge, &[], "When the process started, in seconds since 1970"),
    metric("process_open_fds", Gauge, &[], "Open files, connections included"),
    metric("process_max_fds", Gauge, &[], "The limit of open files"),
];

/// Returns the help text of the metric `name`.
///
/// # Panics
/// If [`METRICS`] has no metric of this name.
pub(crate) fn help(name: &str) -> &'static str {
    match METRICS.iter().find(|metric| metric.name == name) {
        Some(metric) => metric.help,
        None => panic!("the metric {name} is not in the list"),
    }
}

/// Registers a metric under its name and with its help text of [`METRICS`].
///
/// # Panics
/// If [`METRICS`] has no metric of this name.
pub(crate) fn register(registry: &mut Registry, name: &'static str, metric: impl Measured) {
    registry.register(name, help(name), metric);
}
