//! Builds a snapshot from records: chooses a shape (`shape/`), lays the records out (`layout/`), and computes the files that
//! derive from the hint (`hints/`).

mod apply;
mod compress;
mod error;
mod hints;
mod layout;
mod options;
mod put_back;
mod resume;
mod shape;
mod sign;

use std::collections::BTreeMap;

use hush_cpu::Cpu;
use hush_engine::Progress;
use hush_ingest::SpooledRecords;
use hush_protocol::{
    descriptor::{BlobRef, Descriptor},
    facts::Database,
    wording::Wording,
};
use hush_store::snapshot::{
    Changes, DB_FILE, DICTIONARY_FILE, FENCES_FILE, FORMAT_VERSION, FileEntry, FollowedPosition, Header,
    Identity, SnapshotWriter, State, segment_file,
};

use crate::planner;

pub(crate) use apply::shown_change;
pub use apply::{Applied, apply};
use compress::Stored;
pub use error::BuildError;
pub use hints::computers::Computers;
use hints::computers::{compute_on, gpus_to_build};
pub use hints::crew::Crew;
use hints::pieces::StageContext;
pub(crate) use hints::product::HintStage;
pub use hints::work::work;
use layout::{
    index, keyed,
    laid::{LaidTable, Written},
    plain_slots,
};
pub use options::{BuildOptions, ChangeRoom, Compress, DEFAULT_TIERS, Previous, Tiers};
pub use put_back::put_back;
pub(crate) use shape::lengths::Lengths;
pub(crate) use shape::plan::Plan;
use shape::size::{DiskRoom, TableSize};
pub use sign::Signing;

/// The program and its version, recorded in the table's header.
const WRITTEN_BY: &str = concat!("hushdb ", env!("CARGO_PKG_VERSION"));

/// Builds a snapshot of `records` with `writer` and puts it in place. A killed build of the same records and options is resumed,
/// if its layout was saved. The files that derive from the hint are computed by one of the backends, all else by the CPU; the
/// files are the same on every backend.
///
/// # Errors
/// [`BuildError`] says what does not fit and what to change. The target is then unchanged. If `progress` or the writer is
/// cancelled, [`BuildError::is_cancelled`] holds.
pub fn build<'a>(
    records: &SpooledRecords,
    by_key: bool,
    source: &str,
    options: &BuildOptions,
    writer: SnapshotWriter,
    by: impl Into<Computers<'a>>,
    progress: &dyn Progress,
) -> Result<Header, BuildError> {
    let by = by.into();
    if records.is_empty() {
        return Err(BuildError::NoRecords);
    }
    if let Some(protocol) = options.protocol
        && options.columns.is_some()
        && !protocol.page().has_columns()
    {
        return Err(BuildError::NoColumns { protocol });
    }
    let identity = resume::identity(records, by_key, options);
    let state = match resume::take_over(&identity, &writer, progress)? {
        Some(state) => state,
        None => lay_out(records, by_key, options, identity, &writer, by, progress)?,
    };
    let State { mut descriptor, choice, changes, mut files, .. } = state;
    hints(&mut descriptor, 0, &mut files, &writer, by, progress)?;
    sign::seal(&mut descriptor, options.signing.as_ref(), writer.target())?;
    let header = Header {
        version: FORMAT_VERSION,
        written_by: WRITTEN_BY.into(),
        descriptor,
        payload_bytes: records.value_bytes(),
        source: source.into(),
        choice,
        changes,
        followed: match &options.previous {
            Some(previous) => previous.followed.clone(),
            None => {
                let built = |position| FollowedPosition { slot: None, relation: 0, position };
                records.position().map(built)
            }
        },
        files,
        objects: BTreeMap::new(),
    };
    writer.commit(&header)?;
    Ok(header)
}

