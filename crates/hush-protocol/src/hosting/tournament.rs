//! Folds entries to one across parts: a part executes the rounds among its own entries, the head the last rounds.
//!
//! The rounds of [`RingOps::rgsw_fold`] are a binary tree over the entries. The entries of a part are a few whole subtrees
//! (*nodes*), and the part computes their roots. The head folds these with their siblings, which are in other parts. Every
//! fold is executed once, by the part or the head that has both operands, so the result is the same bit for bit for every
//! division into parts. Source: PPIR (algorithms 3 to 6), GPIR (section 6).

use std::{collections::BTreeMap, ops::Range};

use hush_he::params::RingParams;
use hush_ops::{
    OpsError,
    contract::{EntryOrder, RingOps, RlweBatch},
    path::Step,
    steps::RgswFold,
};

use crate::page::Partial;

/// The fold of all entries of a table to one, with the backend and the ring that execute it.
pub(crate) struct Tournament<'a, B: RingOps> {
    pub(crate) backend: &'a B,
    pub(crate) ring: &'a B::Ring,
    /// The number of entries of the whole table.
    pub(crate) entries: usize,
    /// The number of planes of an entry.
    pub(crate) planes: usize,
    /// The number of words of a ciphertext.
    pub(crate) ciphertext_words: usize,
}

/// A subtree: the entries from `index 2^level` on, up to `2^level` of them as far as the table has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Node {
    level: usize,
    index: usize,
}

impl Node {
    fn entries(self, all: usize) -> Range<usize> {
        (self.index << self.level).min(all)..((self.index + 1) << self.level).min(all)
    }
}

/// Returns the number of rounds that fold `entries` entries to one.
fn rounds(entries: usize) -> usize {
    entries.next_power_of_two().ilog2() as usize
}

/// Returns the nodes of the part `units` of a table with `entries` entries, in the order of the entries. The last part is
/// extended to a power of two with absent entries.
fn nodes(entries: usize, units: &Range<usize>) -> Vec<Node> {
    let end = if units.end == entries { 1 << rounds(entries) } else { units.end };
    let mut nodes = Vec::new();
    let mut first = units.start;
    while first < end {
        let aligned = if first == 0 { rounds(entries) } else { first.trailing_zeros() as usize };
        let fits = (end - first).ilog2() as usize;
        let node = Node { level: aligned.min(fits), index: first >> aligned.min(fits) };
        first += 1 << node.level;
        if !node.entries(entries).is_empty() {
            nodes.push(node);
        }
    }
    nodes
}

/// Returns the number of ciphertexts per plane that a part sends to the head: the roots of its nodes.
pub(crate) fn roots(entries: usize, units: &Range<usize>) -> usize {
    nodes(entries, units).len()
}

/// Returns the step of a part's rounds, or of the rounds in which the head folds `entries` roots to one.
pub(crate) fn folds(ring: RingParams, entries: usize, planes: usize, parts: usize) -> Step {
    Step::of_batch(RgswFold { ring, entries, planes, parts })
}

/// Returns the step of the last rounds, or `None` if there is one part, which executes all rounds.
pub(crate) fn last_folds(
    ring: RingParams,
    entries: usize,
    planes: usize,
    parts: &[Range<usize>],
) -> Option<Step> {
    let roots = parts.iter().map(|units| roots(entries, units)).sum();
    (parts.len() > 1).then(|| folds(ring, roots, planes, 1))
}

