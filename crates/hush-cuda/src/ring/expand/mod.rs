//! Expansion of queries: a tree of Subs, the bottom rows of RGSW ciphertexts, and the drop of a prime.
//!
//! The tree runs level by level, for all nodes of all queries. A level is one launch if one kernel computes the whole stage, and
//! two otherwise. The whole-stage kernel of the last level also drops the prime of the selectors. Kernels of single operations
//! cannot: a leaf is rounded by its residues modulo the dropped prime, which another block has.

use hush_he::entities::RlweCiphertext;
use hush_ops::{
    OpsError,
    contract::{Expanded, RlweBatch},
    steps::{Expand, poly_bytes},
};

mod drop_prime;
pub(super) mod private_key_switch;

use drop_prime::drop_prime;

use super::{
    CudaRing,
    keys::{CudaKeys, full_limbs, key_at},
    stages::{Stage, Stages},
    tables::{addresses::addresses, gadget::GadgetTables},
};
use crate::{
    Cuda,
    device::{Arg, Buffer, Device, MAX_GRID, Slice},
};

/// The bytes of the nodes of two levels on the device at once, for more than one query.
const TREE_BYTES: usize = 2 << 30;

/// The kernels that compute a whole level.
const WHOLE: [&str; 4] = ["expand_stage_6", "expand_stage_8", "expand_stage_11", "expand_stage_12"];
/// The kernels that compute the last level and drop a prime.
const LEAVES: [&str; 4] = ["expand_leaves_6", "expand_leaves_8", "expand_leaves_11", "expand_leaves_12"];

/// Runs [`hush_ops::contract::RingOps::expand`] for the queries of a batch together. [`TREE_BYTES`] bounds the queries that are
/// expanded at once.
pub(super) fn expand(
    cuda: &Cuda,
    ring: &CudaRing,
    keys: &[&CudaKeys],
    queries: &[RlweCiphertext],
    rows: usize,
    folds: usize,
) -> Result<Vec<Expanded<Buffer<u32>>>, OpsError> {
    let params = ring.context().params();
    let node_bytes = 2 * ring.full().poly_words() * size_of::<u32>();
    let at_once = queries_at_once(params.leaves(rows, folds), node_bytes, folds);
    let mut expanded = Vec::with_capacity(queries.len());
    for (keys, queries) in keys.chunks(at_once).zip(queries.chunks(at_once)) {
        let device = cuda.device();
        let keys = addresses(device, keys.iter().map(|keys| keys.words()))?;
        let stages = cuda.stages();
        let expansion = Expansion { device, stages, ring, keys, queries: queries.len(), rows, folds };
        let leaves = expansion.tree(queries)?;
        let bottom = expansion.bottom_rows(&leaves)?;
        expansion.finish(&leaves, &bottom)?;
        expanded.extend(leaves.results);
    }
    Ok(expanded)
}

/// Returns the number of queries that are expanded at once, at least one. [`TREE_BYTES`] holds the nodes of two levels and the
/// digits of half of them, which are not larger. The second dimension of a grid holds two parts of each fold. (A query has at most
/// N leaves.)
fn queries_at_once(leaves: usize, node_bytes: usize, folds: usize) -> usize {
    let most = MAX_GRID[1] / (2 * folds).max(1);
    (TREE_BYTES / (2 * leaves * node_bytes)).clamp(1, most.max(1))
}

/// The operands of the expansion of some queries.
struct Expansion<'a> {
    device: &'a Device,
    stages: Stages,
    ring: &'a CudaRing,
    /// The address of each query's keys.
    keys: Buffer<u64>,
    queries: usize,
    rows: usize,
    folds: usize,
}

/// A level of the tree.
struct Level<'a> {
    index: usize,
    gadget: &'a GadgetTables,
    /// The number of nodes of each query.
    count: usize,
    /// The number of the nodes' children that are above a wanted leaf.
    needed: usize,
}

