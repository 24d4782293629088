//! The search for a layout with few parts, for every table that records could have.

use hush_engine::{Bytes, Progress};
use rayon::prelude::*;

use super::{
    super::{Machine, MemoryBudget, Offer, Records, Wishes, offers::plans},
    costs::TableCosts,
    layout::{Layout, Parts},
    wishes::{ClusterWishes, LayoutError},
};
use crate::builder::{BuildError, BuildOptions};
use crate::planner::wishes::told_options;

/// The maximum number of parts that is tried.
const MOST_PARTS: usize = 4096;

/// A reason why a table has no layout.
enum Miss {
    /// The table has fewer units than parts.
    Units,
    /// In this many parts, a machine lacks this many bytes of memory.
    Memory { parts: usize, bytes: u64 },
    /// The best table that fits the machines exceeds a budget.
    Budget(Box<Offer>),
}

/// Returns a layout of every table that records could have, the best first. Each has the requested number of parts, or the fewest
/// that meet the wishes, up to a sixteenth more.
///
/// # Errors
/// [`LayoutError`]: what is missing, and the nearest table.
pub fn layouts(
    records: &Records,
    options: &BuildOptions,
    wishes: &Wishes,
    wanted: &ClusterWishes,
    profile: &Machine,
    progress: &dyn Progress,
) -> Result<Vec<Layout>, LayoutError> {
    let mut of_whole = *wishes;
    let mut wanted = wanted.clone();
    // A budget in bytes bounds the memory of each machine. All other budgets bound the whole cluster.
    if let Some(MemoryBudget::Bytes(most)) = wishes.budgets.memory {
        of_whole.budgets.memory = None;
        wanted.nodes.iter_mut().for_each(|node| node.memory = node.memory.min(most));
    }
    let count = wanted.count()?;
    let payload = records.payload();
    let all = plans(records.lengths(), records.by_key(), options, wishes.budgets.linkable, progress)?;
    progress.start("place", all.len() as u64, "tables");
    let found = all.par_iter().map(|plan| {
        progress.check()?;
        progress.advance(1);
        let offer = Offer::new(&plan.params, &plan.ends, profile, wishes.clients);
        let costs = TableCosts::new(&plan.params, profile, wishes.clients.count);
        Ok((smallest(&offer, &costs, &of_whole, &wanted, count, payload), offer))
    });
    let mut layouts = Vec::new();
    let mut exceeding = Vec::new();
    let mut lacking = Vec::new();
    for (found, offer) in found.collect::<Result<Vec<_>, BuildError>>()? {
        match found {
            Ok(layout) => layouts.push(layout),
            Err(Miss::Budget(offer)) => exceeding.push(*offer),
            Err(Miss::Memory { parts, bytes }) => lacking.push((bytes, parts, offer)),
            Err(Miss::Units) => {}
        }
    }
    if layouts.is_empty() {
        if !exceeding.is_empty() {
            return Err(BuildError::from(of_whole.refusal(&exceeding, payload, profile.threads)).into());
        }
        let nearest = lacking.into_iter().min_by_key(|(bytes, ..)| *bytes);
        return Err(nearest.map_or(
            LayoutError::Units { parts: count.unwrap_or(1) },
            |(bytes, parts, offer)| LayoutError::NoRoom {
                options: told_options(&offer.options()),
                parts,
                lacking: Bytes(bytes as usize).to_string(),
            },
        ));
    }
    let score = |layout: &Layout| {
        let cores: usize = layout.parts.iter().map(|part| part.cores).sum();
        of_whole.score(&layout.as_offer(), layout.replicas.saturating_mul(cores))
    };
    layouts.sort_by(|a, b| score(a).total_cmp(&score(b)));
    Ok(layouts)
}

/// Returns the layout of a table in `count` parts, or in the fewest parts that meet the wishes. Chooses the batch size with the
/// fewest machines; then the one with the least latency if a rate is wished, else the one with the most look-ups a second.
fn smallest(
    offer: &Offer,
    costs: &TableCosts<'_>,
    wishes: &Wishes,
    wanted: &ClusterWishes,
    count: Option<usize>,
    payload: u64,
) -> Result<Layout, Miss> {
    let order = |layout: &Layout| match wanted.rate {
        Some(_) => (layout.machines, layout.latency),
        None => (layout.machines, 1.0 / layout.queries_per_second),
    };
    let fewest = costs.whole_bytes() / wanted.nodes[0].memory.max(1);
    let mut parts = count.unwrap_or(fewest.clamp(1, MOST_PARTS as u64) as usize);
    let mut miss = Miss::Units;
    while parts <= count.unwrap_or(MOST_PARTS).min(costs.most_parts()) {
        let own = Parts::new(costs, wanted.of_parts(parts), wanted.weights.as_deref());
        let mut layouts = own.layouts(offer, wishes, wanted);
        miss = match layouts.last() {
            Some(largest) => Miss::Budget(Box::new(largest.as_offer())),
            None if matches!(miss, Miss::Budget(_)) => miss,
            None => Miss::Memory { parts, bytes: own.lacking(1) },
        };
        layouts.retain(|layout| wishes.are_met(&layout.as_offer(), payload));
        if let Some(best) = layouts.into_iter().min_by(|a, b| {
            let (few, soon) = order(a);
            let (more, late) = order(b);
            few.cmp(&more).then(soon.total_cmp(&late))
        }) {
            return Ok(best);
        }
        parts += 1 + parts / 16;
    }
    Err(miss)
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

    /// Uses the machines of PPIR: some have twice the speed of the others.
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
