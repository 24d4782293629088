//! `hushdb push`.

use std::{error::Error, path::PathBuf};

use clap::Args;
use hush_store::snapshot::{RemoteTable, Snapshot, Verify};

use super::bar::Bar;
use crate::report;

/// Put a table into an object store, from which servers fetch it (`hushdb serve s3://bucket/table`). Files that are there already
/// are not sent again: of a table that was changed, what has changed.
#[derive(Args)]
pub(crate) struct PushArgs {
    /// Folder of the table.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Where it goes: s3://bucket/table, gs://bucket/table or az://container/table. Credentials are those of the environment.
    #[arg(value_name = "URL")]
    to: PathBuf,
}

pub(crate) fn run(args: PushArgs) -> Result<(), Box<dyn Error>> {
    let Some(to) = RemoteTable::of(&args.to)? else {
        return Err(
            format!("{}: a table is put at s3://, gs:// or az://: name a URL", args.to.display()).into()
        );
    };
    let snapshot = Snapshot::open(&args.dir, Verify::Full)?;
    let bar = Bar::new();
    hush_engine::push(&snapshot, &to, &bar)?;
    bar.finish();
    let epoch = hex::encode(snapshot.header().descriptor.epoch);
    Ok(report::print(&format!("{epoch} is at {}\n", to.shown().display()))?)
}
