//! The command `hushdb apply`.

use std::{
    error::Error,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use hush_build::{ApplyRequest, Update, UpdateError, Updated, builder::Signing};
use hush_engine::{BackendChoice, Backends, Cancel, Progress};
use hush_ingest::{IngestOptions, Input, OnDuplicate};
use hush_protocol::slot::MAX_VALUE_BYTES;

use super::{backends, bar, interrupt, rows::RowArgs, signing_key::SignArgs, threads};

/// Apply changes to a table that was built with --updatable.
#[derive(Args)]
pub(crate) struct ApplyArgs {
    /// Folder of the table.
    dir: PathBuf,
    /// New records, and records with a new value, as `build` takes them: a file, a folder of files, or - for standard input.
    changes: Option<PathBuf>,
    /// Column of the key; repeat it for a key of several columns. For a table that is looked up by position, the column of the
    /// position, from 0.
    #[arg(long, value_name = "COL")]
    key: Vec<String>,
    /// Delete the records with the keys in FILE: a .txt file with a key a line, or any file of records, of which --key is read.
    #[arg(long, value_name = "FILE")]
    delete: Option<PathBuf>,
    /// How to treat a key that occurs twice: error, first, last, or all, which makes a list of its values.
    #[arg(long, default_value = "error", value_name = "WHAT")]
    on_duplicate: OnDuplicate,
    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    update: UpdateArgs,
}

/// The options of all commands that change a table.
#[derive(Args)]
pub(crate) struct UpdateArgs {
    #[command(flatten)]
    sign: SignArgs,
    /// Number of threads. If not given, one for every core.
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Backend that computes the hint and what follows from it: auto, cpu or cuda.
    #[arg(long, value_name = "NAME", default_value_t)]
    backend: BackendChoice,
}

impl UpdateArgs {
    /// Returns the key and the name that sign the next epoch, if it is signed.
    ///
    /// # Errors
    /// The file has no key.
    pub(crate) fn signing(&self) -> Result<Option<Signing>, String> {
        self.sign.signing()
    }

    /// Opens the table in `dir`, runs `work` on it, and reports the outcome.
    pub(super) fn run(
        self,
        dir: &Path,
        verb: &str,
        work: impl FnOnce(Update, &Backends, &dyn Progress) -> Result<Updated, UpdateError>,
    ) -> Result<(), Box<dyn Error>> {
        let signing = self.signing()?;
        let backends = backends(self.backend, threads(self.threads))?;
        let cancel = Cancel::new();
        let update = Update::open(dir, signing, &cancel)?;
        interrupt::cancel_on_interrupt(update.partial_dir(), update.phase(), &cancel)?;
        let progress = bar::Bar::new();
        let Updated { header, keeps_geometry, seconds } = work(update, &backends, &progress)?;
        progress.finish();
        say!("{verb} {} in {seconds:.1} s: epoch {}", dir.display(), hex::encode(header.descriptor.epoch));
        if let Some(count) = header.changes {
            let changes = count.changes;
            let room = count.room;
            let deleted = count.deleted;
            say!("{changes} of {room} changes since the base was made, {deleted} of them deletions");
        }
        if !keeps_geometry {
            say!("its blocks are others: queries for the epoch before are answered as long as that is kept");
        }
        Ok(())
    }
}

pub(crate) fn run(args: ApplyArgs) -> ExitCode {
    let (dir, request, update) = request(args);
    let outcome =
        update.run(&dir, "changed", |table, backends, progress| table.apply(request, backends, progress));
    interrupt::exit(outcome)
}

/// Returns the folder of the table, the request, and the options of the update.
pub(crate) fn request(args: ApplyArgs) -> (PathBuf, ApplyRequest, UpdateArgs) {
    let ApplyArgs { dir, changes, key, delete, on_duplicate, rows, update } = args;
    let input = |path: PathBuf| Input::from(path.as_os_str());
    let request = ApplyRequest {
        changes: changes.map(input),
        delete: delete.map(input),
        ingest: IngestOptions { key, max_value_size: MAX_VALUE_BYTES as u32, ..rows.options() },
        on_duplicate,
    };
    (dir, request, update)
}