/// The leaves of a tree.
struct Leaves {
    /// The wanted leaves from `first` on: `[query][leaf][a, b][limb][slot]` modulo Q_e.
    words: Buffer<u32>,
    /// The number of selectors if the results have them already, and 0 otherwise.
    first: usize,
    /// The expanded queries.
    results: Vec<Expanded<Buffer<u32>>>,
}

impl Expansion<'_> {
    fn leaves(&self) -> usize {
        self.ring.context().params().leaves(self.rows, self.folds)
    }

    /// Returns the words of a ciphertext modulo Q_e.
    fn node_words(&self) -> usize {
        2 * self.ring.full().poly_words()
    }

    /// Runs all levels of the tree.
    fn tree(&self, queries: &[RlweCiphertext]) -> Result<Leaves, OpsError> {
        let params = self.ring.context().params();
        let levels = &self.ring.expansion().levels;
        let halves: Vec<_> = queries.iter().flat_map(|query| [query.a.words(), query.b.words()]).collect();
        let words = halves.concat();
        let mut nodes = self.device.upload(&words)?;
        let mut count = 1;
        for (index, gadget) in levels.iter().enumerate() {
            let needed = self.leaves().div_ceil(params.max_leaves() >> (index + 1));
            let level = Level { index, gadget, count, needed };
            let stage = self.stage(&level);
            nodes = match (stage.is_whole(self.device.info(), self.stages), &self.ring.expansion().inverses) {
                // From level 2 on, four neighbouring slots have the same power of X (`kernels/expand.cuh`, monomial).
                (true, Some(inverses)) if index >= 2 && index + 1 == levels.len() => {
                    return self.last_level(&level, &stage, &nodes, inverses);
                }
                (true, _) => self.whole_level(&level, &stage, &nodes)?,
                (false, _) => self.next_level(&level, &nodes)?,
            };
            count = needed;
        }
        Ok(Leaves { words: nodes, first: 0, results: self.results()? })
    }

    /// Returns the stage of a level, from which its kernels are chosen.
    fn stage(&self, level: &Level<'_>) -> Stage {
        let full = self.ring.full();
        let &Level { gadget, count, needed, .. } = level;
        let node_digits = gadget.digits() * full.degree().words();
        Stage {
            step: "expand",
            depth: level.index,
            ciphertexts: self.queries * count,
            words: self.queries
                * (count * node_digits + (count + needed + gadget.digits()) * self.node_words()),
            degree: full.degree(),
            polys: gadget.stage_polys(1, full.limbs()),
        }
    }

    /// Runs a level by the kernels of single operations. Returns the needed children of the nodes of each query.
    fn next_level(&self, level: &Level<'_>, nodes: &Buffer<u32>) -> Result<Buffer<u32>, OpsError> {
        let full = self.ring.full();
        let &Level { index, gadget, count, needed } = level;
        let children = self.device.alloc(self.queries * needed * self.node_words())?;
        let exponent = self.ring.context().params().level_exponent(index);
        let digits = self.decompose(gadget, &nodes.slice(..), count, count, exponent)?;
        let args = [(&children).into(), nodes.into(), (&digits).into()];
        let args = args.into_iter().chain(self.level_args(level));
        let launch = full.degree().launch([full.limbs() as u32, count as u32, self.queries as u32], 1);
        let kernel = full.pick(["expand_children"; 4], "expand_children_wide");
        self.device.launch(kernel, launch, &args.collect::<Vec<_>>())?;
        Ok(children)
    }

    /// Runs a level by one kernel. Returns the needed children of the nodes of each query.
    fn whole_level(
        &self,
        level: &Level<'_>,
        stage: &Stage,
        nodes: &Buffer<u32>,
    ) -> Result<Buffer<u32>, OpsError> {
        let children = self.device.alloc(self.queries * level.needed * self.node_words())?;
        let args = [(&children).into(), nodes.into()].into_iter().chain(self.level_args(level));
        let launch = stage.launch([level.count as u32, self.queries as u32, 1]);
        let kernel = self.ring.full().pick(WHOLE, "expand_stage_11_wide");
        self.device.launch(kernel, launch, &args.collect::<Vec<_>>())?;
        Ok(children)
    }

    /// Runs the last level by one kernel, which rounds selectors to R modulo Q_1.
    fn last_level(
        &self,
        level: &Level<'_>,
        stage: &Stage,
        nodes: &Buffer<u32>,
        inverses: &Buffer<u32>,
    ) -> Result<Leaves, OpsError> {
        let results = self.results()?;
        let words = self.device.alloc(self.queries * (level.needed - self.rows) * self.node_words())?;
        let selectors =
            addresses(self.device, results.iter().map(|result| result.selectors.words.slice(..)))?;
        let args =
            [(&selectors).into(), (&words).into(), (self.rows as u32).into(), inverses.into(), nodes.into()];
        let args = args.into_iter().chain(self.level_args(level));
        let launch = stage.launch([level.count as u32, self.queries as u32, 1]);
        let kernel = self.ring.full().pick(LEAVES, "expand_leaves_11_wide");
        self.device.launch(kernel, launch, &args.collect::<Vec<_>>())?;
        Ok(Leaves { words, first: self.rows, results })
    }

    /// Returns the last arguments, which every kernel of a level takes.
    fn level_args<'a>(&'a self, level: &'a Level<'_>) -> [Arg<'a>; 7] {
        [
            (&self.keys).into(),
            key_at(self.ring, level.index).into(),
            (&self.ring.expansion().powers).into(),
            (level.index as u32).into(),
            (level.needed as u32).into(),
            self.ring.full().view(),
            level.gadget.view(),
        ]
    }

    /// Computes the digits of the images under X -> X^`exponent` of half a of `count` nodes of each query:
    /// `[query][node][digit][N]`. The first node is at the start of `nodes`; the nodes of the next query start `stride` nodes
    /// later.
    fn decompose(
        &self,
        gadget: &GadgetTables,
        nodes: &Slice<'_, u32>,
        count: usize,
        stride: usize,
        exponent: usize,
    ) -> Result<Buffer<u32>, OpsError> {
        let full = self.ring.full();
        let digits = self.device.alloc(self.queries * count * gadget.digits() * full.degree().words())?;
        let launch = full.degree().launch([count as u32, self.queries as u32, 1], full.limbs());
        let args = [
            (&digits).into(),
            nodes.into(),
            ((stride * self.node_words()) as u64).into(),
            (exponent as u32).into(),
            full.view(),
            gadget.view(),
        ];
        self.device.launch(full.pick(["expand_decompose"; 4], "expand_decompose_wide"), launch, &args)?;
        Ok(digits)
    }

    /// Computes the bottom row of each leaf of the RGSW ciphertexts: `[query][fold][digit][a, b][limb][slot]` modulo Q_e.
    fn bottom_rows(&self, leaves: &Leaves) -> Result<Buffer<u32>, OpsError> {
        let full = self.ring.full();
        let count = self.leaves() - self.rows;
        let rows = self.device.alloc(self.queries * count * self.node_words())?;
        let Some(gadget) = &self.ring.expansion().square else {
            return Ok(rows);
        };
        let stride = self.leaves() - leaves.first;
        let from = leaves.words.slice((self.rows - leaves.first) * self.node_words()..);
        let digits = self.decompose(gadget, &from, count, stride, 1)?;
        let launch = full.degree().launch([full.limbs() as u32, count as u32, self.queries as u32], 1);
        let args = [
            (&rows).into(),
            from.into(),
            ((stride * self.node_words()) as u64).into(),
            (&digits).into(),
            (&self.keys).into(),
            key_at(self.ring, self.ring.expansion().levels.len()).into(),
            full.view(),
            gadget.view(),
        ];
        self.device.launch(full.pick(["expand_bottom"; 4], "expand_bottom_wide"), launch, &args)?;
        Ok(rows)
    }

    /// Allocates memory for the expanded queries.
    fn results(&self) -> Result<Vec<Expanded<Buffer<u32>>>, OpsError> {
        let ciphertext_words = 2 * self.ring.kept().poly_words();
        let batch = |count: usize| -> Result<_, OpsError> {
            Ok(RlweBatch { ciphertext_words, words: self.device.alloc(count * ciphertext_words)? })
        };
        let digits = self.ring.expansion().fold.digits();
        let results = (0..self.queries).map(|_| {
            let bits = (0..self.folds).map(|_| batch(2 * digits)).collect::<Result<_, _>>()?;
            Ok(Expanded { selectors: batch(self.rows)?, bits })
        });
        results.collect()
    }

    /// Rounds bottom rows, and leaves that are still modulo Q_e, to R modulo Q_1, and writes them to the results.
    fn finish(&self, leaves: &Leaves, bottom: &Buffer<u32>) -> Result<(), OpsError> {
        let node_words = self.node_words();
        let ciphertext_words = 2 * self.ring.kept().poly_words();
        let digits = self.ring.expansion().fold.digits();
        let left = self.rows - leaves.first;
        let mut selectors = Vec::new();
        let mut bits = Vec::new();
        for (query, result) in leaves.results.iter().enumerate() {
            let first = query * (self.leaves() - leaves.first);
            if left > 0 {
                let to = result.selectors.words.slice(..);
                selectors.push((part(&leaves.words, first, left, node_words), to));
            }
            for (fold, bit) in result.bits.iter().enumerate() {
                let low = ..digits * ciphertext_words;
                let high = digits * ciphertext_words..;
                let row = (query * self.folds + fold) * digits;
                bits.push((part(bottom, row, digits, node_words), bit.words.slice(low)));
                let leaf = first + left + fold * digits;
                bits.push((part(&leaves.words, leaf, digits, node_words), bit.words.slice(high)));
            }
        }
        drop_prime(self.device, self.ring, &selectors)?;
        drop_prime(self.device, self.ring, &bits)
    }
}

