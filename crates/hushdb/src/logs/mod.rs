//! The log of a server on standard error. A collector, if one is configured, gets a copy of it, and traces.

#[cfg_attr(not(feature = "otlp"), path = "no_otlp.rs")]
mod otlp;

use std::io::{self, IsTerminal};

use clap::ValueEnum;
use tracing_subscriber::{EnvFilter, Layer, Registry, layer::SubscriberExt, util::SubscriberInitExt};

use crate::report::{self, Log, SAID};
use otlp::Exporters;

/// The format of a line of the log.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// A JSON object a line, for every line that the server prints.
    Json,
}

type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Begins to log what `RUST_LOG` selects, by default warnings, also to the collector at `otlp`, which gets traces too. Dropping the
/// exporters sends what is left.
pub(crate) fn start(format: LogFormat, otlp: Option<&str>) -> Result<Option<Exporters>, String> {
    // A journal would treat a line with colours as binary data.
    let colours = io::stderr().is_terminal();
    let log = tracing_subscriber::fmt::layer().with_ansi(colours).with_writer(|| Log);
    // On a line that cannot be written, the layer would call a macro that panics.
    let log = log.log_internal_errors(false);
    let log: BoxedLayer = match format {
        LogFormat::Text => log.with_filter(asked_for()).boxed(),
        LogFormat::Json => {
            // Lines that are printed whatever `RUST_LOG` selects are events of the JSON log too.
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

/// Checks that exporters to the collector at `otlp` can be created. The collector is not contacted.
pub(crate) fn check(otlp: Option<&str>) -> Result<(), String> {
    otlp.map(Exporters::to).transpose().map(drop)
}

fn asked_for() -> EnvFilter {
    EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"))
}
