//! The export of traces and log to a collector, by OTLP over HTTP (OpenTelemetry Protocol 1.5). Both tell which endpoint of which
//! table was called, and how long it took, but nothing about the caller or the content.

use opentelemetry::trace::TracerProvider;
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_otlp::{
    ExporterBuildError, LogExporter, Protocol, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::{Resource, logs::SdkLoggerProvider, trace::SdkTracerProvider};
use tracing::{Level, level_filters::LevelFilter};
use tracing_subscriber::{
    Layer,
    filter::{FilterExt, Targets, filter_fn},
};

use super::{BoxedLayer, asked_for};

/// The default name of the server; `OTEL_SERVICE_NAME` overrides it.
const SERVICE: &str = "hushdb";
/// The crate whose spans are traces.
const SERVER: &str = "hush_server";

/// The exporters of telemetry. When dropped, they send what is left, and wait until it is sent.
pub(crate) struct Exporters {
    traces: SdkTracerProvider,
    logs: SdkLoggerProvider,
}

impl Exporters {
    /// Creates the exporters to the collector at `url`. The environment can configure more, by the specification of OpenTelemetry
    /// (`OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER`).
    pub(super) fn to(url: &str) -> Result<Self, String> {
        let wrong = |reason: &dyn std::fmt::Display| {
            format!("--otlp {url}: {reason}: give the URL of a collector, as http://127.0.0.1:4318")
        };
        let parsed = reqwest::Url::parse(url).map_err(|error| wrong(&error))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(wrong(&"it is neither http nor https"));
        }
        // This installs the cryptography of this program. An error means that one is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::blocking::Client::builder().build().map_err(|error| wrong(&error))?;
        let base = url.trim_end_matches('/');
        let wrong = |error: ExporterBuildError| wrong(&error);
        let spans = SpanExporter::builder().with_http().with_http_client(client.clone());
        let spans = spans.with_protocol(Protocol::HttpBinary).with_endpoint(format!("{base}/v1/traces"));
        let logs = LogExporter::builder().with_http().with_http_client(client);
        let logs = logs.with_protocol(Protocol::HttpBinary).with_endpoint(format!("{base}/v1/logs"));
        Ok(Self {
            traces: SdkTracerProvider::builder()
                .with_batch_exporter(spans.build().map_err(wrong)?)
                .with_resource(resource())
                .build(),
            logs: SdkLoggerProvider::builder()
                .with_batch_exporter(logs.build().map_err(wrong)?)
                .with_resource(resource())
                .build(),
        })
    }

    /// Returns the layers that feed the exporters.
    pub(super) fn layers(&self) -> Vec<BoxedLayer> {
        let traces = tracing_opentelemetry::layer().with_tracer(self.traces.tracer(SERVICE));
        let traces =
            traces.with_location(false).with_threads(false).with_target(false).with_tracked_inactivity(false);
        let spans = Targets::new().with_target(SERVER, LevelFilter::INFO);
        let spans = spans.and(filter_fn(|metadata| metadata.is_span()));
        // Exporting the log of the exporters themselves would never end.
        let own = filter_fn(|log| {
            log.is_event() && log.target().starts_with("hush") && *log.level() <= Level::DEBUG
        });
        let logs = OpenTelemetryTracingBridge::new(&self.logs).with_filter(asked_for().and(own));
        vec![traces.with_filter(spans).boxed(), logs.boxed()]
    }
}

impl Drop for Exporters {
    fn drop(&mut self) {
        // The log told when the collector went.
        let _ = self.traces.shutdown();
        let _ = self.logs.shutdown();
    }
}

fn resource() -> Resource {
    let named = std::env::var_os("OTEL_SERVICE_NAME").is_some();
    let resource = Resource::builder();
    let resource = if named { resource } else { resource.with_service_name(SERVICE) };
    let version = opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    resource.with_attribute(version).build()
}
