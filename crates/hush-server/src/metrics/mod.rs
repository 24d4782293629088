//! Prometheus metrics. Labels are route templates, statuses and table names: nothing that depends
//! on what a client looks up. Most are counted as it happens; `collected.rs` has those that are read when somebody asks.
//! `list.rs` has the name and the help text of each.

pub(crate) mod collected;
pub(crate) mod list;

use std::{fmt, sync::atomic::AtomicI64, time::Duration};

use axum::http::Method;
use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

use self::collected::{OfProcess, OfTables};
use crate::tables::Tables;

/// The content type of [`Metrics::encode`].
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics of a server.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    request_seconds: Family<DurationLabels, Histogram>,
    queries: Family<TableLabels, Counter>,
    batch_size: Family<TableLabels, Histogram>,
    scan_seconds: Family<TableLabels, Histogram>,
    queue_depth: Family<TableLabels, Gauge<i64, AtomicI64>>,
    /// Evaluation keys in the store.
    pub(crate) keys: Gauge<i64, AtomicI64>,
    /// The bytes of the evaluation keys in the store.
    pub(crate) key_bytes: Gauge<i64, AtomicI64>,
    /// The uploads that were accepted, including uploads of keys that were there already.
    pub(crate) key_uploads: Counter,
    /// The keys that a query named and the store did not have.
    pub(crate) key_misses: Counter,
    /// The keys that were removed to make room.
    pub(crate) keys_evicted: Counter,
    /// The keys that were removed because no query had used them for long.
    pub(crate) keys_expired: Counter,
    /// The sealed requests that were refused because they were answered before.
    pub(crate) sealed_replays: Counter,
    /// The sealed requests that were refused because of their date.
    pub(crate) sealed_dates: Counter,
    /// Open connections.
    pub(crate) connections: Gauge<i64, AtomicI64>,
    /// The bytes read from sockets, headers included.
    pub(crate) received: Counter,
    /// The bytes written to sockets, headers included.
    pub(crate) sent: Counter,
    background_restarts: Family<TaskLabels, Counter>,
    last_look: Family<TableLabels, Gauge<i64, AtomicI64>>,
    stale_tables: Gauge<i64, AtomicI64>,
    reload_failures: Family<TableLabels, Counter>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    route: String,
    status: u32,
}

/// The labels of OpenTelemetry's semantic conventions for HTTP servers.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct DurationLabels {
    http_request_method: String,
    http_route: String,
    http_response_status_code: u32,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct TableLabels {
    table: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct TaskLabels {
    pub(crate) task: &'static str,
}

/// Buckets that OpenTelemetry's conventions give for the duration of HTTP requests, in seconds.
const REQUEST_BUCKETS: [f64; 14] =
    [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];

impl TableLabels {
    pub(crate) fn new(table: &str) -> TableLabels {
        TableLabels { table: table.to_owned() }
    }
}

impl Metrics {
    pub(crate) fn new(tables: &Tables) -> Metrics {
        let upkeep = tables.upkeep();
        let metrics = Metrics {
            registry: Registry::default(),
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(|| Histogram::new(REQUEST_BUCKETS)),
            queries: Family::default(),
            batch_size: Family::new_with_constructor(|| Histogram::new(exponential_buckets(1.0, 2.0, 9))),
            scan_seconds: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.001, 2.0, 15))
            }),
            queue_depth: Family::default(),
            keys: Gauge::default(),
            key_bytes: Gauge::default(),
            key_uploads: Counter::default(),
            key_misses: Counter::default(),
            keys_evicted: Counter::default(),
            keys_expired: Counter::default(),
            sealed_replays: Counter::default(),
            sealed_dates: Counter::default(),
            connections: Gauge::default(),
            received: Counter::default(),
            sent: Counter::default(),
            background_restarts: upkeep.restarts().clone(),
            last_look: upkeep.last_look().clone(),
            stale_tables: upkeep.stale_tables().clone(),
            reload_failures: upkeep.reload_failures().clone(),
        };
        metrics.register(tables)
    }

    fn register(mut self, tables: &Tables) -> Metrics {
        let registry = &mut self.registry;
        list::register(registry, "http_server_request_duration_seconds", self.request_seconds.clone());
        list::register(registry, "hush_http_requests", self.requests.clone());
        list::register(registry, "hush_queries_answered", self.queries.clone());
        list::register(registry, "hush_batch_size", self.batch_size.clone());
        list::register(registry, "hush_scan_seconds", self.scan_seconds.clone());
        list::register(registry, "hush_queue_depth", self.queue_depth.clone());
        list::register(registry, "hush_keys", self.keys.clone());
        list::register(registry, "hush_key_bytes", self.key_bytes.clone());
        list::register(registry, "hush_key_uploads", self.key_uploads.clone());
        list::register(registry, "hush_key_misses", self.key_misses.clone());
        list::register(registry, "hush_keys_evicted", self.keys_evicted.clone());
        list::register(registry, "hush_keys_expired", self.keys_expired.clone());
        list::register(registry, "hush_ohttp_replays", self.sealed_replays.clone());
        list::register(registry, "hush_ohttp_dates_refused", self.sealed_dates.clone());
        list::register(registry, "hush_connections", self.connections.clone());
        list::register(registry, "hush_received_bytes", self.received.clone());
        list::register(registry, "hush_sent_bytes", self.sent.clone());
        list::register(registry, "hush_background_restarts", self.background_restarts.clone());
        list::register(registry, "hush_last_look_timestamp_seconds", self.last_look.clone());
        list::register(registry, "hush_stale_tables", self.stale_tables.clone());
        list::register(registry, "hush_reload_failures", self.reload_failures.clone());
        tables.parts().register(registry);
        registry.register_collector(Box::new(OfTables(tables.clone())));
        registry.register_collector(Box::new(OfProcess));
        self
    }

    /// Counts a request that was answered in `elapsed`.
    pub(crate) fn request(&self, method: &Method, route: &str, status: u16, elapsed: Duration) {
        let labels = RequestLabels { route: route.to_owned(), status: status.into() };
        self.requests.get_or_create(&labels).inc();
        let labels = DurationLabels {
            http_request_method: known(method).to_owned(),
            http_route: route.to_owned(),
            http_response_status_code: status.into(),
        };
        self.request_seconds.get_or_create(&labels).observe(elapsed.as_secs_f64());
    }

    /// Counts a scan of `table` that answered `queries` in `elapsed`.
    pub(crate) fn scanned(&self, table: &str, queries: usize, elapsed: Duration) {
        let labels = TableLabels::new(table);
        self.queries.get_or_create(&labels).inc_by(queries as u64);
        self.batch_size.get_or_create(&labels).observe(queries as f64);
        self.scan_seconds.get_or_create(&labels).observe(elapsed.as_secs_f64());
    }

    /// Returns the gauge of the queries that wait for a scan of `table`, in all its epochs.
    pub(crate) fn queue_depth(&self, table: &str) -> Gauge<i64, AtomicI64> {
        self.queue_depth.get_or_create(&TableLabels::new(table)).clone()
    }

    /// Returns all metrics in the text format of OpenMetrics. Fails if a metric cannot be formatted.
    pub(crate) fn encode(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// Returns an HTTP method, or the word of the conventions in place of one that a client made up, so that the number
/// of labels is bounded.
pub(crate) fn known(method: &Method) -> &str {
    let all = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
    ];
    if all.contains(method) { method.as_str() } else { "_OTHER" }
}
