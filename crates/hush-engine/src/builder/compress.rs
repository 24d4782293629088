//! Values compressed before anything is laid out, where that is asked for, or saves enough.

use std::path::Path;

use hush_cpu::Cpu;
use hush_protocol::descriptor::Compression;
use hush_store::ingest::{Compressor, IngestError, SpooledRecords};

use super::{BuildError, BuildOptions, Compress, Lengths, Plan};
use crate::{Progress, units::Bytes};

/// Values are compressed if a server then keeps at most so much of what it would.
const WORTH: f64 = 0.75;
/// Values of fewer bytes than so many dictionaries are left alone: every client downloads one.
const DICTIONARIES: u64 = 32;
/// Values that show what is to be expected.
const SAMPLE: usize = 4096;

/// Records whose values are compressed.
pub(super) struct Compressed {
    pub(super) records: SpooledRecords,
    pub(super) dictionary: Vec<u8>,
}

/// The records with compressed values, if they are to be.
pub(super) fn compressed(
    records: &SpooledRecords,
    by_key: bool,
    options: &BuildOptions,
    dir: &Path,
    cpu: &Cpu,
    progress: &dyn Progress,
) -> Result<Option<Compressed>, BuildError> {
    if options.compress == Compress::None {
        return Ok(None);
    }
    progress.start("train", records.value_bytes(), "bytes");
    let compressor = cpu.install(|| Compressor::trained(records));
    progress.advance(records.value_bytes());
    let compressor = match (compressor, options.compress) {
        (Ok(compressor), _) => compressor,
        // Too few, or too short.
        (Err(_), Compress::Auto) => return Ok(None),
        (Err(error), _) => return Err(IngestError::Compress(error).into()),
    };
    let is_free = options.compress == Compress::Auto;
    if is_free && !seems_worth(records, &compressor)? {
        return Ok(None);
    }
    progress.start("compress", records.value_bytes(), "bytes");
    let advance = |bytes| {
        progress.advance(bytes);
        progress.check()
    };
    let convert = || {
        records.converted(
            dir,
            || compressor.context(),
            |context, value| Compressor::compress(context, value),
            advance,
        )
    };
    let smaller = cpu.install(convert)?;
    if is_free {
        let bytes =
            |records| Ok::<_, BuildError>(Plan::choose(&Lengths::of(records), by_key, options)?.file_bytes());
        if bytes(&smaller)? as f64 > WORTH * bytes(records)? as f64 {
            return Ok(None);
        }
    }
    let (before, after) = (Bytes(records.value_bytes() as usize), Bytes(smaller.value_bytes() as usize));
    progress.note(&format!("values of {before} are compressed to {after}"));
    Ok(Some(Compressed { records: smaller, dictionary: compressor.dictionary().to_vec() }))
}

/// Whether some of the values become so much shorter that it is worth to try all.
fn seems_worth(records: &SpooledRecords, compressor: &Compressor) -> Result<bool, BuildError> {
    if records.value_bytes() < DICTIONARIES * compressor.dictionary().len() as u64 {
        return Ok(false);
    }
    let (mut before, mut after, mut context) = (0, 0, compressor.context());
    for index in (0..records.len()).step_by(records.len().div_ceil(SAMPLE)) {
        let (_, value) = records.record(index);
        before += value.len();
        after += Compressor::compress(&mut context, value).map_err(IngestError::Compress)?.len();
    }
    Ok(after as f64 <= WORTH * before as f64)
}

/// What the descriptor says of it.
pub(super) fn described(
    records: &SpooledRecords,
    dictionary: hush_protocol::descriptor::BlobRef,
) -> Compression {
    let max_value_bytes = records.max_value_len() as u32;
    Compression { codec: hush_protocol::descriptor::Codec::Zstd, dictionary, max_value_bytes }
}
