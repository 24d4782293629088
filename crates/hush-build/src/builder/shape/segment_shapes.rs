//! The possible shapes of a table's segments, and their costs.

use hush_protocol::{
    any_page::{SegmentParams, TableParams},
    facts::SegmentRule,
    keyword::{FilterKind, WrappedFilter},
    layout::STREAM_PER_TRAFFIC,
    table::{LOOKUPS_PER_EPOCH, SegmentShape, TableShape},
};

use crate::builder::{BuildError, options::Scheme};

/// Rounding the number of columns up, so that segments can divide it, adds at most one column in this many.
const ROUNDING: usize = 16;
/// If at most `MANY` numbers of columns are possible, all are tried. If there are more, only multiples of `ROUND` are.
const MANY: usize = 1 << 14;
const ROUND: usize = 720;
/// If a segment has at most `FEW` possible numbers of columns, all are tried. If there are more, they differ by this factor.
const FEW: usize = 48;
const APART: f64 = 1.1;
/// The base has at most this many times the columns that suit it alone, and at least that fraction of them.
const SPREAD: usize = 2;
/// The number of column counts that are tried for a base.
const BASES: usize = 16;

/// Returns the cost of a segment in bytes: the bytes that a server scans, plus the bytes that are sent, converted to the bytes
/// that can be scanned in the same time.
pub(in crate::builder) fn cost(segment: &SegmentParams) -> f64 {
    let facts = segment.facts();
    let hint = facts.hint_bytes as f64 / LOOKUPS_PER_EPOCH;
    let sent = (facts.query.total() + facts.answer_bytes) as f64 + hint;
    segment.file_bytes() as f64 + sent * STREAM_PER_TRAFFIC
}

