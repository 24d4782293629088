//! For every table the fewest machines that meet the wishes.

use hush_engine::{Bytes, Progress};
use hush_protocol::any_page::TableParams;
use rayon::prelude::*;

use super::{
    super::{Goal, Machine, MemoryBudget, Offer, Records, Wishes, offers::plans},
    costs::TableCosts,
    layout::{Layout, Parts},
    wishes::{ClusterWishes, LayoutError},
};
use crate::builder::{BuildError, BuildOptions};

/// The most parts that are tried.
const MOST_PARTS: usize = 4096;
/// So many numbers of parts are tried one by one, from the fewest that could hold a table; then each is `STEP` times the last.
const DENSE: usize = 64;
const STEP: f64 = 1.3;

/// Returns a layout of every table that records could have, the best first. Each takes as few machines as meet the wishes; with
/// [`Goal::Latency`] it is the fastest.
///
/// # Errors
/// [`LayoutError`]: what is missing, and what would be nearest.
pub fn layouts(
    records: &Records,
    options: &BuildOptions,
    wishes: &Wishes,
    wanted: &ClusterWishes,
    profile: &Machine,
    progress: &dyn Progress,
) -> Result<Vec<Layout>, LayoutError> {
    let count = wanted.count()?;
    let payload = records.payload();
    // A number of bytes bounds the memory of each machine; all other budgets are those of the whole.
    let (mut of_whole, mut most_bytes) = (*wishes, u64::MAX);
    if let Some(MemoryBudget::Bytes(bytes)) = wishes.budgets.memory {
        (of_whole.budgets.memory, most_bytes) = (None, bytes);
    }
    let all = plans(records.lengths(), records.by_key(), options, wishes.budgets.linkable, progress)?;
    progress.start("place", all.len() as u64, "tables");
    let found = all.par_iter().map(|plan| {
        progress.check()?;
        let offer = Offer::new(&plan.params, &plan.ends, profile, wishes.clients);
        let search = Search { offer, payload, wishes: &of_whole, wanted, most_bytes, profile };
        progress.advance(1);
        Ok(search.of(&plan.params, count))
    });
    let mut found: Vec<Found> = found.collect::<Result<_, BuildError>>()?;
    let mut layouts: Vec<Layout> = found.iter_mut().filter_map(|found| found.met.take()).collect();
    if layouts.is_empty() {
        let exceeding: Vec<Offer> = found.iter_mut().filter_map(|found| found.exceeding.take()).collect();
        if !exceeding.is_empty() {
            return Err(BuildError::from(of_whole.refusal(&exceeding, payload, profile.threads)).into());
        }
        let nearest = found.into_iter().filter_map(|found| found.lacking).min_by_key(|lacking| lacking.bytes);
        return Err(nearest.map_or(
            LayoutError::Units { parts: count.unwrap_or(1) },
            |Lacking { options, parts, bytes }| LayoutError::NoRoom {
                options,
                parts,
                lacking: Bytes(bytes as usize).to_string(),
            },
        ));
    }
    let score = |layout: &Layout| {
        let cores: usize = layout.parts.iter().map(|part| part.cores).sum();
        wishes.score(&layout.as_offer(), layout.replicas.saturating_mul(cores))
    };
    layouts.sort_by(|a, b| score(a).total_cmp(&score(b)));
    Ok(layouts)
}

/// What came of the search for a table.
#[derive(Default)]
struct Found {
    met: Option<Layout>,
    /// What would fit the machines, and exceeds a budget.
    exceeding: Option<Offer>,
    lacking: Option<Lacking>,
}

/// Memory that a machine is short of.
struct Lacking {
    options: String,
    parts: usize,
    bytes: u64,
}

struct Search<'a> {
    offer: Offer,
    payload: u64,
    wishes: &'a Wishes,
    wanted: &'a ClusterWishes,
    most_bytes: u64,
    profile: &'a Machine,
}

