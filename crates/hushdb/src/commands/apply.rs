//! The command `hushdb apply`.

use std::{
    error::Error,
    ffi::OsStr,
    io::BufReader,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::Args;
use hush_build::{
    ApplyRequest, FollowOptions, FollowedEpoch, Update, UpdateError, Updated, builder::Signing,
};
#[cfg(feature = "remote")]
use hush_build::{FollowedTable, follow_database};
use hush_engine::{BackendChoice, Backends, Cancel, Progress};
#[cfg(feature = "remote")]
use hush_ingest::ReplicationSlot;
use hush_ingest::{IngestOptions, Input, OnDuplicate};
use hush_protocol::slot::MAX_VALUE_BYTES;
use serde::Serialize;

use super::{backends, bar, interrupt, rows::RowArgs, signing_key::SignArgs, threads};
use crate::report;

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
    /// Follow a stream of changes until it ends: - for standard input, of which a line is a JSON object with "op": "put" and the
    /// columns of a record, or "op": "delete" and the key columns; or the changes of a table of postgres://USER@HOST/DATABASE.
    #[arg(long, value_name = "STREAM", requires = "key", conflicts_with_all = ["changes", "delete", "on_duplicate"])]
    follow: Option<String>,
    /// Longest time until a change of --follow is in an epoch, such as 500ms or 10s.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = humantime::parse_duration, requires = "follow")]
    every: Duration,
    /// Most changes of an epoch of --follow.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..), requires = "follow")]
    most: u32,
    /// Replication slot of --follow postgres://.., made for pgoutput before the table was built.
    #[arg(long, value_name = "NAME", requires = "follow")]
    slot: Option<String>,
    /// Publication of --follow postgres://... If not given, the one with the name of the slot.
    #[arg(long, value_name = "NAME", requires = "slot")]
    publication: Option<String>,
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
    /// Keep the epoch that is replaced, and at most N of them, for `hushdb rollback`. They are in a hidden folder beside the
    /// table, and share its files where these are the same.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep_epochs: Option<u32>,
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

    /// Returns the number of epochs that are kept, if they are.
    pub(super) fn kept(&self) -> Option<usize> {
        self.keep_epochs.map(|epochs| epochs as usize)
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
            say!(
                "its blocks or leaves are others: queries for the epoch before are answered as long as that is kept"
            );
        }
        Ok(())
    }
}

pub(crate) fn run(args: ApplyArgs) -> ExitCode {
    if args.follow.is_some() {
        return report::exit(follow(args));
    }
    let (dir, request, update) = request(args);
    let outcome =
        update.run(&dir, "changed", |table, backends, progress| table.apply(request, backends, progress));
    interrupt::exit(outcome)
}

/// Returns the folder of the table, the request, and the options of the update.
pub(crate) fn request(args: ApplyArgs) -> (PathBuf, ApplyRequest, UpdateArgs) {
    let ApplyArgs { dir, changes, key, delete, on_duplicate, rows, update, .. } = args;
    let input = |path: PathBuf| Input::from(path.as_os_str());
    let request = ApplyRequest {
        changes: changes.map(input),
        delete: delete.map(input),
        ingest: IngestOptions { key, max_value_size: MAX_VALUE_BYTES as u32, ..rows.options() },
        on_duplicate,
        is_stream: false,
        followed: None,
        keep_epochs: update.kept(),
    };
    (dir, request, update)
}

/// The line about an epoch that is in place: all lines of the stream up to `lines` are in it, or all changes of the database up to
/// `position`.
#[derive(Serialize)]
struct EpochLine {
    epoch: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<String>,
    changes: usize,
}

/// Applies the changes of standard input or of a database as they come. Prints a line for each epoch that is in place.
#[cfg_attr(
    not(feature = "remote"),
    expect(unused_variables, reason = "only clients that are left out use some")
)]
fn follow(args: ApplyArgs) -> Result<(), Box<dyn Error>> {
    let ApplyArgs { dir, key, every, most, update, follow, slot, publication, rows, .. } = args;
    let from = Input::from(OsStr::new(follow.as_deref().unwrap_or("-")));
    let options = FollowOptions {
        key,
        every,
        most: most as usize,
        keep_epochs: update.kept(),
        signing: update.signing()?,
    };
    let backends = backends(update.backend, threads(update.threads))?;
    let stop = Cancel::new();
    let asked = stop.clone();
    ctrlc::set_handler(move || asked.cancel())?;
    let mut written = Ok(());
    let told = |made: &FollowedEpoch| {
        let FollowedEpoch { epoch, lines, position, changes } = *made;
        let lines = position.is_none().then_some(lines);
        let position = position.map(|position| format!("{:X}/{:X}", position >> 32, position as u32));
        let line = EpochLine { epoch: hex::encode(epoch), lines, position, changes };
        let line = serde_json::to_string(&line).expect("it is plain data");
        // Whoever reads these lines may have gone; the table goes on.
        if written.is_ok() {
            written = report::print(&format!("{line}\n"));
        }
    };
    match from {
        Input::Stdin => {
            let stream = BufReader::new(std::io::stdin());
            hush_build::follow(&dir, stream, &options, &backends, &stop, &Noted, told)?;
        }
        #[cfg(feature = "remote")]
        Input::Url(_) => {
            let slot =
                slot.ok_or("which replication slot? --slot NAME, which was made before the table was built")?;
            let publication = publication.unwrap_or_else(|| slot.clone());
            let slot = ReplicationSlot { slot, publication };
            let from = FollowedTable { url: from, slot, table: rows.options().table };
            follow_database(&dir, &from, &options, &backends, &stop, &Noted, told)?;
        }
        _ => return Err("--follow takes - for standard input, or postgres://USER@HOST/DATABASE".into()),
    }
    Ok(written?)
}

/// A progress of which notes alone are printed.
struct Noted;

impl Progress for Noted {
    fn start(&self, _: &str, _: u64, _: &'static str) {}

    fn advance(&self, _: u64) {}

    fn note(&self, line: &str) {
        say!("{line}");
    }
}
