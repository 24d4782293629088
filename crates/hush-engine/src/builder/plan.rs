//! What a table of some records is to be: its length tiers, and the shapes of their segments.
//!
//! ```text
//!               ├── base ──┤├─── tier 2 ───┤├──────── tier 3 ────────┤
//!   value 0     ████████
//!   value 1     ██████████████████
//!   value 2     ███████████████████████████████████████
//! ```
//!
//! The base has a slot for every record, with the first bytes of its value; a tier has one for each that goes on. What a tier saves
//! is padding; what it costs is an answer.

use std::collections::HashMap;

use hush_protocol::{
    any_page::{SegmentParams, Slots, TableParams},
    descriptor::MAX_SEGMENTS,
    keyword::{FilterKind, WrappedFilter},
    layout::STREAM_PER_TRAFFIC,
    slot::SlotFormat,
    table::{LOOKUPS_PER_EPOCH, SegmentShape, TableShape},
};

use super::{BuildError, BuildOptions, Lengths, Tiers, options::Scheme};
use crate::units::Bytes;

/// Shares of the records that may be longer than a cut: one in the square root of two to these powers.
const CUTS: std::ops::Range<i32> = 1..40;
/// What tiers have to save of the cost of one, to be worth another filter and more files.
const WORTH: f64 = 0.9;
/// Of columns that are rounded up so that segments can divide them: at most one in so many more.
const ROUNDING: usize = 16;
/// The base may have so many times as many columns, or as few, as would suit it alone.
const SPREAD: usize = 2;
/// So many numbers of columns are tried.
const BASES: usize = 16;
/// So many of the best ends of the base are looked at with all shapes of it, and with ends of tiers that fill their blocks.
const FINE: usize = 4;
/// Lanes of such blocks, at most.
const LANES: usize = 4;
/// Slack of blocks that are filled evenly.
const EVEN: f64 = 1.02;
/// Coefficients of a plaintext, of which slots that fill it leave none: a multiple of every ring's degree or a fraction of it.
const PLANE: usize = 2048;

/// What a table is to be.
pub(super) struct Plan {
    /// Whether records have keys of their own.
    by_key: bool,
    /// The filter, if records are found by it.
    pub(super) filter: FilterKind,
    /// What is in a slot of the base.
    pub(super) slot: SlotFormat,
    /// Protocol and parameter set.
    pub(super) scheme: Scheme,
    /// Where tiers end; the last is the longest value.
    pub(super) ends: Vec<usize>,
    /// The table, as far as it is known before keys are hashed.
    pub(super) params: TableParams,
}

impl Plan {
    /// The tiers that are asked for, or those that are cheapest.
    ///
    /// # Errors
    /// [`BuildError`] if there is no such table.
    pub(super) fn choose(
        lengths: &Lengths,
        by_key: bool,
        options: &BuildOptions,
    ) -> Result<Self, BuildError> {
        let (_, longest) = lengths.ends();
        match &options.tiers {
            Tiers::Ends(ends) => {
                let is_ordered = ends.windows(2).all(|pair| pair[0] < pair[1]);
                if !is_ordered || !(1..=MAX_SEGMENTS).contains(&ends.len()) || ends[0] == 0 {
                    return Err(BuildError::TierOrder { max: MAX_SEGMENTS });
                }
                if ends[ends.len() - 1] < longest {
                    return Err(BuildError::TiersTooShort { longest });
                }
                Self::with_ends(lengths, by_key, options, ends)
            }
            Tiers::AtMost(most) => {
                let one = Self::with_ends(lengths, by_key, options, &[longest]);
                let is_free = options.filter.is_none_or(WrappedFilter::suits);
                if *most < 2 || !is_free {
                    return one;
                }
                let limit = one.as_ref().map_or(f64::INFINITY, |one| WORTH * one.cost());
                match Search::new(lengths, by_key, options).run(*most, limit) {
                    Some(ends) => Self::with_ends(lengths, by_key, options, &ends),
                    None => one,
                }
            }
        }
    }

    /// The cheapest table whose tiers end at `ends`.
    fn with_ends(
        lengths: &Lengths,
        by_key: bool,
        options: &BuildOptions,
        ends: &[usize],
    ) -> Result<Self, BuildError> {
        let filter = options.filter_for(ends.len() > 1);
        if ends.len() > 1 && !WrappedFilter::suits(filter) {
            return Err(BuildError::TierFilter { filter });
        }
        let bases = Self::bases(lengths, by_key, options, ends)?;
        let plans = bases.into_iter().map(|base| base.with_tiers(lengths));
        plans.reduce(cheaper).expect("a base, or an error")
    }

