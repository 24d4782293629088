//! A table on some machines: which part is where, and what a batch of look-ups then takes.

use std::{collections::BTreeMap, ops::Range};

use serde::Serialize;

use super::{
    super::{Linkable, Offer, Wishes},
    costs::{HeadCosts, PartCosts, TableCosts},
    machines::{Cluster, MachineKind},
    weights::weights,
};
use crate::Place;

/// Batches of a head that are under way at once.
fn in_flight() -> f64 {
    Place::Parts.batches_in_flight() as f64
}

/// A table in parts on some machines, and what it costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Layout {
    /// The table, and what it would cost on one machine.
    pub table: Offer,
    /// The parts, in order.
    pub parts: Vec<Placed>,
    /// Machines that have the same part.
    pub replicas: usize,
    /// Processes that hand batches to parts and finish answers.
    pub heads: usize,
    /// The kind of machine that heads are on.
    pub head_kind: String,
    /// Bytes of memory of a head.
    pub head_bytes: u64,
    /// Machines that parts are on, and those of heads where these are apart.
    pub machines: usize,
    /// What an hour of all these costs, if prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_hour: Option<f64>,
    /// Bytes of a query that go to every part.
    pub query_bytes: u64,
    /// Bytes that all parts send for it.
    pub partial_bytes: u64,
    /// Seconds of a single look-up.
    pub single: Stages,
    /// Queries of the batches that are answered at once.
    pub batch: usize,
    /// Seconds of such a batch.
    pub batched: Stages,
    /// Look-ups a second in such batches.
    pub queries_per_second: f64,
    /// Seconds of a look-up with sending, as [`Wishes::latency`]: single, or in such a batch where a rate is wished.
    pub latency: f64,
}

/// A part, and the machines of its replicas.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Placed {
    /// The kind of machine.
    pub kind: String,
    /// Its share, of all weights.
    pub weight: u32,
    /// Cores of the machine.
    pub cores: usize,
    /// Bytes of its memory that the part takes with batches of [`Layout::batch`].
    pub bytes: u64,
}

/// Seconds of a batch, one stage after another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Stages {
    /// The batch goes to all parts.
    pub broadcast: f64,
    /// The slowest part opens the queries and scans.
    pub scan: f64,
    /// Its part in this that opens queries.
    pub opening: f64,
    /// What parts contribute comes to the head.
    pub gather: f64,
    /// The head finishes.
    pub finish: f64,
    /// All of it.
    pub total: f64,
}

/// A table on chosen machines.
pub(super) struct Chosen<'a> {
    cluster: &'a Cluster,
    costs: &'a TableCosts<'a>,
    /// The kind of machine of every part.
    pub(super) kinds: Vec<usize>,
    pub(super) weights: Vec<u32>,
    /// The kinds that there are, with the largest of their parts.
    largest: Vec<(usize, PartCosts)>,
    head: HeadCosts,
    /// What batches take, of every size up to the largest for which there is memory everywhere.
    pub(super) rates: Vec<Rate>,
}

/// What a batch of a size takes, and how many of them a second.
pub(super) struct Rate {
    pub(super) batch: usize,
    pub(super) stages: Stages,
    /// Look-ups a second of one head.
    of_head: f64,
    /// Look-ups a second of all parts, once each.
    of_parts: f64,
}

impl Rate {
    /// Look-ups a second.
    pub(super) fn of(&self, heads: usize, replicas: usize) -> f64 {
        f64::min(heads as f64 * self.of_head, replicas as f64 * self.of_parts)
    }

    /// Heads that so many look-ups a second take.
    pub(super) fn heads_for(&self, rate: f64) -> usize {
        (rate / self.of_head).ceil().max(1.0) as usize
    }

    /// Machines with the same part that they take.
    pub(super) fn replicas_for(&self, rate: f64) -> usize {
        (rate / self.of_parts).ceil().max(1.0) as usize
    }
}

/// How machines that are chosen are used.
pub(super) struct Way<'a> {
    pub(super) rate: &'a Rate,
    pub(super) heads: usize,
    pub(super) replicas: usize,
}

/// The share of a table that fits a machine of each kind, 0 to 1, with batches of one; `most` bytes of memory at most.
pub(super) fn room(cluster: &Cluster, costs: &TableCosts<'_>, most: u64) -> Vec<f64> {
    let fits = |kind: &MachineKind, share: f64| {
        let units = |units: usize| 0..((share * units as f64).ceil() as usize).clamp(1, units);
        let part = costs.part(&costs.units().map(units).collect::<Vec<_>>());
        costs.part_bytes(&part, 1) <= kind.memory.min(most)
    };
    let largest = |kind: &MachineKind| {
        if fits(kind, 1.0) {
            return 1.0;
        }
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..20 {
            let middle = (low + high) / 2.0;
            if fits(kind, middle) { low = middle } else { high = middle }
        }
        low
    };
    cluster.kinds.iter().map(largest).collect()
}

