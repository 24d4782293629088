//! The search for the lengths at which tiers should end: dynamic programming over some candidates.

use std::{collections::HashMap, ops::Range};

use hush_protocol::{descriptor::MAX_TIERS, keyword::WrappedFilter};

use super::segment_shapes::{SegmentShapes, fullest};
use crate::builder::{BuildError, BuildOptions, Lengths, Plan, Tiers};

/// The powers that give the cuts: a share of `sqrt(2)^-power` of the records is longer than a cut.
const CUTS: Range<i32> = 1..40;
/// The number of best ends of the base that are examined further: with all shapes of the base, and with tiers that fill blocks.
const FINE: usize = 4;
/// The maximum number of lanes of a block that a tier may fill.
const LANES: usize = 4;
/// The slack of blocks over which keys are spread evenly.
const EVEN: f64 = 1.02;
/// The coefficients of a plaintext that a slot should fill without waste: a multiple or a divisor of every ring's degree.
const PLANE: usize = 2048;

/// Several tiers are used if they cost at most this share of one tier, because they take another filter and more files.
const WORTH: f64 = 0.9;

/// The search for the cheapest tiers.
struct TierSearch<'a> {
    lengths: &'a Lengths,
    by_key: bool,
    options: &'a BuildOptions,
    /// The lengths at which tiers may end, ascending. The longest value is the last.
    cuts: Vec<usize>,
}

/// The cost of the cheapest tiers up to a cut, and the lengths at which they end. `None` if there are none.
type CheapestTiers = Option<(f64, Vec<usize>)>;

impl Plan {
    /// Returns the plan of the protocol in `options`, with the requested tiers, or with the cheapest ones.
    ///
    /// # Errors
    /// [`BuildError`] if there is no such table; [`BuildError::TierOrder`], [`BuildError::TiersTooShort`] if the ends are invalid.
    pub(crate) fn of_protocol(
        lengths: &Lengths,
        by_key: bool,
        options: &BuildOptions,
    ) -> Result<Self, BuildError> {
        let (_, longest) = lengths.ends();
        match &options.tiers {
            Tiers::Ends(ends) => {
                let is_ordered = ends.windows(2).all(|pair| pair[0] < pair[1]);
                if !is_ordered || !(1..=MAX_TIERS).contains(&ends.len()) || ends[0] == 0 {
                    return Err(BuildError::TierOrder { max: MAX_TIERS });
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
                match TierSearch::new(lengths, by_key, options).run(*most, limit) {
                    Some(ends) => Self::with_ends(lengths, by_key, options, &ends),
                    None => one,
                }
            }
        }
    }
}

impl<'a> TierSearch<'a> {
    fn new(lengths: &'a Lengths, by_key: bool, options: &'a BuildOptions) -> Self {
        let (_, longest) = lengths.ends();
        let mut cuts: Vec<usize> = CUTS
            .map(|power: i32| {
                let share = lengths.records() as f64 / 2f64.powf(f64::from(power) / 2.0);
                lengths.beyond(share as usize)
            })
            .collect();
        cuts.extend([lengths.beyond(0), longest]);
        cuts.retain(|&cut| cut > 0);
        cuts.sort_unstable();
        cuts.dedup();
        Self { lengths, by_key, options, cuts }
    }

    /// Returns the ends of the cheapest tiers, if there are at least two tiers that cost less than `limit`.
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

    /// Returns the lengths at which the number of longer values exactly fills some blocks of a segment.
    fn filling(&self, base: &Plan, beside: &SegmentShapes<'_>) -> Vec<usize> {
        let entries = &base.params.base().facts().segments.entries;
        let mut cuts = Vec::new();
        for capacity in beside.capacities() {
            for &entries in entries {
                for lanes in 1..=LANES {
                    let slack = if lanes > 1 || entries > 1 { EVEN } else { 1.0 };
                    cuts.push(self.lengths.beyond(((capacity * lanes * entries) as f64 / slack) as usize));
                }
            }
        }
        cuts
    }

    /// Returns the cheapest tiers beside a base that ends at `first`. If `fine`, tiers may also end where the longer values fill
    /// blocks.
    fn behind(&self, first: usize, base: &Plan, most: usize, fine: bool) -> CheapestTiers {
        let mut cuts = self.cuts.clone();
        let beside = SegmentShapes::beside(&base.params, base.filter);
        if fine {
            cuts.extend(self.filling(base, &beside));
            cuts.sort_unstable();
            cuts.dedup();
        }
        cuts.retain(|&cut| cut >= first);
        let mut up_to: Vec<CheapestTiers> = vec![None; cuts.len()];
        up_to[0] = Some((base.cost(), vec![first]));
        let mut best: CheapestTiers = None;
        let mut known: HashMap<(usize, usize), Option<f64>> = HashMap::new();
        for _ in 1..most.min(MAX_TIERS) {
            let mut next: Vec<CheapestTiers> = vec![None; cuts.len()];
            for (from, so_far) in up_to.iter().enumerate() {
                let Some((cost, ends)) = so_far else { continue };
                for to in from + 1..cuts.len() {
                    let tier = known.entry((from, to));
                    let Some(more) = *tier.or_insert_with(|| self.tier(&beside, cuts[from], cuts[to])) else {
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

    /// Returns the cost of a tier that holds the bytes from `from` to `to` of longer values; `None` if no shape fits.
    fn tier(&self, beside: &SegmentShapes<'_>, from: usize, to: usize) -> Option<f64> {
        let records = self.lengths.longer_than(from);
        let fullest = |entries| fullest(records, entries);
        Some(beside.of_slots(to - from, fullest).first()?.cost)
    }

    /// Moves the ends to lengths that fill plaintexts, as long as that makes the table cheaper. Returns the cost and the ends.
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