    /// The base alone, in the shapes that may be the cheapest, if it has tiers beside it.
    fn bases(
        lengths: &Lengths,
        by_key: bool,
        options: &BuildOptions,
        ends: &[usize],
    ) -> Result<Vec<Self>, BuildError> {
        let (several, filter) = (ends.len() > 1, options.filter_for(ends.len() > 1));
        let slot = options.slot_format(by_key, lengths.ends(), ends);
        let is_keyed = by_key || several;
        let count = if is_keyed { filter.slots_for(lengths.records()) } else { lengths.records() };
        let slots = Slots { count, slot_bytes: slot.slot_bytes(), by_key: is_keyed };
        let scheme = options.scheme_for(slots)?;
        let params = scheme.params(scheme.shape(slots)?)?;
        let all = match several {
            true => wide_bases(&scheme, &params, lengths.records(), filter)?,
            false => vec![params],
        };
        let plan =
            |params| Self { by_key, filter, slot, scheme: scheme.clone(), ends: ends.to_vec(), params };
        Ok(all.into_iter().map(plan).collect())
    }

    /// The base with all tiers.
    fn with_tiers(mut self, lengths: &Lengths) -> Result<Self, BuildError> {
        for pair in self.ends.windows(2) {
            let (records, slot_bytes) = (lengths.longer_than(pair[0]), pair[1] - pair[0]);
            let shapes =
                segment_shapes(&self.params, self.filter, slot_bytes, |entries| fullest(records, entries));
            let Some(&(shape, _)) = shapes.first() else {
                return Err(BuildError::NoTier { records, from: pair[0] });
            };
            self.params = self.params.with_segment(shape)?;
        }
        Ok(self)
    }

    /// Whether records are found by a filter: by key, or in several tiers.
    pub(super) fn is_keyed(&self) -> bool {
        self.by_key || self.ends.len() > 1
    }

    /// Whether records have keys of their own.
    pub(super) fn by_key(&self) -> bool {
        self.by_key
    }

    fn cost(&self) -> f64 {
        self.params.segments().iter().map(cost).sum()
    }

    /// Bytes of all files.
    pub(super) fn file_bytes(&self) -> usize {
        self.params.segments().iter().map(file_bytes).sum()
    }

    /// Tells of every tier how many records are in it, and what it takes.
    pub(super) fn tell_tiers(&self, lengths: &Lengths, note: impl Fn(&str)) {
        if self.ends.len() < 2 {
            return;
        }
        let mut from = 0;
        for (index, (segment, &end)) in self.params.segments().iter().zip(&self.ends).enumerate() {
            let records = if index == 0 { lengths.records() } else { lengths.longer_than(from) };
            note(&format!(
                "tier {}: bytes {from} to {end} of {records} values, {}; answers of {}",
                index + 1,
                Bytes(file_bytes(segment)),
                Bytes(segment.facts().answer_bytes)
            ));
            from = end;
        }
    }
}

/// What a segment costs: the bytes that a server scans, and those that are sent, in bytes that are scanned in that time.
fn cost(segment: &SegmentParams) -> f64 {
    let facts = segment.facts();
    let hint = facts.hint_bytes as f64 / LOOKUPS_PER_EPOCH;
    let sent = (facts.query.total() + facts.answer_bytes) as f64 + hint;
    file_bytes(segment) as f64 + sent * STREAM_PER_TRAFFIC
}

/// Bytes of the files of a segment.
fn file_bytes(segment: &SegmentParams) -> usize {
    segment.files().iter().map(|file| file.content.bytes() as usize).sum()
}

