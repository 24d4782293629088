//! The layout of a table in parts on given machines, with the costs of a batch of look-ups.

use std::ops::Range;

use hush_engine::BATCHES_IN_FLIGHT;
use serde::Serialize;

use super::{
    super::{Offer, Wishes},
    costs::{HeadCosts, PartCosts, TableCosts},
    node::{CALL, COPY, Node, weights},
    wishes::ClusterWishes,
};

/// A table in parts on some machines, with its costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Layout {
    /// The table, with its costs on one machine.
    pub table: Offer,
    /// The parts, in order.
    pub parts: Vec<Placed>,
    /// The number of machines that have the same part.
    pub replicas: usize,
    /// The number of processes that pass batches to parts and finish answers. Each is on the machine of a part.
    pub heads: usize,
    /// The bytes of memory of a head.
    pub head_bytes: u64,
    /// The number of machines.
    pub machines: usize,
    /// The bytes of a query that are sent to every part.
    pub query_bytes: u64,
    /// The bytes that all parts together send for a query.
    pub partial_bytes: u64,
    /// The seconds of a single look-up.
    pub single: Stages,
    /// The number of queries in a batch.
    pub batch: usize,
    /// The seconds of such a batch.
    pub batched: Stages,
    /// The look-ups a second in such batches.
    pub queries_per_second: f64,
    /// The seconds of a look-up with sending, as in [`Wishes::latency`]: in a batch if a rate is wished, else single.
    pub latency: f64,
    /// The seconds of that look-up without sending.
    pub seconds: f64,
}

/// A part, with the kind of machine that its replicas are on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Placed {
    /// The kind of machine.
    pub kind: String,
    /// The weight of the part among all weights.
    pub weight: u32,
    /// The cores of the machine.
    pub cores: usize,
    /// The bytes of memory that the part takes on the machine, with batches of [`Layout::batch`] queries.
    pub bytes: u64,
}

/// The seconds of a batch, stage by stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Stages {
    /// The seconds in which the batch is sent to all parts.
    pub broadcast: f64,
    /// The seconds in which the slowest part opens the queries and scans.
    pub scan: f64,
    /// The seconds in which the parts' contributions reach the head.
    pub gather: f64,
    /// The seconds in which the head finishes the answers.
    pub finish: f64,
    /// The seconds of all stages.
    pub total: f64,
}

/// A table in parts, each on its machine.
pub(super) struct Parts<'a> {
    costs: &'a TableCosts<'a>,
    nodes: Vec<Node>,
    weights: Vec<u32>,
    /// The distinct machines, each with an upper bound of the parts on it.
    largest: Vec<(Node, PartCosts)>,
    head: HeadCosts,
}

impl<'a> Parts<'a> {
    /// Places a part on each of `nodes`. The shares have the weights `own`, or weights in proportion to the cores. There has to
    /// be at least one node, and at most as many as the table has units.
    pub(super) fn new(costs: &'a TableCosts<'a>, nodes: Vec<Node>, own: Option<&[u32]>) -> Self {
        let weights = own.map_or_else(|| weights(&nodes), <[u32]>::to_vec);
        let mut largest: Vec<(Node, Vec<Range<usize>>)> = Vec::new();
        for (units, node) in costs.shares(&weights).into_iter().zip(&nodes) {
            match largest.iter_mut().find(|(kind, _)| kind == node) {
                // Takes the longest range of each segment: an upper bound for every part on such a machine.
                Some((_, most)) => most.iter_mut().zip(units).for_each(|(most, units)| {
                    if units.len() > most.len() {
                        *most = units;
                    }
                }),
                None => largest.push((*node, units)),
            }
        }
        let largest = largest.into_iter().map(|(node, units)| (node, costs.part(&units))).collect();
        let head = costs.head(&weights);
        Self { costs, nodes, weights, largest, head }
    }

    /// Returns the machine of a head: the one with the most cores.
    fn head_node(&self) -> &Node {
        self.nodes.iter().max_by_key(|node| node.cores).expect("there is a part")
    }

    /// Returns the bytes of memory that a machine lacks for its part, and for a head if it may have one, with batches of `batch`
    /// queries. Returns the largest lack; 0 if all machines have enough.
    pub(super) fn lacking(&self, batch: usize) -> u64 {
        let of_head = self.costs.head_bytes(&self.head, batch);
        self.largest
            .iter()
            .map(|(node, part): &(Node, PartCosts)| {
                let beside = if node == self.head_node() { of_head } else { 0 };
                (self.costs.part_bytes(part, batch) + beside).saturating_sub(node.memory)
            })
            .max()
            .unwrap_or(0)
    }

    /// Returns a layout for every batch size that fits the memory: the powers of two, and the largest batch of a server. Each has
    /// the replicas and heads that the wished rate takes.
    pub(super) fn layouts(&self, table: &Offer, wishes: &Wishes, wanted: &ClusterWishes) -> Vec<Layout> {
        let most = self.costs.most_queries();
        let powers = (0..).map(|power| 1 << power).take_while(|&batch| batch < most).chain([most]);
        let fitting = powers.take_while(|&batch| self.lacking(batch) == 0);
        fitting.map(|batch| self.layout(table, wishes, wanted, batch)).collect()
    }

