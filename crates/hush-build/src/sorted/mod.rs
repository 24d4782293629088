//! Sorted tables: sorts records, makes leaves of them ([`leaves`]), and changes leaves ([`changes`]).

pub(crate) mod changes;
pub(crate) mod leaves;
mod ranges;
mod rows;

use std::{borrow::Cow, fmt, path::Path};

use hush_engine::Progress;
use hush_ingest::{OnDuplicate, SpooledRecords, compress_slots};
use hush_protocol::{
    column_type::PlainType,
    descriptor::BlobRef,
    schema::{Column, ColumnType, Schema},
    sorted::{FenceFile, RangeForm, Sorted, fences::MAX_FENCE_BYTES, leaf::LeafWriter, order::SortOrder},
    wording::Wording,
};
use thiserror::Error;

use crate::{
    JobError,
    builder::{BuildOptions, ChangeRoom, Compress, Tiers},
    planner,
};
use changes::ROW_PART;
use leaves::{LeafLimits, LeafPacker};
use rows::SortedRecords;

/// The least bytes of a leaf, unless the rows are fewer.
const LEAST_LEAF: usize = 512;
/// The sizes of leaves that are considered, in bytes.
const LEAF_SIZES: [usize; 6] = [1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15];
/// The part of a leaf that it repeats from those behind it, if keys are text.
const OVERLAP: usize = 16;
/// The runs of rows that are measured, and the rows of each, to estimate the bytes of all.
const RUNS: usize = 64;
const RUN_ROWS: usize = 128;
/// The part of a leaf that is free when it is built, for rows that are added before it is split.
const FREE: usize = 8;
/// A table has one more leaf for so many leaves, and some more, to which others can be split.
const SPARE: usize = 16;
const LEAST_SPARE: usize = 16;
/// The most leaves that a changed row changes, unless it splits one: its own, and its neighbours.
const LEAVES_A_ROW: usize = 3;

/// The rules of a sorted table.
#[derive(Clone, Debug)]
pub struct SortRequest {
    /// The order of keys.
    pub order: SortOrder,
    /// Whether rows are ranges. Then the columns of keys are those of the first and the last key, or the one of networks.
    pub is_range: bool,
    /// The bytes of a leaf; `None` leaves the choice to the planner.
    pub leaf_bytes: Option<usize>,
    /// The bytes of rows that each leaf repeats from those behind it; `None` is a sixteenth of a leaf for text, else a row.
    pub overlap: Option<usize>,
}

/// A reason why records cannot be sorted.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum SortError {
    #[error("a sorted table has one key column, and these are {given}: name one")]
    Columns { given: usize },
    #[error("row {row}: '{key}' is not {form}")]
    Key { row: u64, key: String, form: &'static str },
    #[error("row {row}: the range ends before it begins: from '{from}' to '{to}'")]
    Backwards { row: u64, from: String, to: String },
    #[error("row {row}: a range is of IPv4 or of IPv6 addresses, and '{from}' to '{to}' is of both")]
    Families { row: u64, from: String, to: String },
    #[error(
        "rows {first} and {second} have the same key '{key}' as it is sorted: {}",
        Wording("keep one with {on-duplicate=first} or {on-duplicate=last}")
    )]
    SameKey { first: u64, second: u64, key: String },
    #[error("the longest row takes {row} bytes, so that a leaf needs at least {least}")]
    LeafBytes { row: usize, least: usize },
    #[error(
        "the table would have {bytes} bytes of fences, more than the {MAX_FENCE_BYTES} that clients take: {}",
        Wording("make leaves longer with {leaf-bytes}")
    )]
    Fences { bytes: usize },
    #[error(
        "the ranges of a sorted table cannot be changed: {}",
        Wording("build it without {updatable}, and again when they change")
    )]
    RangesChange,
    #[error(
        "leaves that are compressed cannot be changed: {}",
        Wording("leave {compress} or {updatable} out")
    )]
    CompressedChange,
    #[error(
        "no leaf is left to split another into: {}",
        Wording("'compact' makes some, and with {changes} as many as that number of new rows takes")
    )]
    NoLeafLeft,
    #[error(
        "the row of '{key}' takes {bytes} bytes, and the leaves of the table are for rows of up to {most}: {}",
        Wording("make them longer with 'compact' and {longest}, the bytes of the longest value")
    )]
    LongRow { key: String, bytes: usize, most: usize },
    #[error("the leaves of the table are damaged: build it again")]
    Damaged,
}