impl<'a> Chosen<'a> {
    /// Parts on machines of `kinds`, of the cluster's; none if these have no room for the table, or it has fewer units.
    pub(super) fn new(
        cluster: &'a Cluster,
        costs: &'a TableCosts<'a>,
        room: &[f64],
        kinds: Vec<usize>,
        most_bytes: u64,
    ) -> Option<Self> {
        if kinds.is_empty() || kinds.len() > costs.most_parts() {
            return None;
        }
        let speeds: Vec<f64> = kinds.iter().map(|&kind| 1.0 / cluster.kinds[kind].slowness()).collect();
        let rooms: Vec<f64> = kinds.iter().map(|&kind| room[kind]).collect();
        let weights = weights(&speeds, &rooms)?;
        let largest = largest(costs, &kinds, &weights);
        let head = costs.head(&weights);
        let mut chosen = Self { cluster, costs, kinds, weights, largest, head, rates: Vec::new() };
        let fits = |batch: &usize| chosen.fits(*batch, most_bytes);
        let most = costs.most_queries();
        let most = batches(most).rev().find(fits)?;
        chosen.rates = batches(most).map(|batch| chosen.rate(batch)).collect();
        Some(chosen)
    }

    fn fits(&self, batch: usize, most_bytes: u64) -> bool {
        let head = self.cluster.head_kind();
        let of_head = self.costs.head_bytes(&self.head, batch);
        let is_apart = head.heads;
        let parts = self.largest.iter().all(|(kind, part)| {
            let kind = &self.cluster.kinds[*kind];
            // A head is beside one of the parts where no machine is for it alone.
            let beside = if !is_apart && kind.name == head.name { of_head } else { 0 };
            let of_part = self.costs.part_bytes(part, batch);
            of_part + beside <= kind.memory && of_part <= most_bytes
        });
        parts && of_head <= head.memory
    }

    fn stages(&self, batch: usize) -> Stages {
        let (kind, transport) = (self.cluster.head_kind(), self.cluster.transport);
        let to_parts = (batch as u64 * self.costs.query_bytes()) as f64;
        let to_head = (batch as u64 * self.head.partial_bytes) as f64;
        let broadcast =
            transport.call + to_parts / transport.copy + self.kinds.len() as f64 * to_parts / kind.network;
        let part = |(kind, part): &(usize, PartCosts)| {
            let kind = &self.cluster.kinds[*kind];
            let opening = self.costs.opening_seconds(kind, batch);
            (opening + part.scan_seconds(kind, batch), opening)
        };
        let (scan, opening) =
            self.largest.iter().map(part).fold((0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a });
        let sent = |(kind, part): &(usize, PartCosts)| {
            (batch as u64 * part.partial_bytes) as f64 / self.cluster.kinds[*kind].network
        };
        let slowest = self.largest.iter().map(sent).fold(0.0, f64::max);
        let gather = f64::max(to_head / kind.network, slowest) + to_head / transport.copy;
        let finish = self.head.finish_seconds(kind, batch);
        // The head opens the batch while parts do.
        let apart = f64::max(broadcast + scan + gather, self.costs.opening_seconds(kind, batch));
        Stages { broadcast, scan, opening, gather, finish, total: apart + finish }
    }

    fn rate(&self, batch: usize) -> Rate {
        let (kind, transport, stages) =
            (self.cluster.head_kind(), self.cluster.transport, self.stages(batch));
        let queries = batch as f64;
        let (to_parts, to_head) =
            (queries * self.costs.query_bytes() as f64, queries * self.head.partial_bytes as f64);
        // A head computes and copies one batch while another is at the parts; it sends and receives at once.
        let computing =
            self.costs.opening_seconds(kind, batch) + stages.finish + (to_parts + to_head) / transport.copy;
        let (sending, receiving) =
            (self.kinds.len() as f64 * to_parts / kind.network, to_head / kind.network);
        let busy =
            [stages.total / in_flight(), computing, sending, receiving].into_iter().fold(0.0, f64::max);
        Rate { batch, stages, of_head: queries / busy, of_parts: queries / stages.scan }
    }

    /// Its parts, with the memory that each takes with such batches.
    pub(super) fn parts(&self, batch: usize) -> Vec<Placed> {
        let bytes = self.bytes(batch);
        let place = |(&kind, &weight): (&usize, &u32)| {
            let MachineKind { name, cores, .. } = &self.cluster.kinds[kind];
            let bytes = bytes.iter().find(|(own, _)| *own == kind).expect("of every kind").1;
            Placed { kind: name.clone(), weight, cores: *cores, bytes }
        };
        self.kinds.iter().zip(&self.weights).map(place).collect()
    }

    /// Bytes of all parts.
    pub(super) fn parts_bytes(&self, batch: usize) -> u64 {
        let of_kind = |(kind, bytes): (usize, u64)| {
            bytes * self.kinds.iter().filter(|own| **own == kind).count() as u64
        };
        self.bytes(batch).into_iter().map(of_kind).sum()
    }

