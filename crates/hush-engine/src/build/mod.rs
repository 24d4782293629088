//! From records to a snapshot: choose a shape, lay the records out, compute the hint.

mod chained;
mod error;
mod hint;
mod index;
mod keyed;
mod lifted;
mod options;
mod ring;
mod tile;
mod word_slots;

use hush_cpu::Cpu;
use hush_protocol::{
    descriptor::{DESCRIPTOR_VERSION, Descriptor, Lookup, WhiteningSeed},
    slot::SlotFormat,
    table::{Protocol, TableParams},
};
use hush_store::{
    ingest::SpooledRecords,
    snapshot::{FORMAT_VERSION, Header, MappedOutput, SnapshotWriter},
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
    /// Over rings.
    whitening: Option<WhiteningSeed>,
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
    let Laid { params, slot, lookup, db, whitening } = laid;
    let encoded = params.encoded_bytes() as u64;
    progress.start("sync", encoded, "bytes");
    let database = db.blob_hash();
    let mut files = vec![db.finish()?];
    progress.advance(encoded);
    let (hint, word_bits) = match &params {
        TableParams::Lwe(table) => {
            let widths = table.widths();
            let word_bits = [widths.query, widths.hint, widths.answer];
            (Some(hint::write(table, &writer, cpu, progress, &mut files)?), Some(word_bits))
        }
        TableParams::Ring(_) => (None, None),
        TableParams::Pack(table) => {
            lifted::write(table, &writer, cpu, progress, &mut files)?;
            let packed_bits = table.params().ring().plaintext_bits();
            (None, Some([table.query_bits(), packed_bits, packed_bits]))
        }
        TableParams::Column(table) => {
            chained::write(table, &writer, cpu, progress, &mut files)?;
            (None, Some([table.query_bits(), u32::BITS, u32::BITS]))
        }
    };
    let shape = params.shape();
    let mut descriptor = Descriptor {
        version: DESCRIPTOR_VERSION,
        epoch: [0; 32],
        protocol: params.protocol(),
        preset: params.preset().into(),
        records: records.len() as u64,
        columns: shape.columns,
        blocks: shape.blocks,
        word_bits,
        slot,
        lookup,
        hint,
        whitening,
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
