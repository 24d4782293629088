//! The layouts that meet the wishes: of every table the cheapest, or why there is none.

use std::{collections::HashMap, iter};

use hush_protocol::any_page::TableParams;
use rayon::prelude::*;

use super::{
    super::{Goal, MemoryBudget, Offer, OutOfBudget, Records, Wishes, offers::plans},
    costs::TableCosts,
    layout::{Chosen, Layout, Rate, Way, room},
    machines::Cluster,
    needs::{Lacking, LayoutError, Refused, needs, refusal},
};
use crate::{
    Progress,
    builder::{BuildError, BuildOptions},
};

/// Numbers of parts that are tried, beside all below: each so many times the one before. Between the last that does not do and the
/// first that does, all are.
const STEP: f64 = 1.3;
/// What is wished of a table in parts, beside [`Wishes`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClusterWishes {
    /// Look-ups a second.
    pub rate: Option<f64>,
    /// Machines that have the same part, at least.
    pub replicas: usize,
    /// So many parts; if not said, as few as will do.
    pub parts: Option<usize>,
}

impl Default for ClusterWishes {
    fn default() -> Self {
        Self { rate: None, replicas: 1, parts: None }
    }
}

/// The layouts of every table that records could have, the best first: of each table the one that takes the fewest machines, or of
/// those with prices the cheapest, and meets the wishes. With [`Goal::Latency`] the fastest.
///
/// # Errors
/// [`LayoutError`] says what binds, and what would be nearest.
pub fn layouts(
    records: &Records,
    options: &BuildOptions,
    wishes: &Wishes,
    wanted: &ClusterWishes,
    cluster: &Cluster,
    progress: &dyn Progress,
) -> Result<Vec<Layout>, LayoutError> {
    let head = cluster.head_kind();
    let payload = records.payload();
    // Memory and latency are those of parts, not of one server.
    let mut of_table = *wishes;
    (of_table.budgets.memory, of_table.budgets.latency) = (None, None);
    let all = plans(records.lengths(), records.by_key(), options, wishes.budgets.linkable, progress)?;
    let offered = all
        .iter()
        .map(|plan| (Offer::new(&plan.params, &plan.ends, &head.profile, wishes.clients), &plan.params));
    let (met, exceeding): (Vec<_>, Vec<_>) = offered.partition(|(offer, _)| of_table.are_met(offer, payload));
    if met.is_empty() {
        let exceeding: Vec<Offer> = exceeding.into_iter().map(|(offer, _)| offer).collect();
        let refusal: OutOfBudget = of_table.refusal(&exceeding, payload, head.profile.threads);
        return Err(BuildError::from(refusal).into());
    }
    progress.start("place", met.len() as u64, "tables");
    let searched = met.par_iter().map(|(offer, params)| {
        progress.check().map_err(BuildError::from)?;
        let found = Search { offer, payload, wishes, wanted, cluster }.of(params);
        progress.advance(1);
        Ok(found)
    });
    let mut found: Vec<Found> = searched.collect::<Result<_, BuildError>>()?;
    let mut layouts: Vec<Layout> = found.iter_mut().filter_map(|found| found.met.take()).collect();
    if layouts.is_empty() {
        return Err(refusal(found.into_iter().map(|found| (found.lacking, found.refused)), wanted, cluster));
    }
    layouts
        .sort_by(|a, b| score(a, wishes).total_cmp(&score(b, wishes)).then(a.latency.total_cmp(&b.latency)));
    Ok(layouts)
}

impl Layout {
    /// Those of `layouts` that no other is as good as in everything, and better than in something.
    pub fn undominated(layouts: &[Layout]) -> Vec<Layout> {
        let is_best = |own: &&Layout| !layouts.iter().any(|other| own.is_dominated_by(other));
        layouts.iter().filter(is_best).cloned().collect()
    }
}

/// The goal as a number: less is better.
fn score(layout: &Layout, wishes: &Wishes) -> f64 {
    match wishes.goal {
        Goal::Balance => layout.latency * layout.bytes() as f64,
        Goal::Latency => layout.latency,
        Goal::Bytes => layout.table.bytes(wishes.clients.lookups),
        Goal::Memory => layout.bytes() as f64,
        Goal::Cost => {
            let cores: usize = layout.parts.iter().map(|part| part.cores).sum();
            let of_cores = (layout.replicas * cores) as f64 * wishes.prices.core_hour;
            let hour = layout.price_hour.unwrap_or(of_cores);
            let gigabytes = layout.table.bytes(wishes.clients.lookups) / 1e9;
            hour / 3600.0 / layout.queries_per_second + gigabytes * wishes.prices.gigabyte
        }
    }
}

