//! From records to a snapshot: choose a shape, lay the records out, compute the hint.

mod error;
mod hint;
mod index;
mod keyed;
mod options;

use std::sync::Arc;

use hush_cpu::Cpu;
use hush_ops::{contract::LweOps, reference::Reference, tiling::TiledDb};
use hush_protocol::{
    descriptor::{BlobRef, DESCRIPTOR_VERSION, Descriptor, Lookup},
    double,
    slot::SlotFormat,
    table::{Protocol, TableParams},
};
use hush_store::{
    ingest::SpooledRecords,
    snapshot::{
        DB_FILE, FORMAT_VERSION, HINT_FILE, Header, MappedFile, MappedOutput, SECOND_DB_FILE, SnapshotWriter,
    },
};

pub use error::BuildError;
pub use options::BuildOptions;

use crate::Progress;

/// A table laid out, before the hint.
struct Laid {
    params: TableParams,
    slot: SlotFormat,
    lookup: Lookup,
    db: MappedOutput,
}

/// Builds a snapshot of `records` with `writer` and puts it in place.
///
/// # Errors
/// [`BuildError`] says what does not fit and what to change. The target is then as it was.
pub fn build(
    records: &SpooledRecords,
    by_key: bool,
    source: &str,
    options: &BuildOptions,
    writer: SnapshotWriter,
    cpu: &Cpu,
    progress: &dyn Progress,
) -> Result<Header, BuildError> {
    if records.is_empty() {
        return Err(BuildError::NoRecords);
    }
    if options.protocol == Some(Protocol::Frodo) && options.columns.is_some() {
        return Err(BuildError::FrodoColumns);
    }
    let laid = if by_key {
        keyed::lay_out(records, options, &writer, cpu, progress)?
    } else {
        index::lay_out(records, options, &writer, cpu, progress)?
    };
    let Laid { params, slot, lookup, db } = laid;
    let database = db.blob_hash();
    let mut files = vec![db.finish()?];
    let map = Arc::new(MappedFile::open(&writer.partial_dir().join(DB_FILE))?);
    let db = cpu.open_db(TiledDb::new(params.shape().tiling(), map)?)?;

    let mut hint = writer.create_mapped(HINT_FILE, params.hint_bytes())?;
    let matrix = params.first_matrix();
    if params.protocol() == Protocol::Double {
        let words = hint::whole(cpu, &db, &matrix, params.shape().rows(), progress)?;
        let second = double::second_db(&Reference, &params, &words)?;
        let mut file = writer.create_mapped(SECOND_DB_FILE, second.bytes().len())?;
        file.bytes().copy_from_slice(second.bytes());
        files.push(file.finish()?);
        hint::packed(cpu, &cpu.open_db(second)?, &params.second_matrix(), &params, hint.bytes(), progress)?;
    } else {
        hint::packed(cpu, &db, &matrix, &params, hint.bytes(), progress)?;
    }
    let hint_ref = BlobRef { blake3: hint.blob_hash(), bytes: params.hint_bytes() as u64 };
    files.push(hint.finish()?);

    let (shape, widths) = (params.shape(), params.widths());
    let mut descriptor = Descriptor {
        version: DESCRIPTOR_VERSION,
        epoch: [0; 32],
        protocol: params.protocol(),
        preset: params.lwe().name().into(),
        records: records.len() as u64,
        columns: shape.columns,
        blocks: shape.blocks,
        word_bits: [widths.query, widths.hint, widths.answer],
        slot,
        lookup,
        hint: hint_ref,
        database,
    };
    descriptor.seal();
    descriptor.check()?;
    let header = Header {
        version: FORMAT_VERSION,
        written_by: concat!("hushdb ", env!("CARGO_PKG_VERSION")).into(),
        descriptor,
        payload_bytes: records.value_bytes(),
        source: source.into(),
        files,
    };
    writer.commit(&header)?;
    Ok(header)
}
