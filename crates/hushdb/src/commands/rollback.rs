//! The command `hushdb rollback`.

use std::{
    error::Error,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use hush_store::snapshot::kept_epochs;

use super::{apply::UpdateArgs, interrupt};
use crate::report;

/// Put an epoch that `hushdb apply --keep-epochs` kept in the place of a table.
#[derive(Args)]
pub(crate) struct RollbackArgs {
    /// Folder of the table.
    dir: PathBuf,
    /// Epoch to go back to: the first digits of its hash.
    #[arg(long, value_name = "EPOCH", required_unless_present = "list")]
    pub(crate) to: Option<String>,
    /// List the epochs that are kept, the oldest first, and change nothing.
    #[arg(long, conflicts_with = "to")]
    list: bool,
    #[command(flatten)]
    pub(crate) update: UpdateArgs,
}

pub(crate) fn run(args: RollbackArgs) -> ExitCode {
    match args.to {
        Some(to) => interrupt::exit(
            args.update.run(&args.dir, "went back", |table, _, progress| table.rollback(&to, progress)),
        ),
        None => report::exit(list(&args.dir)),
    }
}

/// Prints the kept epochs, a line each.
fn list(dir: &Path) -> Result<(), Box<dyn Error>> {
    let dir = dir.canonicalize().map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut lines = String::new();
    for epoch in kept_epochs(&dir)? {
        let hash = hex::encode(epoch.header.descriptor.epoch);
        let since = humantime::format_rfc3339_seconds(epoch.since);
        let changes = epoch.header.changes.map_or(0, |count| count.changes);
        lines += &format!("{hash}  replaced {since}  {changes} changes since its base\n");
    }
    if lines.is_empty() {
        say!("none is kept: `hushdb apply --keep-epochs N` keeps those that it replaces");
    }
    Ok(report::print(&lines)?)
}
