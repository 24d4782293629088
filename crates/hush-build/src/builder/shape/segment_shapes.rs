//! Which shapes the segments of a table can have, and what they cost.

use hush_protocol::{
    any_page::{SegmentParams, TableParams},
    facts::SegmentRule,
    keyword::{FilterKind, WrappedFilter},
    layout::STREAM_PER_TRAFFIC,
    table::{LOOKUPS_PER_EPOCH, SegmentShape, TableShape},
};

use crate::builder::{BuildError, options::Scheme};

/// The share of columns that rounding up may add, so that segments can divide them: at most one in 16.
const ROUNDING: usize = 16;
/// Numbers of columns that are all tried, and what the others are a multiple of where there are more.
const MANY: usize = 1 << 14;
const ROUND: usize = 720;
/// Numbers of columns of segments that are all tried, and how far apart they are where there are more.
const FEW: usize = 48;
const APART: f64 = 1.1;
/// The base may have so many times as many columns, or as few, as would suit it alone.
const SPREAD: usize = 2;
/// So many numbers of columns are tried.
const BASES: usize = 16;

/// Returns the cost of a segment: the bytes that a server scans, and those that are sent, in bytes that are scanned
/// in that time.
pub(in crate::builder) fn cost(segment: &SegmentParams) -> f64 {
    let facts = segment.facts();
    let hint = facts.hint_bytes as f64 / LOOKUPS_PER_EPOCH;
    let sent = (facts.query.total() + facts.answer_bytes) as f64 + hint;
    segment.file_bytes() as f64 + sent * STREAM_PER_TRAFFIC
}

/// Tables of so many keys that segments can be beside, the cheapest first: all entries have as many blocks, so that the keys of a
/// tier are evenly spread over them. `like` is one that has the columns which suit it alone.
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
    let table = |columns: usize| {
        // A block takes a few keys more than the mean.
        let keys = filter.capacity(columns) as f64 / 1.004;
        let blocks = (records as f64 / keys.max(1.0)).ceil().max(1.0) as usize;
        let blocks = if chooses { blocks.next_multiple_of(like.facts().lanes) } else { blocks };
        scheme.params(TableShape { columns, blocks, slot_bytes })
    };
    let least = WrappedFilter::min_columns(filter);
    let (tables, errors): (Vec<_>, Vec<_>) =
        columns.into_iter().filter(|&columns| columns >= least).map(table).partition(Result::is_ok);
    let mut tables: Vec<_> = tables.into_iter().flatten().collect();
    if let (true, Some(Err(error))) = (tables.is_empty(), errors.into_iter().next()) {
        return Err(error);
    }
    tables.sort_by(|a, b| cost(a.base()).total_cmp(&cost(b.base())));
    Ok(tables)
}

/// Returns a number of columns that has divisors for segments, a few more than so many.
pub(in crate::builder) fn divisible(columns: usize, unit: usize) -> usize {
    let least = columns.div_ceil(unit);
    let most = least + least / ROUNDING;
    // Of very many only some are tried, which have many divisors themselves.
    let step = if most - least > MANY { ROUND } else { 1 };
    let all = (least.next_multiple_of(step)..most + 1).step_by(step);
    all.rev().max_by_key(|&units| divisors(units)).unwrap_or(least) * unit
}

/// Removes from many numbers, the largest first, those that are little less than the one before.
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

/// Returns the number of keys that the fullest of `entries` entries is to hold, four standard deviations over the mean.
pub(in crate::builder) fn fullest(records: usize, entries: usize) -> usize {
    let mean = records as f64 / entries as f64;
    if entries == 1 { records } else { (mean + 4.0 * mean.sqrt()).ceil() as usize }
}

/// A shape of a segment.
pub(in crate::builder) struct Candidate {
    pub(in crate::builder) shape: SegmentShape,
    /// The cost of the shape, as [`cost`] has it.
    pub(in crate::builder) cost: f64,
}

/// The shapes that segments beside the base of a table can have.
pub(in crate::builder) struct SegmentShapes<'a> {
    table: &'a TableParams,
    /// Columns, the most first, and the keys that a block of so many holds.
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

    /// Keys that blocks can hold, by their columns.
    pub(in crate::builder) fn capacities(&self) -> impl Iterator<Item = usize> {
        self.columns.iter().map(|&(_, capacity)| capacity)
    }

    /// Returns the shapes for slots of `slot_bytes` bytes, the cheapest first. `fullest` says how many keys the
    /// fullest entry holds, for a number of entries.
    pub(in crate::builder) fn of_slots(
        &self,
        slot_bytes: usize,
        fullest: impl Fn(usize) -> usize,
    ) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for &entries in &self.table.base().facts().segments.entries {
            let keys = fullest(entries);
            for &(columns, capacity) in &self.columns {
                // Several lanes fill to half a per cent over the mean, and two keys.
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