/// The description of a sorted table, with its files.
#[derive(Clone)]
pub struct SortedTable {
    pub(crate) sorted: Sorted,
    /// The fences, compressed.
    pub(crate) fences: Vec<u8>,
}

impl fmt::Debug for SortedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The description has the hash of the fences.
        self.sorted.fmt(f)
    }
}

/// Returns the leaves of `records` as records without keys, in files in `dir`, and sets `options` for their table.
///
/// # Errors
/// [`SortError`] if the records cannot be sorted; the errors of the spool.
pub(crate) fn sorted(
    records: SpooledRecords,
    request: &SortRequest,
    on_duplicate: OnDuplicate,
    options: &mut BuildOptions,
    dir: &Path,
    progress: &dyn Progress,
) -> Result<SpooledRecords, JobError> {
    if options.changes.is_some() {
        if request.is_range {
            return Err(SortError::RangesChange.into());
        }
        match options.compress {
            Compress::Zstd => return Err(SortError::CompressedChange.into()),
            Compress::Auto | Compress::None => options.compress = Compress::None,
        }
    }
    let columns = records.columns().cloned().unwrap_or_default();
    let (schema, range) = table_columns(&columns, request)?;
    progress.start("sort", records.len() as u64, "records");
    let rows = SortedRecords::new(&records, request, on_duplicate, progress)?;
    progress.advance(records.len() as u64);
    let longest = rows.longest_row();
    let limits = limits(&rows, longest, request, options)?;
    progress.start("leaves", rows.len() as u64, "rows");
    let mut packer = LeafPacker::create(dir, limits)?;
    for at in 0..rows.len() {
        if at.is_multiple_of(1 << 12) {
            progress.check()?;
            progress.advance((rows.len() - at).min(1 << 12) as u64);
        }
        let (key, value) = rows.row(at);
        packer.push(key, value)?;
    }
    let table = Sorted {
        order: request.order,
        range,
        rows: rows.len() as u64,
        overlap: limits.overlap as u64,
        fences: fence_file(&[]).1,
        added: None,
    };
    let asked = match options.changes {
        Some(ChangeRoom::For(rows)) => Some(rows),
        _ => None,
    };
    let leaves = finished(packer, table, schema, asked, options, progress)?;
    Ok(leaves.at(records.position()))
}

/// Ends the leaves of a table: adds spare ones if it takes changes, and sets the options of its build. `asked` is the number of
/// rows for whose changes there is to be room, if it was asked for.
pub(crate) fn finished(
    packer: LeafPacker,
    table: Sorted,
    schema: Schema,
    asked: Option<usize>,
    options: &mut BuildOptions,
    progress: &dyn Progress,
) -> Result<SpooledRecords, JobError> {
    let limits = packer.limits();
    let is_updatable = options.changes.is_some();
    // Leaves that were split are half full.
    let of_new = asked.map_or(0, |rows| (2 * rows * packer.mean_row()).div_ceil(limits.leaf_bytes));
    let spare = |leaves: usize| if is_updatable { LEAST_SPARE + of_new.max(leaves / SPARE) } else { 0 };
    let (leaves, fences) = packer.finish(spare)?;
    if fences.len() as u64 > MAX_FENCE_BYTES {
        return Err(SortError::Fences { bytes: fences.len() }.into());
    }
    let (fences, file) = fence_file(&fences);
    options.sorted =
        Some(SortedTable { sorted: Sorted { fences: file, added: None, ..table }, fences }.into());
    options.tiers = Tiers::AtMost(1);
    if is_updatable {
        options.longest = Some(limits.leaf_bytes);
        let room = asked.map(|rows| ChangeRoom::For(rows.saturating_mul(LEAVES_A_ROW))).or(options.changes);
        options.changes = room.map(|room| room.at_most(leaves.len()));
        progress.note(&format!(
            "rows of up to {} bytes can be put; the room for changes is counted in leaves, of which a row changes up to {LEAVES_A_ROW}",
            limits.leaf_bytes / ROW_PART
        ));
    }
    Ok(leaves.with_columns(Some(schema)))
}

/// Returns the file of fences with its description.
pub(crate) fn fence_file(text: &[u8]) -> (Vec<u8>, FenceFile) {
    let frame = compress_slots(text).expect("memory");
    let blob = BlobRef { blake3: *blake3::hash(&frame).as_bytes(), bytes: frame.len() as u64 };
    (frame, FenceFile { blob, length: text.len() as u64 })
}