/// Chooses a table, lays the records out as its database, and saves this state. A build that is killed later can be resumed.
fn lay_out(
    records: &SpooledRecords,
    by_key: bool,
    options: &BuildOptions,
    identity: Identity,
    writer: &SnapshotWriter,
    by: Computers<'_>,
    progress: &dyn Progress,
) -> Result<State, BuildError> {
    let cpu: &Cpu = by.backends.cpu();
    let Stored { compressed, lengths, plan } =
        compress::stored(records, by_key, options, writer.partial_dir(), cpu, progress)?;
    let stored = compressed.as_ref().map_or(records, |(compressed, _)| compressed);
    let size = TableSize::new(&plan, &lengths, records.bytes());
    progress.note(&size.to_string());
    plan.tell_segments(&lengths, |line| progress.note(line));
    let room = DiskRoom::here(writer.partial_dir());
    let settled = plan.settle(options);
    size.admit(&lengths, &settled, &room, |line| progress.note(line))?;
    let none = Changes::default();
    let changes = options.previous.as_ref().map_or(&none, |previous| &previous.changes);
    let crewed = (cpu, by.crew);
    let keyed = |plan: &Plan| keyed::lay_out(stored, &lengths, changes, plan, writer, crewed, progress);
    let laid = match plan.is_keyed() {
        false => Some(index::lay_out(stored, &plan, &writer.segment(0), cpu, progress)?),
        true => keyed(&plan)?,
    };
    let laid = match laid {
        Some(laid) => laid,
        None => {
            progress.note("the keys do not fit the blocks that they were in: clients fetch the new table");
            keyed(&planner::choose(&lengths, by_key, &settled, progress)?)?.expect("no geometry is kept")
        }
    };
    let mut state = laid.finish(identity, stored, progress)?;
    state.choice = plan.choice;
    if let Some(room) = plan.room {
        progress.start("keep records", records.value_bytes(), "bytes");
        let all = (0..records.len()).map(|index| records.record(index));
        state.files.extend(writer.keep_records(all)?);
        state.files.push(writer.keep_changes(changes)?);
        state.changes = Some(changes.count(room as u64));
        progress.advance(records.value_bytes());
    }
    if let Some((_, dictionary)) = &compressed {
        let mut file = writer.create_mapped(DICTIONARY_FILE, dictionary.len())?;
        file.bytes().copy_from_slice(dictionary);
        let blob = BlobRef { blake3: file.blob_hash()?, bytes: dictionary.len() as u64 };
        state.files.push(file.finish()?);
        state.descriptor.compression = Some(compress::described(records, options.longest.unwrap_or(0), blob));
    }
    if let Some(table) = &options.sorted {
        state.files.push(write_fences(FENCES_FILE, &table.fences, writer)?);
        state.descriptor.sorted = Some(table.sorted.clone());
    }
    writer.save(&state)?;
    Ok(state)
}

/// Writes a file of fences.
fn write_fences(name: &str, fences: &[u8], writer: &SnapshotWriter) -> Result<FileEntry, BuildError> {
    let mut file = writer.create_mapped(name, fences.len())?;
    file.bytes().copy_from_slice(fences);
    Ok(file.finish()?)
}

/// Computes the files that derive from the hints of segment `first` and later segments, on one of the backends. Their databases
/// have to be written already.
fn hints(
    descriptor: &mut Descriptor,
    first: usize,
    files: &mut Vec<FileEntry>,
    writer: &SnapshotWriter,
    by: Computers<'_>,
    progress: &dyn Progress,
) -> Result<(), BuildError> {
    let params = descriptor.params()?;
    let seed = descriptor.public_seed();
    let cpu: &Cpu = by.backends.cpu();
    for (index, segment) in params.segments().iter().enumerate().skip(first) {
        let (database, hint) = match index.checked_sub(1) {
            None => (descriptor.database, &mut descriptor.hint),
            Some(beside) => {
                let segment = &mut descriptor.segments[beside];
                (segment.database, &mut segment.hint)
            }
        };
        let own = writer.segment(index);
        if segment.database() == Database::Slots {
            let (blob, file) = plain_slots::write_download(&own, progress)?;
            *hint = Some(blob);
            let slots = segment_file(index, DB_FILE);
            files.retain(|file| *file.name != *slots);
            files.push(file);
            continue;
        }
        let Some(plan) = segment.hint() else { break };
        let gpus = gpus_to_build(segment, &plan, by.backends, progress)?;
        let context = StageContext { writer: &own, cpu, crew: by.crew, progress };
        let stage = HintStage { plan: &plan, seed, database, hint, context, files: &mut *files };
        if gpus.is_empty() { stage.run(&[cpu]) } else { compute_on(&gpus, stage) }.inspect_err(|error| {
            match error {
                // An error of a GPU, not a full disk or a property of the data.
                BuildError::Ops(_) if !gpus.is_empty() => {
                    writer.keep();
                    let advice = Wording("with {backend=cpu}, the build goes on from what is laid out");
                    progress.note(&format!("the GPU did not do it: {advice}"));
                }
                BuildError::Crew(_) => writer.keep(),
                _ => {}
            }
        })?;
    }
    Ok(())
}
