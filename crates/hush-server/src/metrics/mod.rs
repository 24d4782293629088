//! Prometheus metrics. Labels are route templates, statuses and table names: nothing that depends
//! on what a client looks up. Most are counted as it happens; `collected.rs` has those that are read when somebody asks.

pub(crate) mod collected;

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
    /// Bytes that they count.
    pub(crate) key_bytes: Gauge<i64, AtomicI64>,
    /// The uploads that were taken, with uploads of keys that were there already.
    pub(crate) key_uploads: Counter,
    /// Keys that a query named and the store did not have.
    pub(crate) key_misses: Counter,
    /// Keys that were removed to make room.
    pub(crate) keys_evicted: Counter,
    /// The keys that were removed because no query had used them for long.
    pub(crate) keys_expired: Counter,
    /// Sealed requests that were answered before, and are not again.
    pub(crate) sealed_replays: Counter,
    /// Sealed requests without a date that is taken.
    pub(crate) sealed_dates: Counter,
    /// Open connections.
    pub(crate) connections: Gauge<i64, AtomicI64>,
    /// Bytes read from sockets, headers included.
    pub(crate) received: Counter,
    /// Bytes written to sockets, headers included.
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
        self.registry.register_collector(Box::new(OfProcess));
        // The conventions name this one, whoever has it.
        self.registry.register(
            "http_server_request_duration_seconds",
            "Duration of HTTP requests, to the head of the response",
            self.request_seconds.clone(),
        );
        let registry = self.registry.sub_registry_with_prefix("hush");
        registry.register("http_requests", "Requests by route and status", self.requests.clone());
        registry.register("queries_answered", "Queries answered", self.queries.clone());
        registry.register("batch_size", "Queries answered by one scan", self.batch_size.clone());
        registry.register("scan_seconds", "Duration of a scan", self.scan_seconds.clone());
        registry.register("queue_depth", "Queries waiting for a scan", self.queue_depth.clone());
        registry.register("keys", "Evaluation keys in the store", self.keys.clone());
        registry.register("key_bytes", "Bytes of evaluation keys in the store", self.key_bytes.clone());
        registry.register("key_uploads", "Uploads of evaluation keys", self.key_uploads.clone());
        registry.register("key_misses", "Queries whose keys are not in the store", self.key_misses.clone());
        registry.register("keys_evicted", "Keys removed to make room", self.keys_evicted.clone());
        registry.register("keys_expired", "Keys removed after their lifetime", self.keys_expired.clone());
        registry.register(
            "ohttp_replays",
            "Sealed requests that were sent again",
            self.sealed_replays.clone(),
        );
        registry.register(
            "ohttp_dates_refused",
            "Sealed requests with another date",
            self.sealed_dates.clone(),
        );
        registry.register("connections", "Open connections", self.connections.clone());
        registry.register("received_bytes", "Bytes read from sockets", self.received.clone());
        registry.register("sent_bytes", "Bytes written to sockets", self.sent.clone());
        registry.register(
            "background_restarts",
            "Background tasks that failed and were started again",
            self.background_restarts.clone(),
        );
        registry.register(
            "last_look_timestamp_seconds",
            "When the place of a table was last looked at",
            self.last_look.clone(),
        );
        registry.register(
            "stale_tables",
            "Tables that are not known to be up to date",
            self.stale_tables.clone(),
        );
        registry.register(
            "reload_failures",
            "Times that the content of a table's place was not taken up",
            self.reload_failures.clone(),
        );
        tables.parts().register(registry);
        registry.register_collector(Box::new(OfTables(tables.clone())));
        self
    }

    /// A request was answered.
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

    pub(crate) fn scanned(&self, table: &str, queries: usize, elapsed: Duration) {
        let labels = TableLabels::new(table);
        self.queries.get_or_create(&labels).inc_by(queries as u64);
        self.batch_size.get_or_create(&labels).observe(queries as f64);
        self.scan_seconds.get_or_create(&labels).observe(elapsed.as_secs_f64());
    }

    /// Queries waiting for a scan of `table`, in all its epochs.
    pub(crate) fn queue_depth(&self, table: &str) -> Gauge<i64, AtomicI64> {
        self.queue_depth.get_or_create(&TableLabels::new(table)).clone()
    }

    /// Returns all metrics in the text format.
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