/// Returns `count` nodes from node `first` on, where a node has `words` words.
fn part(nodes: &Buffer<u32>, first: usize, count: usize, words: usize) -> Slice<'_, u32> {
    nodes.slice(first * words..(first + count) * words)
}

hush_ops::footprint!(Cuda: Expand, |step, batch| {
    let &Expand { ring, rows, folds } = step;
    let leaves = ring.leaves(rows, folds);
    let word_poly = size_of::<u32>() * ring.degree();
    let full_poly = word_poly * full_limbs(&ring);
    let digits = ring.levels().iter().chain([&ring.square_gadget()]).map(|gadget| gadget.digits).max();
    // Two levels of nodes and the digits of a level; or leaves, bottom rows and their digits.
    let node = 4 * full_poly + digits.unwrap_or(0) * word_poly;
    let trees = (TREE_BYTES / (4 * leaves * full_poly).max(1)).clamp(1, batch);
    // Selectors are counted by the step that multiplies them.
    trees * leaves * node + batch * 4 * folds * ring.fold_gadget().digits * poly_bytes(&ring)
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_at_once_fit_memory_and_grids() {
        // N = 4096, four primes, 1,024 leaves.
        assert_eq!(queries_at_once(1024, 2 * 4 * 4096 * 4, 10), 8);
        assert_eq!(queries_at_once(4096, 1 << 20, 12), 1);
        // Small rings would have memory for more queries than a grid has rows.
        assert_eq!(queries_at_once(1, 512, 0), 65_535);
        assert_eq!(queries_at_once(8, 512, 3), 65_535 / 6);
    }
}
