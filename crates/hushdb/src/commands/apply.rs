//! `hushdb apply`.

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
    /// Records that are new or have a new value, as `build` takes them: a file, a folder of files, or - for standard input.
    changes: Option<PathBuf>,
    /// Column of the key; several times for a key of several columns. Of a table that is looked up by row, the column of its
    /// number, from 0.
    #[arg(long, value_name = "COL")]
    key: Vec<String>,
    /// Delete the records of the keys in FILE: a .txt file with one a line, or any file of records, of which --key is read.
    #[arg(long, value_name = "FILE")]
    delete: Option<PathBuf>,
    /// How to treat a key that occurs twice: error, first or last.
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
    /// Threads; one for every core if not given.
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
    /// If there is no key in the file.
    pub(crate) fn signing(&self) -> Result<Option<Signing>, String> {
        self.sign.signing()
    }

    /// Opens the table in `dir`, does `work` to it, and says what came of it.
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
            let (changes, room, deleted) = (count.changes, count.room, count.deleted);
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
    let work = |update: Update, backends: &Backends, progress: &dyn Progress| {
        update.apply(request, backends, progress)
    };
    interrupt::exit(update.run(&dir, "changed", work))
}

/// Returns the folder of the table, what is to be changed, and how.
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