/// Returns the columns of the table, and the form of its ranges.
fn table_columns(columns: &Schema, request: &SortRequest) -> Result<(Schema, Option<RangeForm>), SortError> {
    let range = match (&columns.key[..], request.is_range) {
        ([_], false) => None,
        ([_], true) if request.order == SortOrder::Ip => Some(RangeForm::Network),
        ([_, Column(to, _)], true) => Some(RangeForm::To(to.clone())),
        (given, _) => return Err(SortError::Columns { given: given.len() }),
    };
    let mut key = columns.key[..1].to_vec();
    if let [Column(_, own)] = &mut key[..] {
        if is_raw(columns, request.order) {
            // Clients give hexadecimal.
            *own = PlainType::TEXT.into();
        } else if request.order == SortOrder::Number && own.is_text() {
            // An input without types has text. Clients may give numbers.
            *own = ColumnType::ANY;
        }
    }
    Ok((Schema { key, ..columns.clone() }, range))
}

/// Returns whether keys of these columns are bytes, where clients give hexadecimal.
fn is_raw(columns: &Schema, order: SortOrder) -> bool {
    let is_binary = |Column(_, own): &Column| matches!(own.plain(), Some(PlainType::Binary(_)));
    order == SortOrder::Hex && columns.key.first().is_some_and(is_binary)
}

/// Returns a key column of changes of these columns as clients give it.
pub(crate) fn given_key<'a>(sorted: &Sorted, columns: &Schema, part: &'a [u8]) -> Cow<'a, [u8]> {
    match is_raw(columns, sorted.order) {
        true => hex::encode(part).into_bytes().into(),
        false => part.into(),
    }
}

/// Returns the sizes of leaves: those of the request, or those that suit the goal best.
fn limits(
    rows: &SortedRecords<'_>,
    longest: usize,
    request: &SortRequest,
    options: &BuildOptions,
) -> Result<LeafLimits, JobError> {
    let limits = |leaf_bytes: usize| {
        let of_text =
            if request.order == SortOrder::Bytes && !request.is_range { leaf_bytes / OVERLAP } else { 0 };
        let overlap = request.overlap.unwrap_or(of_text);
        let free = if options.changes.is_some() { leaf_bytes / FREE } else { 0 };
        LeafLimits { leaf_bytes, overlap, filled: leaf_bytes - free, longest }
    };
    // The row before, one of the leaf, those that are repeated, and as many again, so that a leaf has more than what it repeats.
    let filled = match (request.overlap, limits(OVERLAP).overlap) {
        (None, 1..) => 4 * longest * OVERLAP / (OVERLAP - 3),
        (overlap, _) => 4 * longest + 2 * overlap.unwrap_or(0),
    };
    let free = if options.changes.is_some() { filled / (FREE - 2) } else { 0 };
    let least = (filled + free + 1).max(LEAST_LEAF);
    if let Some(leaf_bytes) = request.leaf_bytes {
        let limits = limits(leaf_bytes);
        return if leaf_bytes < least {
            Err(SortError::LeafBytes { row: longest, least }.into())
        } else {
            Ok(limits)
        };
    }
    let bytes = measured(rows);
    let fitting = LEAF_SIZES.iter().copied().filter(|&size| size >= least && size <= 2 * bytes);
    let sizes = fitting.map(limits).map(|limits| {
        let own = limits.filled.saturating_sub(limits.overlap + 2 * longest).max(1);
        (bytes.div_ceil(own), limits.leaf_bytes)
    });
    let best = planner::best_leaf(sizes.collect(), options)?;
    Ok(limits(best.unwrap_or(least)))
}

/// Returns the estimated bytes of all rows in leaves, from runs all over them.
fn measured(rows: &SortedRecords<'_>) -> usize {
    let (mut bytes, mut measured) = (0, 0);
    for run in 0..RUNS {
        let start = rows.len() * run / RUNS;
        let end = (start + RUN_ROWS).min(rows.len() * (run + 1) / RUNS);
        let mut writer = LeafWriter::default();
        for at in start..end {
            let (key, value) = rows.row(at);
            writer.push(&key, &value);
        }
        bytes += writer.bytes();
        measured += end - start;
    }
    (bytes as f64 / measured.max(1) as f64 * rows.len() as f64).ceil() as usize
}