    fn stages(&self, batch: usize) -> Stages {
        let costs = self.costs;
        let network = self.head_node().network;
        let to_parts = (batch as u64 * costs.query_bytes()) as f64;
        let to_head = (batch as u64 * self.head.partial_bytes) as f64;
        let broadcast = CALL + to_parts / COPY + self.nodes.len() as f64 * to_parts / network;
        let largest = || self.largest.iter();
        let scan = largest().map(|(node, part)| costs.scan_seconds(node, part, batch)).fold(0.0, f64::max);
        let sent =
            |(node, part): &(Node, PartCosts)| (batch as u64 * part.partial_bytes) as f64 / node.network;
        let slowest = largest().map(sent).fold(0.0, f64::max);
        let gather = f64::max(to_head / network, slowest) + to_head / COPY;
        let finish = costs.finish_seconds(self.head_node(), &self.head, batch);
        // The head opens the batch at the same time as the parts.
        let apart = f64::max(broadcast + scan + gather, costs.opening_seconds(self.head_node(), batch));
        Stages { broadcast, scan, gather, finish, total: apart + finish }
    }

    /// Returns the look-ups a second of one head, and those of one replica of all parts.
    fn rates(&self, batch: usize, stages: &Stages) -> [f64; 2] {
        let costs = self.costs;
        let node = self.head_node();
        let queries = batch as f64;
        let to_parts = queries * costs.query_bytes() as f64;
        let to_head = queries * self.head.partial_bytes as f64;
        // A head computes and copies one batch while another is at the parts. It sends and receives at the same time.
        let computing = costs.opening_seconds(node, batch) + stages.finish + (to_parts + to_head) / COPY;
        let sending = self.nodes.len() as f64 * to_parts / node.network;
        let in_flight = BATCHES_IN_FLIGHT as f64;
        let busy = [stages.total / in_flight, computing, sending, to_head / node.network];
        [queries / busy.into_iter().fold(0.0, f64::max), queries / stages.scan]
    }

    /// Returns the layout for batches of `batch` queries.
    fn layout(&self, table: &Offer, wishes: &Wishes, wanted: &ClusterWishes, batch: usize) -> Layout {
        let single = self.stages(1);
        let batched = self.stages(batch);
        let [of_head, of_parts] = self.rates(batch, &batched);
        let needed = |one: f64| wanted.rate.map_or(1, |rate| (rate / one).ceil().max(1.0) as usize);
        let heads = needed(of_head);
        // A head is on the machine of a part, so there are at most as many heads as machines.
        let replicas = wanted.replicas.max(needed(of_parts)).max(heads.div_ceil(self.nodes.len()));
        let seconds = if wanted.rate.is_some() { batched.total } else { single.total };
        Layout {
            table: table.clone(),
            parts: self
                .nodes
                .iter()
                .zip(&self.weights)
                .map(|(node, &weight): (&Node, &u32)| {
                    let (_, part) =
                        self.largest.iter().find(|(kind, _)| kind == node).expect("of every kind");
                    Placed {
                        kind: node.kind(),
                        weight,
                        cores: node.cores,
                        bytes: self.costs.part_bytes(part, batch),
                    }
                })
                .collect(),
            replicas,
            heads,
            head_bytes: self.costs.head_bytes(&self.head, batch),
            machines: replicas.saturating_mul(self.nodes.len()),
            query_bytes: self.costs.query_bytes(),
            partial_bytes: self.head.partial_bytes,
            single,
            batch,
            batched,
            queries_per_second: f64::min(heads as f64 * of_head, replicas as f64 * of_parts),
            latency: wishes.latency(&Offer { seconds, ..table.clone() }),
            seconds,
        }
    }
}

impl Layout {
    /// Returns the bytes of memory of all machines.
    pub fn bytes(&self) -> u64 {
        let parts: u64 = self.parts.iter().map(|part| part.bytes).sum();
        let heads = (self.heads as u64).saturating_mul(self.head_bytes);
        (self.replicas as u64).saturating_mul(parts).saturating_add(heads)
    }

    /// Returns the table as an offer with the costs of the whole cluster, for goals and budgets.
    pub(super) fn as_offer(&self) -> Offer {
        let server_bytes = self.bytes();
        let seconds = self.seconds;
        Offer { server_bytes, seconds, queries_per_second: self.queries_per_second, ..self.table.clone() }
    }

    /// Returns the command that serves the table in the folder `table` on a cluster with this layout. Each node has to offer a Ray
    /// resource with the name of its kind.
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
}

/// Joins the values of all parts: one value if they are equal, else a list with commas.
fn joined(all: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = all.collect();
    if all.windows(2).all(|pair| pair[0] == pair[1]) { all[0].clone() } else { all.join(",") }
}
