//! The choice of a table's shape from the costs of its look-ups.

use std::ops::RangeInclusive;

use hush_he::params::{ColumnParams, ONION_M31, ONION_S, PackParams, RingParams};
use hush_math::constant_time::divide;
use hush_ops::contract::PACK_BYTES;

use crate::{
    ProtocolError,
    response::response_bytes,
    ring_table::{RingTable, lanes},
    symbols::symbol_count,
    table::TableShape,
};

/// The approximate bytes on the wire of a word of a query, of an answer and of a hint, for the choice of a shape.
pub(crate) const QUERY_WORD: f64 = 3.5;
pub(crate) const ANSWER_WORD: f64 = 1.5;
pub(crate) const HINT_WORD: f64 = 2.0;
/// The least columns of a `double` table. DoublePIR's second scan reads `n * digits` bytes for each column's worth of the
/// first, so with more columns than this it stays the smaller scan.
pub(crate) const DOUBLE_MIN_COLUMNS: usize = 1 << 14;

/// The most columns of a table with packed answers. Larger tables get more entries instead: at this size the hint is a
/// third of the table, and more columns would save little. Rounding to whole tiles of the hint may exceed this number.
const PACK_MAX_COLUMNS: usize = 1 << 15;
/// The bytes that a server scans while a client sends or receives one byte, at 16 GB/s and 32 Mbit/s.
pub const STREAM_PER_TRAFFIC: f64 = 4000.0;

/// The columns of a table with column packing. With fewer, the pack columns (8 KiB for every row) exceed half of the table.
/// With more, a query is longer than most clients like. Rounding to a whole number of entries (a power of two in `colpack`)
/// may exceed the upper bound.
const COLUMN_PACKING_COLUMNS: RangeInclusive<usize> = 1 << 14..=1 << 16;

/// The preferred columns of the first dimension (D0) of a table over rings. With more, queries take longer to expand; with
/// fewer, more is left to fold. The second number is for tables with so many folds that noise rules out the first.
const RING_COLUMNS: [usize; 2] = [256, 128];
/// The columns of a `tfhe` table, in which every column takes some bits of a query. Larger numbers are for tables that
/// would otherwise have too many folds.
const ROTATED_COLUMNS: [usize; 4] = [32, 64, 128, 256];
/// The entries that a table over rings has before it gets more columns. They fill a tile of its database.
const RING_ENTRIES: usize = 16;

/// Returns the columns of a table whose answers are packed by evaluation keys, at the least cost of traffic and of scanning
/// the hint. A column costs a query word. A plane costs the scan of `n` polynomials (`n` is the LWE dimension) and `sent`
/// bytes of traffic. The number of planes fills whole tiles of the hint.
pub(crate) fn expansion_columns(params: &PackParams, sent: f64, slots: usize, slot_bytes: usize) -> usize {
    let ring = params.ring();
    let lanes = (ring.degree() / slot_bytes).max(1);
    let planes_per_entry = slot_bytes.div_ceil(ring.degree());
    let plane_bytes = (params.lwe().n() * ring.kept_limbs() * ring.degree() * size_of::<u32>()) as f64;
    let plane_cost = plane_bytes / STREAM_PER_TRAFFIC + sent;
    // entries * columns = slots / lanes.
    let entry_cost = planes_per_entry as f64 * plane_cost;
    let entries = (slots as f64 / lanes as f64 * QUERY_WORD / entry_cost).sqrt();
    let entries = entries.max(slots as f64 / (lanes * PACK_MAX_COLUMNS) as f64);
    let planes = whole_tiles(entries * planes_per_entry as f64);
    slots.div_ceil((planes / planes_per_entry).max(1) * lanes)
}

/// Returns the number of planes nearest to `planes` that fills tiles of the hint: a power of two up to 16, or a multiple of 16.
fn whole_tiles(planes: f64) -> usize {
    match planes {
        _ if planes >= 24.0 => (planes / 16.0).round() as usize * 16,
        _ => 1 << (planes.max(1.0).log2().round() as u32).min(4),
    }
}

