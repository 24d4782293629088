//! The plan of a table: its length tiers, and the shapes of their segments.
//!
//! ```text
//!               ├── base ──┤├─── tier 2 ───┤├──────── tier 3 ────────┤
//!   value 0     ████████
//!   value 1     ██████████████████
//!   value 2     ███████████████████████████████████████
//! ```
//!
//! The base has a slot for every record, with the first bytes of its value. A tier has a slot for each record whose value is
//! longer. A tier saves padding, and costs another answer.

use std::ops::Range;

use hush_engine::Bytes;
use hush_protocol::{
    any_page::{SegmentParams, Slots, TableParams},
    descriptor::{Descriptor, KeyLookup, Segment},
    keyword::{FilterKind, WrappedFilter},
    slot::SlotFormat,
    table::SegmentShape,
};
use hush_store::snapshot::Choice;

use super::segment_shapes::{SegmentShapes, cost, fullest, wide_bases};
use crate::builder::{BuildError, BuildOptions, Lengths, layout::delta, options::Scheme};

/// The plan of a table.
pub(crate) struct Plan {
    /// Whether records have keys of their own.
    pub(in crate::builder) by_key: bool,
    /// The filter, if records are found by it.
    pub(in crate::builder) filter: FilterKind,
    /// The format of a slot of the base.
    pub(in crate::builder) slot: SlotFormat,
    /// The protocol and its parameter set.
    pub(in crate::builder) scheme: Scheme,
    /// The lengths in bytes at which tiers end; the last is the longest value.
    pub(crate) ends: Vec<usize>,
    /// The number of changes that the table has room for; `None` if it takes no changes.
    pub(in crate::builder) room: Option<usize>,
    /// The geometry of an earlier table that the build keeps; `None` if it chooses one.
    pub(in crate::builder) kept: Option<KeptGeometry>,
    /// The table's parameters, as far as they are known before keys are hashed.
    pub(crate) params: TableParams,
    /// The reasons for this plan, if there was a choice.
    pub(crate) choice: Option<Choice>,
}

/// The geometry of an earlier table, kept so that queries that were made for it can be answered.
pub(in crate::builder) struct KeptGeometry {
    /// The parameters of the base, without segments.
    pub(in crate::builder) base: TableParams,
    pub(in crate::builder) keys: KeyLookup,
    pub(in crate::builder) tiers: Vec<SegmentShape>,
    changes: Vec<SegmentShape>,
}

impl Plan {
    /// Returns a plan with the geometry of `previous`. Returns `None` if its slots cannot hold values of these lengths.
    pub(in crate::builder) fn keeping(
        previous: &Descriptor,
        lengths: &Lengths,
        by_key: bool,
        options: &BuildOptions,
    ) -> Option<Self> {
        let slot = previous.slot;
        let (shortest, longest) = lengths.ends();
        let max = slot.max_value_bytes as usize;
        let keys = previous.lookup.keys().cloned()?;
        if longest > max || (slot.length_bytes == 0 && shortest < max) {
            return None;
        }
        let (tiers, changes) = previous.segments.split_at(previous.tiers());
        let base = Descriptor { segments: Vec::new(), ..previous.clone() }.params().ok()?;
        let shapes = |segments: &[Segment]| segments.iter().map(Segment::shape).collect();
        Some(Self {
            by_key,
            filter: keys.filter,
            slot,
            scheme: Scheme::of(previous),
            ends: previous.tier_ends(),
            room: options.room(lengths.records()),
            kept: Some(KeptGeometry { base, keys, tiers: shapes(tiers), changes: shapes(changes) }),
            params: previous.params().ok()?,
            choice: None,
        })
    }

    /// Returns the options of a build that repeats this plan, with the wishes replaced by its protocol, columns and form.
    pub(in crate::builder) fn settle(&self, options: &BuildOptions) -> BuildOptions {
        if options.is_settled() {
            return options.clone();
        }
        let facts = self.params.facts();
        let form = self.params.database().form();
        BuildOptions {
            protocol: Some(facts.protocol),
            preset: Some(facts.preset.to_owned()),
            columns: facts.protocol.page().has_columns().then_some(facts.shape.columns),
            form: Some(form),
            wishes: None,
            ..options.clone()
        }
    }

    /// Returns the cheapest table whose tiers end at `ends`.
    pub(in crate::builder) fn with_ends(
        lengths: &Lengths,
        by_key: bool,
        options: &BuildOptions,
        ends: &[usize],
    ) -> Result<Self, BuildError> {
        let several = options.has_segments(ends);
        let filter = options.filter_for(several);
        if several && !WrappedFilter::suits(filter) {
            return Err(BuildError::TierFilter { filter });
        }
        let bases = Self::bases(lengths, by_key, options, ends)?;
        let plans = bases.into_iter().map(|base| base.with_tiers(lengths)?.with_changes(lengths));
        plans.reduce(cheaper).expect("a base, or an error")
    }