impl Search<'_> {
    fn of(&self, params: &TableParams, count: Option<usize>) -> Found {
        let costs = TableCosts::new(params, self.profile, self.wishes.clients.count);
        let memory = self.wanted.nodes[0].memory.min(self.most_bytes).max(1);
        let fewest = (costs.whole_bytes() / memory).clamp(1, MOST_PARTS as u64) as usize;
        let most = costs.most_parts().min(MOST_PARTS);
        let is_fastest = self.wishes.goal == Goal::Latency;
        let mut found = Found::default();
        let mut parts = count.unwrap_or(fewest);
        while parts <= count.unwrap_or(most) {
            self.judge(&costs, parts, &mut found);
            // For a rate, more parts may take fewer replicas.
            if found.met.is_some() && !is_fastest && self.wanted.rate.is_none() {
                break;
            }
            let step = if parts < fewest + DENSE { 1.0 } else { STEP };
            parts = ((parts as f64 * step) as usize).max(parts + 1);
        }
        found
    }

    /// Looks at so many parts, and keeps the layout if it is the best so far.
    fn judge(&self, costs: &TableCosts<'_>, count: usize, found: &mut Found) {
        // Before anything of that length is made.
        if count > costs.most_parts() {
            return;
        }
        let parts = Parts::new(costs, self.wanted.of_parts(count), self.wanted.weights.as_deref());
        let layouts = parts.layouts(&self.offer, self.wishes, self.wanted, self.most_bytes);
        if layouts.is_empty() {
            let bytes = parts.lacking(1, self.most_bytes);
            if found.lacking.as_ref().is_none_or(|lacking| bytes < lacking.bytes) {
                found.lacking = Some(Lacking { options: self.offer.told_options(), parts: count, bytes });
            }
        }
        for layout in layouts {
            let offer = layout.as_offer();
            if !self.wishes.are_met(&offer, self.payload) {
                found.exceeding = Some(offer);
            } else if found.met.as_ref().is_none_or(|best| self.order(&layout) < self.order(best)) {
                found.met = Some(layout);
            }
        }
    }

    /// What is to be small of the layouts of a table: machines, then the time of a look-up where a rate is wished, else what each
    /// look-up of a batch takes. With [`Goal::Latency`] it is the time of a look-up alone.
    fn order(&self, layout: &Layout) -> (usize, f64) {
        match (self.wishes.goal, self.wanted.rate) {
            (Goal::Latency, _) => (0, layout.latency),
            (_, Some(_)) => (layout.machines, layout.latency),
            (_, None) => (layout.machines, 1.0 / layout.queries_per_second),
        }
    }
}

#[cfg(test)]
mod tests {
    use hush_engine::Silent;
    use hush_protocol::Protocol;

    use super::*;
    use crate::planner::{Budgets, Node, Stages};

    fn node(cores: usize, gigabytes: u64) -> Node {
        Node { cores, memory: gigabytes << 30, network: 1.25e9 }
    }

    fn wanted(nodes: Vec<Node>) -> ClusterWishes {
        ClusterWishes { nodes, weights: None, parts: None, replicas: 1, rate: None }
    }

    fn laid(
        protocol: Protocol,
        gigabytes: usize,
        wishes: &Wishes,
        wanted: &ClusterWishes,
    ) -> Result<Layout, LayoutError> {
        let records = Records::new([(1024, gigabytes << 20)], true).unwrap();
        let options = BuildOptions { protocol: Some(protocol), ..BuildOptions::default() };
        layouts(&records, &options, wishes, wanted, Machine::reference(), &Silent)
            .map(|mut all| all.remove(0))
    }

