//! The log of a server, on standard error, and of its traces and log a copy where a collector asks for them.

#[cfg_attr(not(feature = "otlp"), path = "no_otlp.rs")]
mod otlp;

use std::io::{self, IsTerminal};

use clap::ValueEnum;
use tracing_subscriber::{EnvFilter, Layer, Registry, layer::SubscriberExt, util::SubscriberInitExt};

use crate::report::{self, Log, SAID};
use otlp::Exporters;

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// A JSON object a line: all that the server says.
    Json,
}

type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Begins to log what `RUST_LOG` asks for, warnings if nothing; also to the collector at `otlp`, which gets traces too. What is on
/// its way there has gone once the value is dropped.
pub(crate) fn start(format: LogFormat, otlp: Option<&str>) -> Result<Option<Exporters>, String> {
    // A journal takes a line with colours for binary data.
    let colours = io::stderr().is_terminal();
    let log = tracing_subscriber::fmt::layer().with_ansi(colours).with_writer(|| Log);
    // The layer would tell of a line that it cannot write by a macro that panics.
    let log = log.log_internal_errors(false);
    let log: BoxedLayer = match format {
        LogFormat::Text => log.with_filter(asked_for()).boxed(),
        LogFormat::Json => {
            // Lines that come in text whatever `RUST_LOG` asks for come in JSON too.
            let said = format!("{SAID}=info").parse().expect("a target and a level");
            let filter = asked_for().add_directive(said);
            log.json().flatten_event(true).with_filter(filter).boxed()
        }
    };
    let exporters = otlp.map(Exporters::to).transpose()?;
    let mut layers = vec![log];
    layers.extend(exporters.iter().flat_map(Exporters::layers));
    tracing_subscriber::registry().with(layers).init();
    if matches!(format, LogFormat::Json) {
        report::lines_are_json();
    }
    Ok(exporters)
}

/// Looks whether logs could be sent to the collector at `otlp`, which is not asked.
pub(crate) fn check(otlp: Option<&str>) -> Result<(), String> {
    otlp.map(Exporters::to).transpose().map(drop)
}

fn asked_for() -> EnvFilter {
    EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"))
}