    /// Returns plans of the base alone. If the table has segments, there is one for each shape that may be the cheapest.
    pub(in crate::builder) fn bases(
        lengths: &Lengths,
        by_key: bool,
        options: &BuildOptions,
        ends: &[usize],
    ) -> Result<Vec<Self>, BuildError> {
        let several = options.has_segments(ends);
        let filter = options.filter_for(several);
        let slot = options.slot_format(by_key, lengths.ends(), ends);
        let is_keyed = by_key || several;
        let count = if is_keyed { filter.slots_for(lengths.records()) } else { lengths.records() };
        let slots = Slots { count, slot_bytes: slot.slot_bytes(), by_key: is_keyed };
        let scheme = options.scheme_for(slots);
        let params = scheme.params(scheme.shape(slots)?)?;
        let all = match several {
            true => wide_bases(&scheme, &params, lengths.records(), filter)?,
            false => vec![params],
        };
        let plans = all.into_iter().map(|params| Self {
            by_key,
            filter,
            slot,
            scheme: scheme.clone(),
            ends: ends.to_vec(),
            room: options.room(lengths.records()),
            kept: None,
            params,
            choice: None,
        });
        Ok(plans.collect())
    }

    /// Returns the base with all tiers.
    fn with_tiers(mut self, lengths: &Lengths) -> Result<Self, BuildError> {
        for pair in self.ends.windows(2) {
            let records = lengths.longer_than(pair[0]);
            let slot_bytes = pair[1] - pair[0];
            let fullest = |entries| fullest(records, entries);
            let shapes = SegmentShapes::beside(&self.params, self.filter).of_slots(slot_bytes, fullest);
            let cheapest = shapes.first().ok_or(BuildError::NoTier { records, from: pair[0] })?;
            self.params = self.params.with_segment(cheapest.shape)?;
        }
        Ok(self)
    }

    /// Returns the table with segments for changes, if the plan has room for changes.
    fn with_changes(mut self, lengths: &Lengths) -> Result<Self, BuildError> {
        if self.room.is_some() {
            let shapes = self.change_shapes(&self.params, lengths)?;
            self.params =
                shapes.into_iter().try_fold(self.params, |params, shape| params.with_segment(shape))?;
        }
        Ok(self)
    }

    /// Returns the shapes of the segments that hold changes, beside the base of `table`.
    pub(in crate::builder) fn change_shapes(
        &self,
        table: &TableParams,
        lengths: &Lengths,
    ) -> Result<Vec<SegmentShape>, BuildError> {
        match (&self.kept, self.room) {
            (Some(kept), _) => Ok(kept.changes.clone()),
            (None, None) => Ok(Vec::new()),
            (None, Some(room)) => delta::shapes(table, self.filter, &self.ends, room, lengths),
        }
    }

    /// Returns the range of value bytes in each tier beside the base.
    pub(in crate::builder) fn tiers(&self) -> impl Iterator<Item = Range<usize>> {
        self.ends.windows(2).map(|pair| pair[0]..pair[1])
    }

    /// Returns the bytes of the longest value that the table takes.
    pub(in crate::builder) fn longest(&self) -> usize {
        self.slot.max_value_bytes as usize
    }

    /// Returns whether there are segments beside the base: tiers, or segments for changes.
    pub(in crate::builder) fn has_segments(&self) -> bool {
        self.ends.len() > 1 || self.room.is_some()
    }

    /// Returns whether a filter finds the records: in a table by key, or with several segments.
    pub(in crate::builder) fn is_keyed(&self) -> bool {
        self.by_key || self.has_segments()
    }

    /// Returns the cost of a look-up: the sum over all segments.
    pub(in crate::builder) fn cost(&self) -> f64 {
        self.params.segments().iter().map(cost).sum()
    }

    /// Returns the bytes of all files.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.params.segments().iter().map(SegmentParams::file_bytes).sum()
    }

    /// Prints the records and the size of every tier, and the size of the segments for changes, with `note`.
    pub(in crate::builder) fn tell_segments(&self, lengths: &Lengths, note: impl Fn(&str)) {
        if let Some(room) = self.room {
            let segments = &self.params.segments()[self.ends.len()..];
            let bytes = segments.iter().map(SegmentParams::file_bytes).sum::<u64>();
            let answers = segments.iter().map(|segment| segment.facts().answer_bytes).sum();
            note(&format!(
                "room for {room} changes: {}; answers of {}",
                Bytes(bytes as usize),
                Bytes(answers)
            ));
        }
        if self.ends.len() < 2 {
            return;
        }
        let mut from = 0;
        for (index, (segment, &end)) in self.params.segments().iter().zip(&self.ends).enumerate() {
            let records = if index == 0 { lengths.records() } else { lengths.longer_than(from) };
            note(&format!(
                "tier {}: bytes {from} to {end} of {records} values, {}; answers of {}",
                index + 1,
                Bytes(segment.file_bytes() as usize),
                Bytes(segment.facts().answer_bytes)
            ));
            from = end;
        }
    }
}

/// Returns the cheaper of two plans, or the one that exists, or the second error.
fn cheaper(one: Result<Plan, BuildError>, other: Result<Plan, BuildError>) -> Result<Plan, BuildError> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok(if other.cost() < one.cost() { other } else { one }),
        (one, other) => one.or(other),
    }
}
