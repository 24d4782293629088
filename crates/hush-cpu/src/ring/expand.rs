//! Expansion of a query: a tree of Subs, the bottom rows of RGSW ciphertexts, and the drop of a prime.
//!
//! ```text
//! node c of a level:  c' = Subs(c, key of the level);   even child = c + c',   odd child = (c - c') X^(-2^level)
//! ```
//!
//! The upper nodes are made level by level. Below them, each subtree is one unit of work that goes depth first, so that its
//! nodes stay in cache, and finishes every leaf at once.

use hush_he::entities::RlweCiphertext;
use hush_ops::{
    contract::{BatchWords, Expanded, RlweBatch},
    steps::poly_bytes,
};
use rayon::prelude::*;

use super::{
    gadget::{
        gadget_product,
        scratch::{self, Scratch},
    },
    keys::CpuKeys,
    tables::CpuRing,
};
use crate::{Cpu, buffer_pool::LentBuffer, footprint::EXPANDED_QUERIES, kernels::end_stream};

/// The number of units of work for each thread.
const UNITS: usize = 4;

/// The destination of a leaf, modulo Q_1.
enum Leaf<'a> {
    Selector(&'a mut [u32]),
    /// A row of an RGSW ciphertext, and the row that is made of it by the key for s^2.
    Row {
        bottom: &'a mut [u32],
        top: &'a mut [u32],
    },
}

/// Computes [`hush_ops::contract::RingOps::expand`] for operands that fit together.
pub(super) fn expand(
    cpu: &Cpu,
    ring: &CpuRing,
    keys: &CpuKeys,
    query: &RlweCiphertext,
    (rows, folds): (usize, usize),
) -> Expanded {
    let ciphertext_words = 2 * ring.kept.words();
    let digits = ring.fold.digits;
    let batch = |words: BatchWords| RlweBatch { ciphertext_words, words };
    let mut selectors =
        batch(BatchWords::lent(LentBuffer::new(cpu.batch_buffers(), rows * ciphertext_words)));
    let mut bits: Vec<_> = (0..folds).map(|_| batch(vec![0; 2 * digits * ciphertext_words].into())).collect();
    let mut leaves: Vec<_> = selectors.words.chunks_exact_mut(ciphertext_words).map(Leaf::Selector).collect();
    for bit in &mut bits {
        let (bottom, top) = bit.words.split_at_mut(digits * ciphertext_words);
        let rows = bottom.chunks_exact_mut(ciphertext_words).zip(top.chunks_exact_mut(ciphertext_words));
        leaves.extend(rows.map(|(bottom, top)| Leaf::Row { bottom, top }));
    }
    let expansion = Expansion { cpu, ring, keys };
    cpu.install(|| expansion.run(query, &mut leaves));
    Expanded { selectors, bits }
}

/// The operands of one expansion.
struct Expansion<'a> {
    cpu: &'a Cpu,
    ring: &'a CpuRing,
    keys: &'a CpuKeys,
}

