//! The commands as functions, for programs that contain HushDB. The options have the names of the command line.

use std::{
    error::Error,
    path::Path,
    thread::{self, JoinHandle},
};

use hush_build::{ApplyRequest, CompactRequest, JobRequest, builder::Signing};
use hush_engine::Progress;
use hush_ingest::Input;
use hush_protocol::{ProtocolError, schema::Column};
use hush_server::Tables;
use hush_store::snapshot::{Header, Snapshot, Verify};
use serde_json::{Map, Value};
use tokio::{runtime::Runtime, sync::oneshot};

use crate::commands::{
    apply::{self, ApplyArgs},
    build::{self, BuildArgs},
    compact::{self, CompactArgs},
    inspect,
    options::arguments,
    plan::{self, PlanArgs},
    rollback::RollbackArgs,
    serve::{self, Front, ServeArgs},
};
pub use crate::commands::{
    plan::{Planned, command_line},
    push::push,
    serve::tables_cache,
};

/// The placeholder for an input that the caller passes separately.
const GIVEN: &str = "-";

/// Returns the request of `hushdb build` of `input` into the folder `out`. May measure this machine for a goal or a budget. Fails
/// if an option is invalid, or no table fits the goal.
pub fn build(
    options: &Map<String, Value>,
    input: Input,
    out: &Path,
    progress: &dyn Progress,
) -> Result<JobRequest, Box<dyn Error>> {
    let args: BuildArgs = arguments(options, &[("out", out)], &[GIVEN.into()])?;
    Ok(JobRequest { input, ..build::prepared(args, progress)? })
}

/// Returns the request of `hushdb apply` for the table in `dir`, and the signing of the next epoch. Without a key among the
/// options, the key columns of the table are read. Fails if an option is invalid, or the table or the signing key cannot be read.
pub fn apply(
    options: &Map<String, Value>,
    dir: &Path,
    changes: Option<Input>,
    delete: Option<Input>,
) -> Result<(ApplyRequest, Option<Signing>), Box<dyn Error>> {
    let args: ApplyArgs = arguments(options, &[], &[dir.into()])?;
    let (_, mut request, update) = apply::request(args);
    (request.changes, request.delete) = (changes, delete);
    if request.ingest.key.is_empty() {
        let snapshot = Snapshot::open(dir, Verify::Header)?;
        let schema = snapshot.header().descriptor.schema.as_ref();
        let key = schema.map_or(&[][..], |schema| &schema.key);
        request.ingest.key = key.iter().map(|Column(name, _)| name.clone()).collect();
    }
    Ok((request, update.signing()?))
}

/// Returns the request of `hushdb compact` for the table in `dir`, and the signing of the next epoch. Fails if an option is
/// invalid, or the signing key cannot be read.
pub fn compact(
    options: &Map<String, Value>,
    dir: &Path,
) -> Result<(CompactRequest, Option<Signing>), Box<dyn Error>> {
    let args: CompactArgs = arguments(options, &[], &[dir.into()])?;
    let (_, request, update) = compact::request(args);
    Ok((request, update.signing()?))
}

/// Returns the epoch that `hushdb rollback` goes back to, and its signing. Fails if an option is invalid, or the signing key cannot
/// be read.
pub fn rollback(
    options: &Map<String, Value>,
    dir: &Path,
) -> Result<(String, Option<Signing>), Box<dyn Error>> {
    let RollbackArgs { to, update, .. } = arguments(options, &[], &[dir.into()])?;
    Ok((to.unwrap_or_default(), update.signing()?))
}

/// Returns the facts that `hushdb inspect` prints of a table, in JSON and as text.
///
/// # Errors
/// [`ProtocolError`] if the table's description is invalid.
pub fn described(header: &Header) -> Result<(Value, String), ProtocolError> {
    Ok((inspect::facts(header)?, inspect::summary(header)?))
}

/// Returns the tables that `hushdb plan` would list, for the records of `input` or those that the options describe.
///
/// # Errors
/// The input cannot be read, or the options are invalid.
pub fn plan(
    options: &Map<String, Value>,
    input: Option<Input>,
    progress: &dyn Progress,
) -> Result<Planned, Box<dyn Error>> {
    let places: Vec<_> = input.iter().map(|_| GIVEN.into()).collect();
    let args: PlanArgs = arguments(options, &[], &places)?;
    plan::planned(args, input, progress)
}

/// A server in this process, on separate threads, for tables that the caller has.
pub struct Server {
    url: String,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Server {
    /// Serves `tables`, as `hushdb serve` would with these options. Refuses options for folders of tables.
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

    /// Returns the URL of the server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Tells the server to stop, and returns its thread without waiting.
    pub fn tell_stop(self) -> JoinHandle<()> {
        // A server that has ended already has no receiver.
        let _ = self.stop.send(());
        self.thread
    }
}