/// Returns the columns of a table with column packing, at the least cost of traffic and of scanning pack columns. A column
/// costs a query word. A row costs its pack columns, and in `colpack-s` a word of the answer. With `folds` (`colpack`),
/// the entries are a power of two, to which the fold rounds them in any case.
pub(crate) fn column_packing_columns(
    folds: bool,
    params: &ColumnParams,
    slots: usize,
    slot_bytes: usize,
) -> usize {
    let ring = params.ring();
    let lanes = (ring.degree() / slot_bytes).max(1);
    let sent = if folds { 0.0 } else { ANSWER_WORD };
    let row_cost = (PACK_BYTES * ring.degree()) as f64 / STREAM_PER_TRAFFIC + sent;
    let wanted = ((slots as f64 * slot_bytes as f64) * row_cost / QUERY_WORD).sqrt() as usize;
    let (fewest, most) = COLUMN_PACKING_COLUMNS.into_inner();
    let entries = slots as f64 / (lanes * wanted.clamp(fewest, most)) as f64;
    let entries = entries.clamp(1.0, 2.0 * ring.degree() as f64);
    let columns = |entries: usize| slots.div_ceil(entries * lanes);
    let nearest = if folds { 1 << entries.log2().round() as u32 } else { entries.round() as usize };
    let fewer = if folds { nearest / 2 } else { nearest - 1 };
    columns(if columns(nearest) < fewest { fewer.max(1) } else { nearest })
}

/// Returns the RLWE set with the shorter answers: [`ONION_S`] for slots up to about 10 KiB, else [`ONION_M31`].
pub(crate) fn shorter_answers(slot_bytes: usize) -> RingParams {
    let answer_bytes = |ring: &RingParams| {
        let planes = symbol_count(slot_bytes, ring.plaintext_bits()).div_ceil(ring.degree());
        response_bytes(ring, planes)
    };
    if answer_bytes(&ONION_S) <= answer_bytes(&ONION_M31) { ONION_S } else { ONION_M31 }
}

/// Returns the columns of the first dimension of a table over rings: 256, or fewer if there are not enough slots.
pub(crate) fn ring_columns(ring: &RingParams, slots: usize, slot_bytes: usize) -> usize {
    let most = slots.div_ceil(lanes(ring, slot_bytes) * RING_ENTRIES);
    first_that_decodes(&RING_COLUMNS, most, slots, |columns, blocks| {
        RingTable::new(*ring, TableShape { columns, blocks, slot_bytes })
    })
}

/// Returns the columns of the first dimension of a `tfhe` table: 32, or fewer if there are not enough plaintexts. With
/// more, queries are longer; with fewer, more folds are left.
pub(crate) fn rotated_columns(ring: &RingParams, slots: usize, slot_bytes: usize) -> usize {
    let most = slots.div_ceil(1 << lanes(ring, slot_bytes).ilog2());
    first_that_decodes(&ROTATED_COLUMNS, most, slots, |columns, blocks| {
        RingTable::rotated(*ring, TableShape { columns, blocks, slot_bytes })
    })
}

/// Returns the first of `columns`, each limited to `most`, for which `table` accepts a table of `slots` slots. If it
/// accepts none, returns the first.
fn first_that_decodes(
    columns: &[usize],
    most: usize,
    slots: usize,
    table: impl Fn(usize, usize) -> Result<RingTable, ProtocolError>,
) -> usize {
    let mut columns = columns.iter().map(|&columns| columns.min(most).max(1));
    let first = columns.clone().next().unwrap_or(1);
    columns.find(|&columns| table(columns, slots.div_ceil(columns)).is_ok()).unwrap_or(first)
}

/// Returns the block and the column of record `index` in a table that is asked by index.
pub fn index_position(shape: &TableShape, index: u64) -> (usize, usize) {
    divide(index, shape.columns as u64)
}

/// Returns the index of the record at `block` and `column`. It is the inverse of [`index_position`].
pub fn index_at(shape: &TableShape, block: usize, column: usize) -> usize {
    block * shape.columns + column
}