impl Expansion<'_> {
    /// Returns the words of a node.
    fn node_words(&self) -> usize {
        2 * self.ring.full.words()
    }

    /// Returns the number of leaves below a node of `level`.
    fn leaves_below(&self, level: usize) -> usize {
        1 << (self.ring.levels.len() - level)
    }

    fn run(&self, query: &RlweCiphertext, leaves: &mut [Leaf<'_>]) {
        let words = self.node_words();
        let levels = self.ring.levels.len();
        let units = if self.cpu.threads() == 1 { 1 } else { UNITS * self.cpu.threads() };
        let pool = self.cpu.ring_buffers();
        let [mut nodes, mut next] = [(); 2].map(|()| pool.take(2 * units * words));
        nodes[..words / 2].copy_from_slice(query.a.words());
        nodes[words / 2..words].copy_from_slice(query.b.words());
        let mut level = 0;
        let mut count = 1;
        while level < levels && count < units {
            self.next_level(level, &mut nodes[..count * words], &mut next);
            std::mem::swap(&mut nodes, &mut next);
            level += 1;
            count = leaves.len().div_ceil(self.leaves_below(level));
        }
        let subtrees = leaves.par_chunks_mut(self.leaves_below(level));
        nodes.par_chunks_exact_mut(words).zip(subtrees).with_max_len(1).for_each(|(node, leaves)| {
            self.with_scratch(|scratch, stack| self.descend(level, node, stack, leaves, scratch));
            // Dropping a prime stores past the caches.
            end_stream();
        });
        pool.give_back(nodes);
        pool.give_back(next);
    }

    /// Makes both children of each of the nodes of `level`.
    fn next_level(&self, level: usize, nodes: &mut [u32], children: &mut [u32]) {
        let words = self.node_words();
        let work = nodes.par_chunks_exact_mut(words).zip(children.par_chunks_exact_mut(2 * words));
        work.with_max_len(1).for_each(|(node, children)| {
            self.with_scratch(|scratch, _| {
                let (even, odd) = children.split_at_mut(words);
                self.split(level, node, even, scratch);
                odd.copy_from_slice(node);
            });
        });
    }

    /// Lends `work` scratch memory, and memory for a node of every level.
    fn with_scratch(&self, work: impl FnOnce(&mut Scratch<'_>, &mut [u32])) {
        let stack = self.ring.levels.len() * self.node_words();
        self.cpu.with_workspace(|workspace| {
            let rows = scratch::expand_rows(self.ring);
            let (mut scratch, stack) = Scratch::new(workspace, &self.ring.full, rows, stack);
            work(&mut scratch, stack);
        });
    }

    /// Makes the leaves below `node`, depth first. Overwrites `node`.
    fn descend(
        &self,
        level: usize,
        node: &mut [u32],
        stack: &mut [u32],
        leaves: &mut [Leaf<'_>],
        scratch: &mut Scratch<'_>,
    ) {
        if level == self.ring.levels.len() {
            return self.finish(node, &mut leaves[0], scratch);
        }
        let (even, stack) = stack.split_at_mut(self.node_words());
        self.split(level, node, even, scratch);
        let (first, second) = leaves.split_at_mut(self.leaves_below(level + 1).min(leaves.len()));
        self.descend(level + 1, even, stack, first, scratch);
        if !second.is_empty() {
            self.descend(level + 1, node, stack, second, scratch);
        }
    }

    /// Runs one Subs: `even = c + c'`, and `node`, which was c, becomes `(c - c') X^(-2^level)`.
    fn split(&self, level: usize, node: &mut [u32], even: &mut [u32], scratch: &mut Scratch<'_>) {
        let ring = &self.ring.full;
        let degree = self.ring.full.degree();
        let poly = self.ring.full.words();
        let tables = &self.ring.levels[level];
        let (a, b) = node.split_at(poly);
        for (from, to) in a.chunks_exact(degree).zip(scratch.coefficients.chunks_exact_mut(degree)) {
            tables.automorphism.apply(from, to);
        }
        gadget_product::decompose(ring, &tables.gadget, scratch, 0);
        for (from, to) in b.chunks_exact(degree).zip(even[poly..].chunks_exact_mut(degree)) {
            tables.automorphism.apply(from, to);
        }
        let rows = self.keys.level(level);
        let mut children = tables.monomial.children(ring, even, node);
        gadget_product::multiply(ring, rows, tables.gadget.half, scratch, &mut children);
    }

    /// Writes a leaf to its destination, modulo Q_1.
    fn finish(&self, node: &[u32], leaf: &mut Leaf<'_>, scratch: &mut Scratch<'_>) {
        match leaf {
            Leaf::Selector(selector) => self.drop_prime(node, selector, scratch),
            Leaf::Row { bottom, top } => {
                self.drop_prime(node, top, scratch);
                let ring = &self.ring.full;
                let gadget = &self.ring.square;
                let (a, b) = node.split_at(ring.words());
                scratch.coefficients.copy_from_slice(a);
                gadget_product::decompose(ring, gadget, scratch, 0);
                // (a', b') = KS(a), a' += b
                let row = std::mem::take(&mut scratch.pair);
                let (row_a, row_b) = row.split_at_mut(ring.words());
                row_a.copy_from_slice(b);
                row_b.fill(0);
                gadget_product::multiply_add(ring, self.keys.square(), gadget.half, scratch, row);
                self.drop_prime(row, bottom, scratch);
                scratch.pair = row;
            }
        }
    }

    fn drop_prime(&self, from: &[u32], to: &mut [u32], scratch: &mut Scratch<'_>) {
        let full = &self.ring.full;
        let kept = &self.ring.kept;
        let Some(drop) = &self.ring.drop else {
            return to.copy_from_slice(from);
        };
        let (rest, centred) = scratch.values.split_at_mut(full.degree());
        for (from, to) in from.chunks_exact(full.words()).zip(to.chunks_exact_mut(kept.words())) {
            drop.apply(full, from, to, [rest, &mut centred[..full.degree()]], scratch.transform);
        }
    }
}

hush_ops::footprint!(Cpu: Expand, up to EXPANDED_QUERIES, |step, batch| {
    // Selectors are counted with the database that they meet.
    batch * step.folds * 4 * step.ring.fold_gadget().digits * poly_bytes(&step.ring)
});