/// The cheaper of two tables, if there are any.
fn cheaper(one: Result<Plan, BuildError>, other: Result<Plan, BuildError>) -> Result<Plan, BuildError> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok(if other.cost() < one.cost() { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// Tables of so many keys that segments can be beside, the cheapest first: all entries have as many blocks, so that the keys of a
/// tier are evenly spread over them. `like` is one that has the columns which suit it alone.
fn wide_bases(
    scheme: &Scheme,
    like: &TableParams,
    records: usize,
    filter: FilterKind,
) -> Result<Vec<TableParams>, BuildError> {
    let TableShape { columns: suitable, slot_bytes, .. } = like.facts().shape;
    let rule = &like.facts().segments;
    let (unit, chooses) = (rule.column_unit, rule.entries.last().is_some_and(|&entries| entries > 1));
    let least = suitable.max(WrappedFilter::min_columns(filter));
    let columns: Vec<usize> = match scheme.columns {
        // Segments have the columns of the base.
        _ if unit == suitable => vec![least],
        Some(_) => vec![divisible(least, unit)],
        None => {
            let (fewest, most) = (suitable / SPREAD / unit, suitable * SPREAD / unit);
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

/// A number of columns that has divisors for segments, a few more than so many.
pub(super) fn divisible(columns: usize, unit: usize) -> usize {
    let least = columns.div_ceil(unit);
    let units =
        (least..=least + least / ROUNDING).rev().max_by_key(|&units| divisors(units)).unwrap_or(least);
    units * unit
}

fn divisors(units: usize) -> usize {
    (1..=units.min(1024)).filter(|&divisor| units.is_multiple_of(divisor)).count()
}

/// The number of keys that the fullest of `entries` entries is to hold, four standard deviations over the mean.
fn fullest(records: usize, entries: usize) -> usize {
    let mean = records as f64 / entries as f64;
    if entries == 1 { records } else { (mean + 4.0 * mean.sqrt()).ceil() as usize }
}

/// The shapes that a segment of slots of `slot_bytes` bytes can have beside the base of a table, the cheapest first, and how many
/// keys a block of each may hold. `fullest` says how many keys the fullest entry holds, of so many.
pub(super) fn segment_shapes(
    table: &TableParams,
    filter: FilterKind,
    slot_bytes: usize,
    fullest: impl Fn(usize) -> usize,
) -> Vec<(SegmentShape, usize)> {
    let facts = table.base().facts();
    let columns = columns_of(table, filter);
    let mut shapes = Vec::new();
    for &entries in &facts.segments.entries {
        let keys = fullest(entries);
        for &columns in &columns {
            let capacity = WrappedFilter::capacity(filter, columns);
            // Lanes fill to half a per cent over the mean, and a key more.
            let even =
                |lanes: usize| if lanes > 1 { keys as f64 * 1.005 + lanes as f64 } else { keys as f64 };
            let lanes = (even(2) / capacity as f64).ceil().max(1.0) as usize;
            let lanes = if keys <= capacity { 1 } else { lanes.max(2) };
            let shape = TableShape { columns, blocks: lanes * entries, slot_bytes };
            let segment = SegmentShape { shape, entries };
            if let Ok(beside) = table.segment(segment) {
                shapes.push((cost(&beside), segment, capacity));
            }
        }
    }
    shapes.sort_by(|a, b| a.0.total_cmp(&b.0));
    shapes.into_iter().map(|(_, segment, capacity)| (segment, capacity)).collect()
}

/// How many columns a segment beside the base of a table can have.
fn columns_of(table: &TableParams, filter: FilterKind) -> Vec<usize> {
    let facts = table.base().facts();
    let (all, unit) = (facts.shape.columns, facts.segments.column_unit);
    let divisors = (1..=all / unit.max(1)).filter(|&wraps| all.is_multiple_of(wraps));
    let columns = divisors.map(|wraps| all / wraps);
    let least = WrappedFilter::min_columns(filter);
    columns.filter(|&columns| columns >= least && (columns == all || columns.is_multiple_of(unit))).collect()
}

/// The search for the cheapest tiers: dynamic programming over the lengths at which one may end.
struct Search<'a> {
    lengths: &'a Lengths,
    by_key: bool,
    options: &'a BuildOptions,
    /// Where tiers may end, the longest value last.
    cuts: Vec<usize>,
}

/// The cheapest tiers up to a cut: what they cost, and where they end.
type Best = Option<(f64, Vec<usize>)>;

impl<'a> Search<'a> {
    fn new(lengths: &'a Lengths, by_key: bool, options: &'a BuildOptions) -> Self {
        let (_, longest) = lengths.ends();
        let share = |power: i32| (lengths.records() as f64 / 2f64.powf(f64::from(power) / 2.0)) as usize;
        let mut cuts: Vec<usize> = CUTS.map(|power| lengths.beyond(share(power))).collect();
        cuts.extend([lengths.beyond(0), longest]);
        cuts.retain(|&cut| cut > 0);
        cuts.sort_unstable();
        cuts.dedup();
        Self { lengths, by_key, options, cuts }
    }

    /// Where the cheapest tiers end, if they are two or more and cost less than `limit`.
    fn run(&self, most: usize, limit: f64) -> Option<Vec<usize>> {
        let firsts = &self.cuts[..self.cuts.len().saturating_sub(1)];
        let bases = |first: usize| {
            let (_, longest) = self.lengths.ends();
            Plan::bases(self.lengths, self.by_key, self.options, &[first, longest]).unwrap_or_default()
        };
        let coarse =
            firsts.iter().filter_map(|&first| self.behind(first, bases(first).first()?, most, false));
        let mut coarse: Vec<_> = coarse.collect();
        coarse.sort_by(|a, b| a.0.total_cmp(&b.0));
        let fine = coarse.iter().take(FINE).flat_map(|(_, ends)| {
            bases(ends[0])
                .into_iter()
                .filter_map(|base| self.behind(ends[0], &base, most, true))
                .collect::<Vec<_>>()
        });
        let (cost, ends) = fine.min_by(|a, b| a.0.total_cmp(&b.0))?;
        let (cost, ends) = self.refined(cost, ends);
        (cost < limit).then_some(ends)
    }

    /// The lengths at which exactly as many values go on as some blocks of a segment hold.
    fn filling(&self, base: &Plan) -> Vec<usize> {
        let entries = &base.params.base().facts().segments.entries;
        let mut cuts = Vec::new();
        for columns in columns_of(&base.params, base.filter) {
            let capacity = WrappedFilter::capacity(base.filter, columns);
            for &entries in entries {
                for lanes in 1..=LANES {
                    let slack = if lanes > 1 || entries > 1 { EVEN } else { 1.0 };
                    cuts.push(self.lengths.beyond(((capacity * lanes * entries) as f64 / slack) as usize));
                }
            }
        }
        cuts
    }

    /// The cheapest tiers beside a base that ends at `first`; `fine` if their ends may be what fills their blocks.
    fn behind(&self, first: usize, base: &Plan, most: usize, fine: bool) -> Best {
        let mut cuts = self.cuts.clone();
        if fine {
            cuts.extend(self.filling(base));
            cuts.sort_unstable();
            cuts.dedup();
        }
        cuts.retain(|&cut| cut >= first);
        let mut up_to: Vec<Best> = vec![None; cuts.len()];
        up_to[0] = Some((base.cost(), vec![first]));
        let mut best: Best = None;
        let mut known: HashMap<(usize, usize), Option<f64>> = HashMap::new();
        for _ in 1..most.min(MAX_SEGMENTS) {
            let mut next: Vec<Best> = vec![None; cuts.len()];
            for (from, so_far) in up_to.iter().enumerate() {
                let Some((cost, ends)) = so_far else { continue };
                for to in from + 1..cuts.len() {
                    let tier = known.entry((from, to));
                    let Some(more) = *tier.or_insert_with(|| self.tier(base, cuts[from], cuts[to])) else {
                        continue;
                    };
                    if next[to].as_ref().is_none_or(|(known, _)| cost + more < *known) {
                        next[to] = Some((cost + more, [&ends[..], &[cuts[to]]].concat()));
                    }
                }
            }
            best =
                [best, next[cuts.len() - 1].clone()].into_iter().flatten().min_by(|a, b| a.0.total_cmp(&b.0));
            up_to = next;
        }
        best
    }

    /// What a tier costs beside a base.
    fn tier(&self, base: &Plan, from: usize, to: usize) -> Option<f64> {
        let records = self.lengths.longer_than(from);
        let shapes =
            segment_shapes(&base.params, base.filter, to - from, |entries| fullest(records, entries));
        Some(cost(&base.params.segment(shapes.first()?.0).ok()?))
    }

    /// Moves the ends so that plaintexts are full, as long as that makes the table cheaper.
    fn refined(&self, mut cost: f64, mut ends: Vec<usize>) -> (f64, Vec<usize>) {
        for at in 0..ends.len() - 1 {
            let head = self.options.slot_format(self.by_key, self.lengths.ends(), &[1, 2]).slot_bytes() - 1;
            let (from, head) = if at == 0 { (0, head) } else { (ends[at - 1], 0) };
            let slot = ends[at] - from + head;
            let lanes = PLANE / slot.min(PLANE);
            let full =
                [slot / PLANE * PLANE, slot.next_multiple_of(PLANE), PLANE / lanes, PLANE / (lanes + 1)];
            for slot in full {
                let mut moved = ends.clone();
                moved[at] = (from + slot).saturating_sub(head);
                let is_ordered = moved.windows(2).all(|pair| pair[0] < pair[1]) && moved[at] > from;
                let plan = is_ordered
                    .then(|| Plan::with_ends(self.lengths, self.by_key, self.options, &moved).ok())
                    .flatten();
                if let Some(plan) = plan.filter(|plan| plan.cost() < cost) {
                    (cost, ends) = (plan.cost(), moved);
                }
            }
        }
        (cost, ends)
    }
}