/// Returns tables for `records` keys that can have segments beside their base, the cheapest first. All entries have the same
/// number of blocks, so that the keys of a tier are spread evenly over them. `like` has the columns that suit it alone.
pub(in crate::builder) fn wide_bases(
    scheme: &Scheme,
    like: &TableParams,
    records: usize,
    filter: FilterKind,
) -> Result<Vec<TableParams>, BuildError> {
    let TableShape { columns: suitable, slot_bytes, .. } = like.facts().shape;
    let rule = &like.facts().segments;
    let unit = rule.column_unit;
    let chooses = rule.entries.last().is_some_and(|&entries| entries > 1);
    let least = suitable.max(WrappedFilter::min_columns(filter));
    let columns: Vec<usize> = match scheme.columns {
        // Segments have the columns of the base.
        _ if unit == suitable => vec![least],
        Some(_) => vec![divisible(least, unit)],
        None => {
            let fewest = suitable / SPREAD / unit;
            let most = suitable * SPREAD / unit;
            let all = (fewest.max(1)..=most).step_by((most - fewest).div_ceil(BASES).max(1));
            all.map(|units| units * unit).chain([divisible(least, unit)]).collect()
        }
    };
    let least = WrappedFilter::min_columns(filter);
    let mut tables = Vec::new();
    let mut first_error = None;
    for columns in columns.into_iter().filter(|&columns| columns >= least) {
        // A block takes a few more keys than the mean.
        let keys = filter.capacity(columns) as f64 / 1.004;
        let blocks = (records as f64 / keys.max(1.0)).ceil().max(1.0) as usize;
        let blocks = if chooses { blocks.next_multiple_of(like.facts().lanes) } else { blocks };
        match scheme.params(TableShape { columns, blocks, slot_bytes }) {
            Ok(table) => tables.push(table),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    if tables.is_empty()
        && let Some(error) = first_error
    {
        return Err(error);
    }
    tables.sort_by(|a, b| cost(a.base()).total_cmp(&cost(b.base())));
    Ok(tables)
}

/// Returns a number of columns that has many divisors, so that segments can divide it: at least `columns`, and little more.
pub(in crate::builder) fn divisible(columns: usize, unit: usize) -> usize {
    let least = columns.div_ceil(unit);
    let most = least + least / ROUNDING;
    // If there are very many candidates, only multiples of a highly composite number are tried.
    let step = if most - least > MANY { ROUND } else { 1 };
    let all = (least.next_multiple_of(step)..most + 1).step_by(step);
    all.rev().max_by_key(|&units| divisors(units)).unwrap_or(least) * unit
}

/// Shortens a long list of descending numbers: removes each that is little less than the last one that stays.
fn thin(numbers: &mut Vec<usize>) {
    if numbers.len() > FEW {
        let mut last = usize::MAX;
        numbers.retain(|&number| {
            let is_apart = number as f64 * APART < last as f64;
            if is_apart {
                last = number;
            }
            is_apart
        });
    }
}

fn divisors(units: usize) -> usize {
    (1..=units.min(1024)).filter(|&divisor| units.is_multiple_of(divisor)).count()
}

/// Returns an upper estimate of the keys in the fullest of `entries` entries: four standard deviations above the mean.
pub(in crate::builder) fn fullest(records: usize, entries: usize) -> usize {
    let mean = records as f64 / entries as f64;
    if entries == 1 { records } else { (mean + 4.0 * mean.sqrt()).ceil() as usize }
}

/// A shape of a segment.
pub(in crate::builder) struct Candidate {
    pub(in crate::builder) shape: SegmentShape,
    /// The cost of the shape, in the bytes of [`cost`].
    pub(in crate::builder) cost: f64,
}

/// The shapes that segments beside the base of a table can have.
pub(in crate::builder) struct SegmentShapes<'a> {
    table: &'a TableParams,
    /// The possible numbers of columns, descending, each with the number of keys that a block of so many columns holds.
    columns: Vec<(usize, usize)>,
}

impl<'a> SegmentShapes<'a> {
    /// Creates the shapes of segments whose keys are found by `filter`.
    pub(in crate::builder) fn beside(table: &'a TableParams, filter: FilterKind) -> Self {
        let SegmentRule { columns: all, column_unit: unit, .. } = table.base().facts().segments;
        // Divisors come in pairs.
        let pairs =
            (1..=all.isqrt()).filter(|&wraps| all.is_multiple_of(wraps)).map(|wraps| [all / wraps, wraps]);
        let mut columns: Vec<usize> = pairs.flatten().collect();
        columns.sort_unstable_by(|a, b| b.cmp(a));
        columns.dedup();
        let least = WrappedFilter::min_columns(filter).max(unit);
        columns.retain(|&columns| columns >= least && (columns == all || columns.is_multiple_of(unit)));
        thin(&mut columns);
        Self {
            table,
            columns: columns
                .into_iter()
                .map(|columns| (columns, WrappedFilter::capacity(filter, columns)))
                .collect(),
        }
    }

    /// Returns the number of keys that a block can hold, for each possible number of columns.
    pub(in crate::builder) fn capacities(&self) -> impl Iterator<Item = usize> {
        self.columns.iter().map(|&(_, capacity)| capacity)
    }

    /// Returns the shapes for slots of `slot_bytes` bytes, the cheapest first. `fullest` returns the number of keys in the fullest
    /// entry, given the number of entries.
    pub(in crate::builder) fn of_slots(
        &self,
        slot_bytes: usize,
        fullest: impl Fn(usize) -> usize,
    ) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for &entries in &self.table.base().facts().segments.entries {
            let keys = fullest(entries);
            for &(columns, capacity) in &self.columns {
                // Several lanes fill to half a per cent and two keys above the mean.
                let lanes = if keys <= capacity {
                    1
                } else {
                    ((keys as f64 * 1.005 + 2.0) / capacity as f64).ceil() as usize
                };
                let shape = TableShape { columns, blocks: lanes.max(1) * entries, slot_bytes };
                let shape = SegmentShape { shape, entries };
                if let Ok(segment) = self.table.segment(shape) {
                    candidates.push(Candidate { shape, cost: cost(&segment) });
                }
            }
        }
        candidates.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        candidates
    }
}
