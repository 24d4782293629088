//! The command `hushdb push`.

use std::{
    error::Error,
    path::{Path, PathBuf},
};

use clap::Args;
use hush_engine::Progress;
use hush_ingest::mirror::RemoteTable;
use hush_store::snapshot::{Snapshot, Verify};

use super::bar::Bar;
use crate::report;

/// Put a table into an object store for servers to fetch (`hushdb serve s3://bucket/table`). Files that the store has are not sent.
#[derive(Args)]
pub(crate) struct PushArgs {
    /// Folder of the table.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// URL of the table: s3://bucket/table, gs://bucket/table or az://container/table. Credentials come from the environment.
    #[arg(value_name = "URL")]
    to: PathBuf,
    /// Send all files, also those that the store has: mends a table that is damaged in the store.
    #[arg(long)]
    resend: bool,
}

pub(crate) fn run(args: PushArgs) -> Result<(), Box<dyn Error>> {
    let bar = Bar::new();
    let (epoch, place) = push(&args.dir, &args.to, args.resend, &bar)?;
    bar.finish();
    Ok(report::print(&format!("{epoch} is at {place}\n"))?)
}

/// Uploads the table in the folder `dir` to a URL: the files that are missing there, or with `resend` all of them. Returns its
/// epoch, and the URL without its secrets.
///
/// # Errors
/// There is no table, the URL is not one of an object store, or the store cannot be used.
pub fn push(
    dir: &Path,
    to: &Path,
    resend: bool,
    progress: &dyn Progress,
) -> Result<(String, String), Box<dyn Error>> {
    let Some(to) = RemoteTable::of(to)? else {
        return Err(format!("{}: a table is put at s3://, gs:// or az://: name a URL", to.display()).into());
    };
    let snapshot = Snapshot::open(dir, Verify::Full)?;
    hush_build::push(&snapshot, &to, resend, progress)?;
    Ok((hex::encode(snapshot.header().descriptor.epoch), to.shown().display().to_string()))
}
