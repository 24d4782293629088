//! What is wished of a layout, what each lacks, and why none meets all.

use std::collections::BTreeMap;

use thiserror::Error;

use super::{
    super::{MemoryBudget, Wishes},
    layout::Layout,
    machines::Cluster,
    search::ClusterWishes,
};
use crate::{
    builder::BuildError,
    units::{Bytes, Seconds},
};

/// Why a table has no layout on some machines.
#[derive(Debug, Error)]
pub enum LayoutError {
    /// There is no table.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Machines have no room for it.
    #[error(
        "the machines have no room: {options} takes {needed} of all its parts together, and there are {there}"
    )]
    NoRoom {
        /// The options of the table that takes least.
        options: String,
        /// Bytes, for people.
        needed: String,
        /// Bytes of machines, for people.
        there: String,
    },
    /// There are more parts than tables have units.
    #[error("{asked} parts are more than {options} can be cut into: {units}")]
    Units {
        /// Parts.
        asked: usize,
        /// The options of the table with the most units.
        options: String,
        /// Its units.
        units: usize,
    },
    /// There are fewer machines than parts.
    #[error("{asked} parts with {replicas} replicas take {} machines, and there are {machines}", asked * replicas)]
    Parts {
        /// Parts.
        asked: usize,
        /// Replicas of each.
        replicas: usize,
        /// Machines that there are.
        machines: usize,
    },
    /// No layout meets the wishes.
    #[error("no layout meets the wishes: {binding}: the nearest is {nearest}")]
    Unmet {
        /// What binds.
        binding: String,
        /// What there is instead.
        nearest: String,
    },
}

/// A wish, and what there is of it.
#[derive(Clone)]
pub(super) struct Need {
    name: &'static str,
    option: &'static str,
    there: f64,
    wished: f64,
    /// Whether more is better.
    more: bool,
    text: fn(f64) -> String,
}

impl Need {
    /// By how much it is missed: above 1.
    fn excess(&self) -> f64 {
        if self.more { self.wished / self.there } else { self.there / self.wished }
    }

    fn says(&self, at_best: &str) -> String {
        let Self { name, option, there, wished, text, .. } = self;
        format!("{name} {at_best}{}, and {option} wishes {}", text(*there), text(*wished))
    }
}

/// The wishes that a layout, whose parts take so many bytes together, does not meet.
pub(super) fn needs(
    layout: &Layout,
    parts_bytes: u64,
    wishes: &Wishes,
    wanted: &ClusterWishes,
    payload: u64,
) -> Vec<Need> {
    let latency = wishes.budgets.latency.map(|wished| Need {
        name: "a look-up takes",
        option: "--max-latency",
        there: layout.latency,
        wished,
        more: false,
        text: |seconds| Seconds(seconds).to_string(),
    });
    let rate = wanted.rate.map(|wished| Need {
        name: "look-ups a second are",
        option: "--lookups-per-second",
        there: layout.queries_per_second,
        wished,
        more: true,
        text: |rate| format!("{rate:.0}"),
    });
    let times = match wishes.budgets.memory {
        Some(MemoryBudget::Times(times)) => Some(times),
        _ => None,
    };
    let memory = times.map(|times| Need {
        name: "all parts take",
        option: "--max-memory",
        there: parts_bytes as f64,
        wished: times * payload as f64,
        more: false,
        text: |bytes| Bytes(bytes as usize).to_string(),
    });
    let all = latency.into_iter().chain(rate).chain(memory);
    all.filter(|need| need.excess() > 1.0).collect()
}

/// What layouts lack, of all that were tried.
#[derive(Default)]
pub(super) struct Lacking {
    tried: usize,
    /// How many miss a wish, and the one that misses it least.
    by_option: BTreeMap<&'static str, (usize, Option<Need>)>,
    /// The layout that misses its wishes least: by how much, and what it is.
    nearest: Option<(f64, String)>,
}

impl Lacking {
    /// A layout of so many parts that misses `lacks`.
    pub(super) fn add(&mut self, layout: &Layout, parts: usize, lacks: Vec<Need>) {
        self.tried += 1;
        let excess = lacks.iter().map(Need::excess).fold(1.0, f64::max);
        if self.nearest.as_ref().is_none_or(|(least, _)| excess < *least) {
            let says: Vec<String> = lacks.iter().map(|need| need.says("")).collect();
            let (options, replicas) = (layout.table.options(), layout.replicas);
            let text = format!("{options} in {parts} parts, {replicas} of each: {}", says.join(", "));
            self.nearest = Some((excess, text));
        }
        for need in lacks {
            let (missing, best) = self.by_option.entry(need.option).or_default();
            *missing += 1;
            keep_best(best, Some(need));
        }
    }

    fn join(&mut self, other: Self) {
        self.tried += other.tried;
        for (option, (missing, need)) in other.by_option {
            let (own, best) = self.by_option.entry(option).or_default();
            *own += missing;
            keep_best(best, need);
        }
        let pairs = [self.nearest.take(), other.nearest];
        self.nearest = pairs.into_iter().flatten().min_by(|a, b| a.0.total_cmp(&b.0));
    }
}

fn keep_best(best: &mut Option<Need>, need: Option<Need>) {
    let both = [best.take(), need];
    *best = both.into_iter().flatten().min_by(|a, b| a.excess().total_cmp(&b.excess()));
}

/// A table for which there was no layout.
#[derive(Default)]
pub(super) struct Refused {
    pub(super) options: String,
    /// Bytes of all its parts.
    pub(super) bytes: u64,
    /// Into how many it can be cut.
    pub(super) units: usize,
}

/// Why nothing meets the wishes.
pub(super) fn refusal(
    found: impl Iterator<Item = (Lacking, Refused)>,
    wanted: &ClusterWishes,
    cluster: &Cluster,
) -> LayoutError {
    let (mut lacking, mut refused) = (Lacking::default(), Vec::new());
    for (own, table) in found {
        lacking.join(own);
        refused.push(table);
    }
    let Some((_, nearest)) = lacking.nearest else { return no_layout(&refused, wanted, cluster) };
    // What none of them meets binds.
    let binds = lacking.by_option.into_values().filter(|(missing, _)| *missing == lacking.tried);
    let binding: Vec<String> = binds.filter_map(|(_, need)| Some(need?.says("at best "))).collect();
    let binding = match binding.is_empty() {
        true => "none meets all at once".to_owned(),
        false => binding.join("; "),
    };
    LayoutError::Unmet { binding, nearest }
}

/// Why no table could be put on the machines at all.
fn no_layout(refused: &[Refused], wanted: &ClusterWishes, cluster: &Cluster) -> LayoutError {
    let (machines, replicas) = (cluster.machines(), wanted.replicas);
    let asked = wanted.parts.unwrap_or(1);
    if asked * replicas > machines {
        return LayoutError::Parts { asked, replicas, machines };
    }
    let finest = refused.iter().max_by_key(|table| table.units).expect("some tables");
    if asked > finest.units {
        return LayoutError::Units { asked, options: finest.options.clone(), units: finest.units };
    }
    let smallest = refused.iter().min_by_key(|table| table.bytes).expect("some tables");
    let for_parts = cluster.kinds.iter().filter(|kind| !kind.heads);
    let there: u64 = for_parts.map(|kind| kind.count as u64 * kind.memory).sum();
    let text = |bytes: u64| Bytes(bytes as usize).to_string();
    LayoutError::NoRoom {
        options: smallest.options.clone(),
        needed: text(smallest.bytes),
        there: text(there),
    }
}