/// What came of the search for a table.
#[derive(Default)]
struct Found {
    met: Option<Layout>,
    lacking: Lacking,
    refused: Refused,
}

struct Search<'a> {
    offer: &'a Offer,
    payload: u64,
    wishes: &'a Wishes,
    wanted: &'a ClusterWishes,
    cluster: &'a Cluster,
}

impl Search<'_> {
    fn of(&self, params: &TableParams) -> Found {
        let costs = TableCosts::new(params, self.wishes.clients.count);
        let most_bytes = match self.wishes.budgets.memory {
            Some(MemoryBudget::Bytes(bytes)) => bytes,
            _ => u64::MAX,
        };
        let room = room(self.cluster, &costs, most_bytes);
        let mut found = Found::default();
        let mut best = None;
        let mut known: HashMap<Vec<usize>, Option<Chosen<'_>>> = HashMap::new();
        for order in self.orders() {
            let mut judge = |parts: usize| {
                let mut replicas = self.wanted.replicas;
                loop {
                    let Some(kinds) = self.slots(&order, parts, replicas) else { return false };
                    let new = |kinds: &Vec<usize>| {
                        Chosen::new(self.cluster, &costs, &room, kinds.clone(), most_bytes)
                    };
                    let Some(chosen) = known.entry(kinds).or_insert_with_key(new) else { return false };
                    let way = self.way(chosen);
                    // More of each part are other machines; as many as there are, if that is too few.
                    let more = way.replicas.min(self.cluster.machines() / parts);
                    if more > replicas && self.slots(&order, parts, more).is_some() {
                        replicas = more;
                        continue;
                    }
                    let way = Way { replicas, ..way };
                    let waits = self.wanted.rate.is_some();
                    let layout = chosen.layout(self.offer, self.wishes, &way, waits);
                    let lacks = needs(
                        &layout,
                        chosen.parts_bytes(layout.batch),
                        self.wishes,
                        self.wanted,
                        self.payload,
                    );
                    if !lacks.is_empty() {
                        found.lacking.add(&layout, parts, lacks);
                        return false;
                    }
                    if found.met.as_ref().is_none_or(|best| self.is_better(&layout, best)) {
                        found.met = Some(layout);
                        best = Some(chosen.kinds.clone());
                    }
                    return true;
                }
            };
            self.search(costs.most_parts().min(self.cluster.machines()), &mut judge);
        }
        if let (Some(layout), Some(kinds)) = (&mut found.met, best) {
            let chosen = known.remove(&kinds).flatten().expect("it was judged");
            layout.parts = chosen.parts(layout.batch);
        } else {
            let whole = costs.part(&costs.units().map(|units| 0..units).collect::<Vec<_>>());
            let options = self.offer.options();
            found.refused =
                Refused { options, bytes: costs.part_bytes(&whole, 1), units: costs.most_parts() };
        }
        found
    }

    /// The orders in which kinds of machines are taken: by speed, by price, by memory.
    fn orders(&self) -> Vec<Vec<usize>> {
        let kinds = &self.cluster.kinds;
        let mut fastest: Vec<usize> = (0..kinds.len()).filter(|&kind| !kinds[kind].heads).collect();
        fastest.sort_by(|&a, &b| kinds[a].slowness().total_cmp(&kinds[b].slowness()));
        let (mut cheapest, mut largest) = (fastest.clone(), fastest.clone());
        let price = |kind: usize| kinds[kind].price_hour.map(|price| price * kinds[kind].slowness());
        cheapest.sort_by(|&a, &b| price(a).partial_cmp(&price(b)).expect("prices are numbers"));
        largest.sort_by(|&a, &b| kinds[b].memory.cmp(&kinds[a].memory));
        let mut orders = vec![fastest, cheapest, largest];
        orders.dedup();
        orders
    }

    /// The kinds of the machines of so many parts, as they are in the file: each is a machine for every replica. None if there are
    /// not as many.
    fn slots(&self, order: &[usize], parts: usize, replicas: usize) -> Option<Vec<usize>> {
        let of_kind = |&kind: &usize| iter::repeat_n(kind, self.cluster.kinds[kind].count / replicas);
        let mut slots: Vec<usize> = order.iter().flat_map(of_kind).take(parts).collect();
        slots.sort_unstable();
        (slots.len() == parts).then_some(slots)
    }

    /// Looks for numbers of parts that `judge` says will do: the smallest, but for the goal of latency, by which all are looked at.
    fn search(&self, most: usize, judge: &mut dyn FnMut(usize) -> bool) {
        if let Some(parts) = self.wanted.parts {
            if parts <= most {
                judge(parts);
            }
            return;
        }
        let (mut parts, mut before) = (1, 0);
        while parts <= most {
            // Where a rate is wished, fewer parts may take more replicas.
            if judge(parts) && self.wishes.goal != Goal::Latency && self.wanted.rate.is_none() {
                // Fewer may do.
                let (mut low, mut high) = (before, parts);
                while high - low > 1 {
                    let middle = usize::midpoint(low, high);
                    if judge(middle) { high = middle } else { low = middle }
                }
                return;
            }
            before = parts;
            parts = match parts {
                _ if parts == most => most + 1,
                _ => ((parts as f64 * STEP) as usize).max(parts + 1).min(most),
            };
        }
    }

    /// Whether a layout of the same table is better than another.
    fn is_better(&self, one: &Layout, other: &Layout) -> bool {
        if self.wishes.goal == Goal::Latency {
            return one.latency < other.latency;
        }
        let cost = |layout: &Layout| layout.price_hour.unwrap_or(layout.machines as f64);
        cost(one) < cost(other) || (cost(one) == cost(other) && one.latency < other.latency)
    }

    /// The batches, replicas and heads that suit chosen machines.
    fn way<'c>(&self, chosen: &'c Chosen<'_>) -> Way<'c> {
        let (parts, least) = (chosen.kinds.len(), self.wanted.replicas);
        let Some(wished) = self.wanted.rate else {
            let often = |rate: &Rate| rate.of(1, least);
            let rate = chosen.rates.iter().max_by(|a, b| often(a).total_cmp(&often(b)));
            return Way { rate: rate.expect("a batch of one"), heads: 1, replicas: least };
        };
        let ways = chosen.rates.iter().map(|rate| {
            let replicas = rate.replicas_for(wished).max(least);
            // Where no machines are for heads, there is one beside each part at most.
            let most = match self.cluster.head_kind() {
                kind if kind.heads => kind.count,
                _ => parts * replicas,
            };
            Way { rate, heads: rate.heads_for(wished).min(most), replicas }
        });
        let late = |way: &Way<'_>| {
            let offer = Offer { seconds: way.rate.stages.total, ..self.offer.clone() };
            self.wishes.budgets.latency.is_some_and(|most| self.wishes.latency(&offer) > most)
        };
        let lacks = |way: &Way<'_>| way.rate.of(way.heads, way.replicas) < wished;
        // Those in time, on few machines; the smallest batches come first.
        let best = ways.min_by_key(|way| (lacks(way), late(way), parts * way.replicas + way.heads));
        best.expect("a batch of one")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hush_protocol::Protocol;

    use super::*;
    use crate::{
        Silent,
        planner::{
            Budgets, Machine, Stages,
            cluster::machines::{MachineKind, Transport},
        },
    };

    fn kind(name: &str, count: usize, cores: usize, gigabytes: u64) -> MachineKind {
        MachineKind {
            name: name.into(),
            count,
            cores,
            memory: gigabytes << 30,
            network: 1.25e9,
            profile: Arc::new(Machine::reference().clone()),
            speed: 1.0,
            price_hour: None,
            heads: false,
        }
    }

    fn cluster(kinds: Vec<MachineKind>) -> Cluster {
        Cluster { kinds, transport: Transport::default() }
    }

    fn laid(
        protocol: Protocol,
        gigabytes: usize,
        wishes: &Wishes,
        wanted: &ClusterWishes,
        cluster: &Cluster,
    ) -> Result<Vec<Layout>, LayoutError> {
        let records = Records::new([(1024, gigabytes << 20)], true).unwrap();
        let options = BuildOptions { protocol: Some(protocol), ..BuildOptions::default() };
        layouts(&records, &options, wishes, wanted, cluster, &Silent)
    }

    /// PPIR's machines: two of four speeds of one.
    #[test]
    fn five_unequal_machines_share_as_they_are_fast() {
        let five = [16, 16, 8, 16, 8].map(|cores| kind(&format!("of-{cores}"), 1, cores, 64));
        let wanted = ClusterWishes { parts: Some(5), ..ClusterWishes::default() };
        let found = laid(Protocol::Hybrid, 8, &Wishes::default(), &wanted, &cluster(five.to_vec())).unwrap();
        let layout = &found[0];
        assert_eq!(layout.parts.iter().map(|part| part.weight).collect::<Vec<_>>(), [2, 2, 1, 2, 1]);
        assert_eq!(
            layout.serve("people"),
            "python -m hushdb.ray serve people --parts 5 --weights 2,2,1,2,1 --replicas 1 --cpus 16,16,8,16,8 --nodes \
             of-16,of-16,of-8,of-16,of-8"
        );
        let Stages { broadcast, scan, gather, finish, total, .. } = layout.single;
        assert!((broadcast + scan + gather + finish - total).abs() < 1e-9 && scan > 0.0 && finish > 0.0);
    }

    #[test]
    fn as_few_machines_as_hold_it_and_more_for_wishes() {
        let machines = cluster(vec![kind("node", 40, 8, 8)]);
        let parts = |wishes: &Wishes, wanted: &ClusterWishes| {
            laid(Protocol::Colpack, 32, wishes, wanted, &machines).map(|found| found[0].clone())
        };
        let few = parts(&Wishes::default(), &ClusterWishes::default()).unwrap();
        assert!((5..=8).contains(&few.parts.len()), "{few:?}");
        assert!(few.parts.iter().all(|part| part.bytes <= 8 << 30));
        assert_eq!(
            few.serve("t"),
            format!("python -m hushdb.ray serve t --parts {} --replicas 1 --cpus 8", few.parts.len())
        );
        let sooner = 0.6 * few.latency;
        let fast =
            Wishes { budgets: Budgets { latency: Some(sooner), ..Budgets::default() }, ..Wishes::default() };
        if let Ok(fast) = parts(&fast, &ClusterWishes::default()) {
            assert!(fast.latency <= sooner);
        }
        let memory = Some(MemoryBudget::Bytes(4 << 30));
        let small = Wishes { budgets: Budgets { memory, ..Budgets::default() }, ..Wishes::default() };
        let small = parts(&small, &ClusterWishes::default()).unwrap();
        assert!(small.parts.len() > few.parts.len() && small.parts.iter().all(|part| part.bytes <= 4 << 30));
        let twice =
            parts(&Wishes::default(), &ClusterWishes { replicas: 2, ..ClusterWishes::default() }).unwrap();
        assert_eq!((twice.replicas, twice.machines), (2, 2 * twice.parts.len()));
        let rate = 2.0 * few.queries_per_second;
        let often =
            parts(&Wishes::default(), &ClusterWishes { rate: Some(rate), ..ClusterWishes::default() })
                .unwrap();
        assert!(often.queries_per_second >= rate && often.machines > few.machines, "{often:?}");
    }

    #[test]
    fn what_binds_is_told_with_the_nearest() {
        let machines = cluster(vec![kind("node", 4, 8, 16)]);
        let none = ClusterWishes::default();
        let refused = |gigabytes, wishes: &Wishes, wanted: &ClusterWishes| {
            laid(Protocol::Colpack, gigabytes, wishes, wanted, &machines).unwrap_err().to_string()
        };
        let large = refused(256, &Wishes::default(), &none);
        assert!(
            large.contains("the machines have no room: --protocol colpack")
                && large.contains("there are 64.00 GiB"),
            "{large}"
        );
        let soon =
            Wishes { budgets: Budgets { latency: Some(1e-3), ..Budgets::default() }, ..Wishes::default() };
        let slow = refused(16, &soon, &none);
        assert!(
            slow.contains("a look-up takes at best")
                && slow.contains("--max-latency wishes 1.00 ms: the nearest is"),
            "{slow}"
        );
        let rate = refused(16, &Wishes::default(), &ClusterWishes { rate: Some(1e7), ..none });
        assert!(rate.contains("--lookups-per-second wishes 10000000"), "{rate}");
        let parts = refused(16, &Wishes::default(), &ClusterWishes { parts: Some(5), ..none });
        assert!(parts.contains("5 parts with 1 replicas take 5 machines"), "{parts}");
        let upload =
            Wishes { budgets: Budgets { upload: Some(9), ..Budgets::default() }, ..Wishes::default() };
        assert!(refused(16, &upload, &none).contains("--max-upload allows 9 B"));
    }
}
