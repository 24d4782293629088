//! Compresses values before they are laid out, if the options request it or if it saves enough.

use std::path::Path;

use hush_cpu::Cpu;
use hush_engine::{Bytes, Progress};
use hush_ingest::{Compressor, IngestError, SpooledRecords};
use hush_protocol::descriptor::{BlobRef, Codec, Compression};

use super::{BuildError, BuildOptions, Compress, Lengths, Plan};
use crate::planner;

/// Values are compressed if the table's files then have at most this share of their uncompressed size.
const WORTH: f64 = 0.75;
/// Values are not compressed automatically if they have fewer bytes than this many dictionaries: every client downloads one.
const DICTIONARIES: u64 = 32;
/// The number of values that are compressed on trial to estimate the saving.
const SAMPLE: usize = 4096;

/// The records that are laid out, compressed or not, and the plan of their table.
pub(super) struct Stored {
    /// The compressed records and their dictionary, which is compressed too; `None` if the records are not compressed.
    pub(super) compressed: Option<(SpooledRecords, Vec<u8>)>,
    pub(super) lengths: Lengths,
    pub(super) plan: Plan,
}

/// Returns the records and their plan. Values are compressed if the options request it, or if it saves enough.
pub(super) fn stored(
    records: &SpooledRecords,
    by_key: bool,
    options: &BuildOptions,
    dir: &Path,
    cpu: &Cpu,
    progress: &dyn Progress,
) -> Result<Stored, BuildError> {
    let planned = |records: &SpooledRecords| {
        let lengths = Lengths::of(records).up_to(options.longest.unwrap_or(0));
        let previous = options.previous.as_ref().filter(|previous| previous.keeps_geometry);
        let kept =
            previous.and_then(|previous| Plan::keeping(&previous.descriptor, &lengths, by_key, options));
        kept.map_or_else(|| planner::choose(&lengths, by_key, options, progress), Ok)
            .map(|plan| (lengths, plan))
    };
    let smaller = match options.compress {
        Compress::None => None,
        Compress::Auto | Compress::Zstd => compressed(records, options, dir, cpu, progress)?,
    };
    let Some((smaller, dictionary)) = smaller else {
        let (lengths, plan) = planned(records)?;
        return Ok(Stored { compressed: None, lengths, plan });
    };
    let (lengths, plan) = planned(&smaller)?;
    if options.compress == Compress::Auto {
        // If no table fits the uncompressed values, the table of compressed values is taken.
        match planned(records) {
            Ok((lengths, whole)) if plan.file_bytes() as f64 > WORTH * whole.file_bytes() as f64 => {
                progress.note("values are not compressed: it would save less than a quarter of the table");
                return Ok(Stored { compressed: None, lengths, plan: whole });
            }
            _ => {}
        }
    }
    let before = Bytes(records.value_bytes() as usize);
    let after = Bytes(smaller.value_bytes() as usize);
    progress.note(&format!("values of {before} in all are compressed to {after}"));
    Ok(Stored { compressed: Some((smaller, dictionary)), lengths, plan })
}

/// Returns the records with compressed values, and the dictionary. Returns `None` if compression is optional and saves too little.
fn compressed(
    records: &SpooledRecords,
    options: &BuildOptions,
    dir: &Path,
    cpu: &Cpu,
    progress: &dyn Progress,
) -> Result<Option<(SpooledRecords, Vec<u8>)>, BuildError> {
    let is_free = options.compress == Compress::Auto;
    progress.start("train", records.value_bytes(), "bytes");
    let compressor = cpu.install(|| Compressor::trained(records));
    progress.advance(records.value_bytes());
    let left = |because: &str| progress.note(&format!("values are not compressed: {because}"));
    let compressor = match compressor {
        Ok(compressor) => compressor,
        Err(error) if is_free => {
            left(&error.to_string());
            return Ok(None);
        }
        Err(error) => return Err(IngestError::Compress(error).into()),
    };
    let least = Bytes(DICTIONARIES as usize * compressor.dictionary().len());
    if is_free && records.value_bytes() < least.0 as u64 {
        left(&format!("below {least} of them, the dictionary that every client downloads is not worth it"));
        return Ok(None);
    }
    if is_free && !seems_worth(records, &compressor)? {
        left("a sample of them does not become shorter by a quarter");
        return Ok(None);
    }
    progress.start("compress", records.value_bytes(), "bytes");
    let advance = |bytes| {
        progress.advance(bytes);
        progress.check()
    };
    let smaller =
        cpu.install(|| records.converted(dir, || compressor.context(), Compressor::compress, advance))?;
    let dictionary = compressor.stored().map_err(IngestError::Compress)?;
    Ok(Some((smaller, dictionary)))
}

/// Returns whether a sample of the values becomes so much shorter that all values should be compressed.
fn seems_worth(records: &SpooledRecords, compressor: &Compressor) -> Result<bool, BuildError> {
    let mut before = 0;
    let mut after = 0;
    let mut context = compressor.context();
    for index in (0..records.len()).step_by(records.len().div_ceil(SAMPLE)) {
        let (_, value) = records.record(index);
        before += value.len();
        after += Compressor::compress(&mut context, value).map_err(IngestError::Compress)?.len();
    }
    Ok(after as f64 <= WORTH * before as f64)
}

/// Returns the descriptor's entry for the compression. The table takes values of up to `longest` bytes, or as long as its own.
pub(super) fn described(records: &SpooledRecords, longest: usize, dictionary: BlobRef) -> Compression {
    let max_value_bytes = records.max_value_len().max(longest) as u32;
    Compression { codec: Codec::Zstd, dictionary, max_value_bytes }
}