    /// Bytes of the largest part of each kind.
    fn bytes(&self, batch: usize) -> Vec<(usize, u64)> {
        let of = |(kind, part): &(usize, PartCosts)| (*kind, self.costs.part_bytes(part, batch));
        self.largest.iter().map(of).collect()
    }

    /// What it comes to, without its parts; `waits` if a look-up is one of a full batch.
    pub(super) fn layout(&self, table: &Offer, wishes: &Wishes, way: &Way<'_>, waits: bool) -> Layout {
        let &Way { rate, heads, replicas } = way;
        let single = self.stages(1);
        let seconds = if waits { rate.stages.total } else { single.total };
        let (head, cluster) = (self.cluster.head_kind(), self.cluster);
        // Several heads share a machine no better than several machines: one each.
        let apart = if head.heads { heads } else { 0 };
        let prices = self.kinds.iter().map(|&kind| cluster.kinds[kind].price_hour);
        let parts_hour: Option<f64> = prices.sum();
        let heads_hour =
            if apart > 0 { head.price_hour.map(|price| apart as f64 * price) } else { Some(0.0) };
        Layout {
            table: table.clone(),
            parts: Vec::new(),
            replicas,
            heads,
            head_kind: head.name.clone(),
            head_bytes: self.costs.head_bytes(&self.head, rate.batch),
            machines: replicas * self.kinds.len() + apart,
            price_hour: parts_hour.zip(heads_hour).map(|(parts, heads)| replicas as f64 * parts + heads),
            query_bytes: self.costs.query_bytes(),
            partial_bytes: self.head.partial_bytes,
            single,
            batch: rate.batch,
            batched: rate.stages,
            queries_per_second: rate.of(heads, replicas),
            latency: wishes.latency(&Offer { seconds, ..table.clone() }),
        }
    }
}

impl Layout {
    /// Bytes of memory of all machines.
    pub fn bytes(&self) -> u64 {
        let parts: u64 = self.parts.iter().map(|part| part.bytes).sum();
        self.replicas as u64 * parts + self.heads as u64 * self.head_bytes
    }

    /// The command that puts the table in the folder `table` on a cluster so. Nodes of a kind offer a resource of its name.
    pub fn serve(&self, table: &str) -> String {
        let of_parts = |value: &dyn Fn(&Placed) -> String| joined(self.parts.iter().map(value));
        let weights = of_parts(&|part| part.weight.to_string());
        let cpus = of_parts(&|part| part.cores.to_string());
        let kinds = of_parts(&|part| part.kind.clone());
        let mut text = format!("python -m hushdb.ray serve {table} --parts {}", self.parts.len());
        if weights.contains(',') {
            text += &format!(" --weights {weights}");
        }
        text += &format!(" --replicas {} --cpus {cpus}", self.replicas);
        if kinds.contains(',') {
            text += &format!(" --nodes {kinds}");
        }
        text
    }

    /// What is to be small, of everything that counts.
    fn costs(&self) -> [f64; 8] {
        [
            self.table.bytes_up as f64,
            self.table.bytes_down as f64,
            self.table.setup_bytes() as f64,
            self.latency,
            1.0 / self.queries_per_second,
            self.price_hour.unwrap_or(self.machines as f64),
            self.bytes() as f64,
            f64::from(u8::from(self.table.linkable == Linkable::Lookups)),
        ]
    }

    /// Whether the other one is as good in everything, and better in something.
    pub(super) fn is_dominated_by(&self, other: &Self) -> bool {
        let both = || other.costs().into_iter().zip(self.costs());
        both().all(|(other, own)| other <= own * 1.01) && both().any(|(other, own)| other * 1.01 < own)
    }
}

/// What all parts have: once if it is the same, else one after another.
fn joined(all: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = all.collect();
    if all.windows(2).all(|pair| pair[0] == pair[1]) { all[0].clone() } else { all.join(",") }
}

/// The powers of two up to `most`, and `most`.
fn batches(most: usize) -> impl DoubleEndedIterator<Item = usize> {
    let powers: Vec<usize> = (0..).map(|power| 1 << power).take_while(|&batch| batch < most).collect();
    powers.into_iter().chain([most])
}

/// The largest parts of each kind: of those that have units of the same segments, what any has of each.
fn largest(costs: &TableCosts<'_>, kinds: &[usize], weights: &[u32]) -> Vec<(usize, PartCosts)> {
    let mut largest: BTreeMap<(usize, Vec<bool>), Vec<Range<usize>>> = BTreeMap::new();
    for (units, &kind) in costs.shares(weights).into_iter().zip(kinds) {
        let has = units.iter().map(|units| !units.is_empty()).collect();
        let most = largest.entry((kind, has)).or_insert_with(|| units.clone());
        for (most, units) in most.iter_mut().zip(units) {
            if units.len() > most.len() {
                *most = units;
            }
        }
    }
    largest.into_iter().map(|((kind, _), units)| (kind, costs.part(&units))).collect()
}