impl<B: RingOps> Tournament<'_, B> {
    fn rounds(&self) -> usize {
        rounds(self.entries)
    }

    fn nodes(&self, units: &Range<usize>) -> Vec<Node> {
        nodes(self.entries, units)
    }

    /// Executes a part's rounds. Folds the entries `units` of each query, in `order`, to the roots of their nodes, `[node][plane]`.
    ///
    /// # Errors
    /// [`OpsError::Shape`] if the number of entries or of bits is wrong.
    pub(crate) fn play(
        &self,
        units: &Range<usize>,
        entries: &[&RlweBatch<B::Words>],
        order: EntryOrder,
        bits: &[&[RlweBatch<B::Words>]],
    ) -> Result<Vec<B::Words>, OpsError> {
        let nodes = self.nodes(units);
        let roots: Vec<Vec<RlweBatch<B::Words>>> = match nodes[..] {
            [_] => vec![self.backend.rgsw_fold(
                self.ring,
                entries,
                self.planes,
                order,
                &self.bits(bits, nodes[0]),
            )?],
            _ => nodes
                .iter()
                .map(|&node| self.root(node, units, entries, order, bits))
                .collect::<Result<_, _>>()?,
        };
        self.by_query(entries.len(), roots)
    }

    /// Returns the root of a node. The part has several nodes, so the entries of the node are copied out first.
    fn root(
        &self,
        node: Node,
        units: &Range<usize>,
        entries: &[&RlweBatch<B::Words>],
        order: EntryOrder,
        bits: &[&[RlweBatch<B::Words>]],
    ) -> Result<Vec<RlweBatch<B::Words>>, OpsError> {
        let own = node.entries(self.entries);
        let picked = entries
            .iter()
            .map(|batch: &&RlweBatch<B::Words>| {
                let ranges = own
                    .clone()
                    .flat_map(|entry| (0..self.planes).map(move |plane| (entry, plane)))
                    .map(|(entry, plane)| {
                        let index = order.index(entry - units.start, plane, units.len(), self.planes);
                        let first = index * self.ciphertext_words;
                        (&batch.words, first..first + self.ciphertext_words)
                    });
                self.backend.join(&ranges.collect::<Vec<_>>()).map(|words| self.batch(words))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let picked: Vec<_> = picked.iter().collect();
        self.backend.rgsw_fold(
            self.ring,
            &picked,
            self.planes,
            EntryOrder::EntryMajor,
            &self.bits(bits, node),
        )
    }

    /// Executes the last rounds. Folds the nodes of all parts to one ciphertext per plane, for each query.
    ///
    /// # Errors
    /// [`OpsError::Shape`] if the parts do not cover the whole table.
    pub(crate) fn finish(
        &self,
        bits: &[&[RlweBatch<B::Words>]],
        partials: Vec<Partial<B::Words>>,
    ) -> Result<Vec<RlweBatch<B::Words>>, OpsError> {
        let words = self.planes * self.ciphertext_words;
        let mut nodes: BTreeMap<Node, Vec<B::Words>> = BTreeMap::new();
        for partial in partials {
            let own = self.nodes(&partial.units);
            if own.len() == 1 {
                nodes.insert(own[0], partial.words);
                continue;
            }
            for (place, node) in own.into_iter().enumerate() {
                let range = place * words..(place + 1) * words;
                nodes.insert(
                    node,
                    partial
                        .words
                        .iter()
                        .map(|query: &B::Words| self.backend.join(&[(query, range.clone())]))
                        .collect::<Result<_, _>>()?,
                );
            }
        }
        for level in 0..self.rounds() {
            while let Some((node, left)) = pop(&mut nodes, level) {
                let right = nodes.remove(&Node { level, index: node.index + 1 });
                let parent = Node { level: level + 1, index: node.index / 2 };
                let round: Vec<_> = bits.iter().map(|bits| &bits[level..=level]).collect();
                let met = self.meet(left, right, &round)?;
                nodes.insert(parent, met.into_iter().map(|batch| batch.words).collect());
            }
        }
        let (_, root) = nodes.pop_first().unwrap_or((Node { level: 0, index: 0 }, Vec::new()));
        Ok(root.into_iter().map(|words| self.batch(words)).collect())
    }

    /// Folds two siblings, or `left` with zero if there is no right sibling.
    fn meet(
        &self,
        left: Vec<B::Words>,
        right: Option<Vec<B::Words>>,
        bits: &[&[RlweBatch<B::Words>]],
    ) -> Result<Vec<RlweBatch<B::Words>>, OpsError> {
        let words = self.planes * self.ciphertext_words;
        let pairs = left
            .iter()
            .enumerate()
            .map(|(query, left): (usize, &B::Words)| {
                let right = right.as_ref().map(|right| (&right[query], 0..words));
                let both: Vec<_> = std::iter::once((left, 0..words)).chain(right).collect();
                self.backend.join(&both).map(|words| self.batch(words))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let pairs: Vec<_> = pairs.iter().collect();
        self.backend.rgsw_fold(self.ring, &pairs, self.planes, EntryOrder::EntryMajor, bits)
    }

    /// Returns the bits of the rounds within a node.
    fn bits<'b>(&self, bits: &[&'b [RlweBatch<B::Words>]], node: Node) -> Vec<&'b [RlweBatch<B::Words>]> {
        bits.iter().map(|bits| &bits[..node.level]).collect()
    }

    fn by_query(
        &self,
        queries: usize,
        mut roots: Vec<Vec<RlweBatch<B::Words>>>,
    ) -> Result<Vec<B::Words>, OpsError> {
        if roots.len() == 1 {
            return Ok(roots.remove(0).into_iter().map(|batch| batch.words).collect());
        }
        let words = self.planes * self.ciphertext_words;
        (0..queries)
            .map(|query: usize| {
                let parts: Vec<_> = roots.iter().map(|root| (&root[query].words, 0..words)).collect();
                self.backend.join(&parts)
            })
            .collect()
    }

    fn batch(&self, words: B::Words) -> RlweBatch<B::Words> {
        RlweBatch { ciphertext_words: self.ciphertext_words, words }
    }
}

/// Removes and returns the first node of a level. It is a left sibling, because a right one comes after its sibling.
fn pop<W>(nodes: &mut BTreeMap<Node, Vec<W>>, level: usize) -> Option<(Node, Vec<W>)> {
    let (&node, _) = nodes.range(Node { level, index: 0 }..Node { level: level + 1, index: 0 }).next()?;
    nodes.remove_entry(&node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_whole_subtrees() {
        let nodes = |entries, units: Range<usize>| {
            nodes(entries, &units).into_iter().map(|node| (node.level, node.index)).collect::<Vec<_>>()
        };
        assert_eq!(nodes(8, 0..8), [(3, 0)]);
        assert_eq!(nodes(8, 0..3), [(1, 0), (0, 2)]);
        assert_eq!(nodes(8, 3..8), [(0, 3), (2, 1)]);
        assert_eq!(nodes(5, 0..5), [(3, 0)]);
        assert_eq!(nodes(5, 4..5), [(2, 1)]);
        assert_eq!(nodes(6, 5..6), [(0, 5)], "the node beyond the last entry is not there");
        assert_eq!(nodes(1, 0..1), [(0, 0)]);
        assert_eq!(nodes(7, 1..7), [(0, 1), (1, 1), (2, 1)]);
    }
}
