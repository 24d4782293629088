//! The costs of a part of a table on a machine, and of the head: memory, and the seconds of a batch.

use std::ops::Range;

use hush_cpu::Cpu;
use hush_engine::BATCHES_IN_FLIGHT;
use hush_ops::path::{Footprint, Step, batch_bytes, largest_batch};
use hush_protocol::{any_page::TableParams, facts::FileSpec, share::shares};

use super::{super::Machine, node::Node};

/// The bytes of a process beside its table: Python, Ray, and the connections of clients.
const PROCESS_BYTES: u64 = 512 << 20;
/// The copies of a partial that the head holds at once: as received, as words, and joined to the other parts' partials.
const COPIES: u64 = 3;
/// The bytes of a word.
const WORD: u64 = size_of::<u32>() as u64;

/// Returns the bytes of memory that each part of a table takes on its machine, for parts of these weights. They include the keys
/// of `clients` clients, and batches of `batch` queries.
///
/// # Panics
/// If all weights are 0.
pub fn part_bytes(table: &TableParams, weights: &[u32], clients: usize, batch: usize) -> Vec<u64> {
    let costs = TableCosts::new(table, Machine::reference(), clients);
    costs.shares(weights).iter().map(|units| costs.part_bytes(&costs.part(units), batch)).collect()
}

/// The costs of a table that do not depend on its parts.
pub(super) struct TableCosts<'a> {
    table: &'a TableParams,
    profile: &'a Machine,
    opening: Vec<Step>,
    /// The bytes of the keys of all clients.
    keys: u64,
}

/// The costs of a part, which has units of the table's segments, or of the largest of several parts.
pub(super) struct PartCosts {
    held: u64,
    paths: Vec<Vec<Step>>,
    /// The bytes that the part contributes to each query's answer.
    pub(super) partial_bytes: u64,
}

/// The costs of the head.
pub(super) struct HeadCosts {
    held: u64,
    paths: Vec<Vec<Step>>,
    /// The bytes that all parts contribute to each query's answer.
    pub(super) partial_bytes: u64,
}

impl<'a> TableCosts<'a> {
    /// Returns the costs of a table, with the times of steps in `profile`.
    pub(super) fn new(table: &'a TableParams, profile: &'a Machine, clients: usize) -> Self {
        let keys = table.facts().keys.map_or(0, |ring| clients * <Cpu as Footprint>::keys(&ring));
        Self { table, profile, opening: table.base().opening(), keys: keys as u64 }
    }

    /// Returns the bytes of a query, as it is sent to parts.
    pub(super) fn query_bytes(&self) -> u64 {
        self.table.facts().query.total() as u64
    }

    /// Returns the maximum number of parts: each has at least one unit of the base.
    pub(super) fn most_parts(&self) -> usize {
        self.table.base().facts().units
    }

    /// Returns the resident bytes of the whole table.
    pub(super) fn whole_bytes(&self) -> u64 {
        self.shares(&[1]).first().map_or(0, |units| self.part(units).held)
    }

    /// Returns the units of every segment, for each of the parts with these weights.
    pub(super) fn shares(&self, weights: &[u32]) -> Vec<Vec<Range<usize>>> {
        shares(weights, &self.table.scanned())
    }

    /// Returns the costs of a part with these units of every segment.
    pub(super) fn part(&self, units: &[Range<usize>]) -> PartCosts {
        let own = self.table.segments().iter().zip(units).filter(|(_, units)| !units.is_empty());
        let facts: Vec<_> = own.map(|(segment, units)| segment.part(units)).collect();
        PartCosts {
            held: facts.iter().flat_map(|part| &part.files).map(resident).sum(),
            partial_bytes: facts.iter().map(|part| WORD * part.words as u64).sum(),
            paths: facts.into_iter().map(|part| part.steps).collect(),
        }
    }

    /// Returns the costs of the head, for parts of these weights.
    pub(super) fn head(&self, weights: &[u32]) -> HeadCosts {
        let mut head = HeadCosts { held: 0, paths: Vec::new(), partial_bytes: 0 };
        let shares = self.shares(weights);
        for (number, segment) in self.table.segments().iter().enumerate() {
            let own = shares.iter().map(|units| units[number].clone());
            let parts: Vec<_> = own.filter(|units| !units.is_empty()).collect();
            let facts = segment.head(&parts);
            head.held += facts.files.iter().map(resident).sum::<u64>();
            head.partial_bytes +=
                parts.iter().map(|units| WORD * segment.part(units).words as u64).sum::<u64>();
            head.paths.push(facts.steps);
        }
        head
    }

    /// Returns the largest batch that a server answers.
    pub(super) fn most_queries(&self) -> usize {
        let segments = self.table.segments().iter();
        segments.map(|segment| largest_batch::<Cpu>(&segment.path(), usize::MAX)).min().unwrap_or(1)
    }

    /// Returns the bytes of memory that a part takes on its machine, with the maximum of batches of `batch` queries in flight.
    pub(super) fn part_bytes(&self, part: &PartCosts, batch: usize) -> u64 {
        let messages = batch as u64 * (2 * self.query_bytes() + 2 * part.partial_bytes);
        self.bytes(part.held, &part.paths, messages, batch)
    }

    /// Returns the bytes of memory that the head takes, with as many batches in flight.
    pub(super) fn head_bytes(&self, head: &HeadCosts, batch: usize) -> u64 {
        let messages = batch as u64 * (3 * self.query_bytes() + COPIES * head.partial_bytes);
        self.bytes(head.held, &head.paths, messages, batch)
    }

    fn bytes(&self, held: u64, paths: &[Vec<Step>], messages: u64, batch: usize) -> u64 {
        // Segments are answered one after another. The opened queries of a batch stay in memory for all of them.
        let steps = paths.iter().map(|path| batch_bytes::<Cpu>(path, batch)).max().unwrap_or(0);
        let working = (batch_bytes::<Cpu>(&self.opening, batch) + steps) as u64 + messages;
        PROCESS_BYTES + held + self.keys + BATCHES_IN_FLIGHT as u64 * working
    }

    /// Returns the seconds in which a machine opens a batch.
    pub(super) fn opening_seconds(&self, node: &Node, batch: usize) -> f64 {
        self.seconds(node, &[self.opening.as_slice()], batch)
    }

    /// Returns the seconds in which a machine opens a batch and scans its part.
    pub(super) fn scan_seconds(&self, node: &Node, part: &PartCosts, batch: usize) -> f64 {
        self.opening_seconds(node, batch) + self.seconds(node, &part.paths, batch)
    }

    /// Returns the seconds in which a machine finishes a batch.
    pub(super) fn finish_seconds(&self, node: &Node, head: &HeadCosts, batch: usize) -> f64 {
        self.seconds(node, &head.paths, batch)
    }

    fn seconds(&self, node: &Node, paths: &[impl AsRef<[Step]>], batch: usize) -> f64 {
        let steps = paths.iter().flat_map(AsRef::as_ref);
        node.slowness(self.profile) * steps.map(|step| self.profile.step_seconds(step, batch)).sum::<f64>()
    }
}

fn resident(file: &FileSpec) -> u64 {
    <Cpu as Footprint>::resident(&file.content) as u64
}
