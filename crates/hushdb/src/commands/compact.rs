//! The command `hushdb compact`.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use hush_build::CompactRequest;
use hush_protocol::slot::MAX_VALUE_BYTES;

use super::{apply::UpdateArgs, interrupt};

/// Fold the changes of a table into a new base, which makes room for new changes.
#[derive(Args)]
pub(crate) struct CompactArgs {
    /// Folder of the table.
    dir: PathBuf,
    /// Make room for values of up to this many bytes.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=MAX_VALUE_BYTES as i64))]
    longest: Option<u32>,
    /// Number of changes to make room for. If not given, as many as before.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    changes: Option<u32>,
    /// Compact even if the table takes more disk or memory than is free here.
    #[arg(long)]
    force_size: bool,
    #[command(flatten)]
    update: UpdateArgs,
}

pub(crate) fn run(args: CompactArgs) -> ExitCode {
    let (dir, request, update) = request(args);
    let outcome = update.run(&dir, "compacted", |table, backends, progress| {
        table.compact_beside(request, backends, progress)
    });
    interrupt::exit(outcome)
}

/// Returns the folder of the table, and the request of the compaction.
pub(crate) fn request(args: CompactArgs) -> (PathBuf, CompactRequest, UpdateArgs) {
    let CompactArgs { dir, longest, changes, force_size, update } = args;
    let [longest, changes] = [longest, changes].map(|number| number.map(|number| number as usize));
    let keep_epochs = update.kept();
    (dir, CompactRequest { longest, changes, force_size, keep_epochs }, update)
}