    /// PPIR's machines: two of four speeds of one.
    #[test]
    fn five_unequal_machines_share_as_they_have_cores() {
        let five = [16, 16, 8, 16, 8].map(|cores| node(cores, 64)).to_vec();
        let layout = laid(Protocol::Hybrid, 8, &Wishes::default(), &wanted(five)).unwrap();
        assert_eq!(layout.parts.iter().map(|part| part.weight).collect::<Vec<_>>(), [2, 2, 1, 2, 1]);
        assert_eq!(
            layout.serve("people"),
            "python -m hushdb.ray serve people --parts 5 --weights 2,2,1,2,1 --replicas 1 --cpus 16,16,8,16,8 --nodes \
             cores-16,cores-16,cores-8,cores-16,cores-8"
        );
        let Stages { broadcast, scan, gather, finish, total } = layout.single;
        assert!((broadcast + scan + gather + finish - total).abs() < 1e-9 && scan > 0.0 && finish > 0.0);
    }

    #[test]
    fn as_few_machines_as_hold_it_and_more_for_wishes() {
        let small = wanted(vec![node(8, 8)]);
        let parts =
            |wishes: &Wishes, wanted: &ClusterWishes| laid(Protocol::Colpack, 32, wishes, wanted).unwrap();
        let few = parts(&Wishes::default(), &small);
        assert!((5..=8).contains(&few.parts.len()), "{few:?}");
        assert!(few.parts.iter().all(|part| part.bytes <= 8 << 30));
        let serve = format!("python -m hushdb.ray serve t --parts {} --replicas 1 --cpus 8", few.parts.len());
        assert_eq!(few.serve("t"), serve);
        let memory = Some(MemoryBudget::Bytes(4 << 30));
        let less = Wishes { budgets: Budgets { memory, ..Budgets::default() }, ..Wishes::default() };
        let less = parts(&less, &small);
        assert!(less.parts.len() > few.parts.len() && less.parts.iter().all(|part| part.bytes <= 4 << 30));
        let twice = parts(&Wishes::default(), &ClusterWishes { replicas: 2, ..small.clone() });
        assert_eq!((twice.replicas, twice.machines), (2, 2 * twice.parts.len()));
        let rate = 2.0 * few.queries_per_second;
        let often = parts(&Wishes::default(), &ClusterWishes { rate: Some(rate), ..small });
        assert!(often.queries_per_second >= rate && often.machines > few.machines, "{often:?}");
    }

    #[test]
    fn the_nearest_is_told() {
        let two = wanted(vec![node(8, 16), node(8, 16)]);
        let refused = |gigabytes, wishes: &Wishes, wanted: &ClusterWishes| {
            laid(Protocol::Colpack, gigabytes, wishes, wanted).unwrap_err().to_string()
        };
        let large = refused(256, &Wishes::default(), &two);
        assert!(
            large.contains("the machines have no room: 'protocol: colpack'") && large.contains("in 2 parts"),
            "{large}"
        );
        let latency = Some(1e-3);
        let soon = Wishes { budgets: Budgets { latency, ..Budgets::default() }, ..Wishes::default() };
        assert!(refused(16, &soon, &two).contains("'max-latency'"), "{}", refused(16, &soon, &two));
        let counts = refused(16, &Wishes::default(), &ClusterWishes { parts: Some(5), ..two.clone() });
        assert!(counts.contains("differ"), "{counts}");
        let upload = Some(9);
        let upload = Wishes { budgets: Budgets { upload, ..Budgets::default() }, ..Wishes::default() };
        assert!(refused(16, &upload, &two).contains("'max-upload' allows 9 B"));
        let tiny = Records::new([(1, 9)], true).unwrap();
        let options = BuildOptions { protocol: Some(Protocol::Colpack), ..BuildOptions::default() };
        let asked = ClusterWishes { parts: Some(20), ..wanted(vec![node(8, 16)]) };
        let cut =
            layouts(&tiny, &options, &Wishes::default(), &asked, Machine::reference(), &Silent).unwrap_err();
        assert!(cut.to_string().contains("cut into 20 parts"), "{cut}");
    }
}
