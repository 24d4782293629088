//! Commands as functions, for programs that HushDB is a part of: options are those of the command line, by the same names.

use std::{
    error::Error,
    path::Path,
    thread::{self, JoinHandle},
};

use hush_engine::{JobRequest, Progress};
use hush_server::Tables;
use hush_store::ingest::Input;
use serde_json::{Map, Value};
use tokio::{runtime::Runtime, sync::oneshot};

use crate::commands::{
    build::{self, BuildArgs},
    options::arguments,
    plan::{self, PlanArgs},
    serve::{self, Front, ServeArgs},
};
pub use crate::commands::{plan::Planned, serve::tables_cache};

/// What stands for an input that is given otherwise.
const GIVEN: &str = "-";

/// What `hushdb build` would make of `input` in the folder `out`. With a goal or a budget, this machine may have to be measured.
///
/// # Errors
/// What the command itself would say of its options.
pub fn build(
    options: &Map<String, Value>,
    input: Input,
    out: &Path,
    progress: &dyn Progress,
) -> Result<JobRequest, Box<dyn Error>> {
    let args: BuildArgs = arguments(options, &[("out", out)], &[GIVEN.into()])?;
    Ok(JobRequest { input, ..build::prepared(args, progress)? })
}

/// The tables that `hushdb plan` would list: for the records of `input`, or for those that the options describe.
///
/// # Errors
/// If an input cannot be read, or the options are none.
pub fn plan(
    options: &Map<String, Value>,
    input: Option<Input>,
    progress: &dyn Progress,
) -> Result<Planned, Box<dyn Error>> {
    let places: Vec<_> = input.iter().map(|_| GIVEN.into()).collect();
    let args: PlanArgs = arguments(options, &[], &places)?;
    plan::planned(args, input, progress)
}

/// A server in this process, on threads of its own, of tables that the program has.
pub struct Server {
    url: String,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Server {
    /// Serves `tables`, as `hushdb serve` would with these options; those about folders of tables are none here.
    ///
    /// # Errors
    /// What the command itself would say of its options, or an address that cannot be listened on.
    pub fn start(options: &Map<String, Value>, tables: Tables) -> Result<Self, Box<dyn Error>> {
        let args: ServeArgs = arguments(options, &[], &[])?;
        let runtime = Runtime::new()?;
        let Front { listeners, config, url, fewer_connections } =
            runtime.block_on(serve::prepare_embedded(&args))?;
        if let Some(line) = fewer_connections {
            say!("hushdb: {line}");
        }
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::spawn(move || {
            if let Err(error) = runtime.block_on(hush_server::run(listeners, tables, config, stopped)) {
                say!("hushdb: the server has ended: {error}");
            }
        });
        Ok(Self { url, stop, thread })
    }

    /// Where it listens.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Tells it to end, without waiting until it has.
    pub fn tell_stop(self) -> JoinHandle<()> {
        // One that has ended already needs not be told.
        let _ = self.stop.send(());
        self.thread
    }
}
