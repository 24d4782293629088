//! Expansion of queries: a tree of Subs, the bottom rows of RGSW ciphertexts, and the drop of a prime.
//!
//! The tree goes level by level, for all nodes of all queries: one launch a level where a kernel does the whole stage, else two.

use hush_he::entities::RlweCiphertext;
use hush_ops::{
    OpsError,
    contract::{Expanded, RlweBatch},
};

use super::{
    CudaRing,
    addresses::addresses,
    drop_prime::drop_prime,
    gadget::GadgetTables,
    keys::{CudaKeys, key_at},
    stages::{Stage, Stages},
};
use crate::{
    Cuda,
    device::{Arg, Buffer, Device, MAX_GRID, Slice},
};

/// Bytes of the nodes of two levels that are on the device at once, for more than one query.
pub const TREE_BYTES: usize = 2 << 30;

/// The kernels of a whole level.
const WHOLE: [&str; 4] = ["expand_stage_6", "expand_stage_8", "expand_stage_11", "expand_stage_12"];

/// As [`hush_ops::contract::RingOps::expand`]: the queries of a batch together, as many at once as their nodes fit the memory
/// that is set aside for them.
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
        expanded.extend(expansion.finish(&leaves, &bottom)?);
    }
    Ok(expanded)
}

/// How many queries are expanded at once, at least one: as the nodes of two levels, and digits of half of them that are not larger,
/// fit the workspace, and two parts of each fold the second dimension of a grid. (A query has at most N leaves.)
fn queries_at_once(leaves: usize, node_bytes: usize, folds: usize) -> usize {
    let most = MAX_GRID[1] / (2 * folds).max(1);
    (TREE_BYTES / (2 * leaves * node_bytes)).clamp(1, most.max(1))
}

/// The operands of some expansions.
struct Expansion<'a> {
    device: &'a Device,
    stages: Stages,
    ring: &'a CudaRing,
    /// Where the keys of each query are.
    keys: Buffer<u64>,
    queries: usize,
    rows: usize,
    folds: usize,
}

impl Expansion<'_> {
    fn leaves(&self) -> usize {
        self.ring.context().params().leaves(self.rows, self.folds)
    }

    /// Words of a ciphertext modulo Q_e.
    fn node_words(&self) -> usize {
        2 * self.ring.full().poly_words()
    }

    /// The wanted leaves, `[query][leaf][a, b][limb][slot]` modulo Q_e.
    fn tree(&self, queries: &[RlweCiphertext]) -> Result<Buffer<u32>, OpsError> {
        let params = self.ring.context().params();
        let words: Vec<u32> =
            queries.iter().flat_map(|query| [query.a.words(), query.b.words()]).flatten().copied().collect();
        let (mut nodes, mut count) = (self.device.upload(&words)?, 1);
        for (level, gadget) in self.ring.expansion().levels.iter().enumerate() {
            // Nodes of the next level that are above a wanted leaf.
            let needed = self.leaves().div_ceil(params.max_leaves() >> (level + 1));
            nodes = self.next_level(level, gadget, &nodes, count, needed)?;
            count = needed;
        }
        Ok(nodes)
    }

    /// The first `needed` children of the `count` nodes of each query.
    fn next_level(
        &self,
        level: usize,
        gadget: &GadgetTables,
        nodes: &Buffer<u32>,
        count: usize,
        needed: usize,
    ) -> Result<Buffer<u32>, OpsError> {
        let (full, children) =
            (self.ring.full(), self.device.alloc(self.queries * needed * self.node_words())?);
        let node_digits = gadget.digits() * full.degree().words();
        let stage = Stage {
            step: "expand",
            depth: level,
            ciphertexts: self.queries * count,
            words: self.queries
                * (count * node_digits + (count + needed + gadget.digits()) * self.node_words()),
            degree: full.degree(),
            polys: gadget.stage_polys(1, full.limbs()),
        };
        let is_whole = stage.is_whole(self.device.info(), self.stages);
        let exponent = self.ring.context().params().level_exponent(level);
        let digits = (!is_whole)
            .then(|| self.decompose(gadget, &nodes.slice(..), count, count, exponent))
            .transpose()?;
        let mut args = vec![(&children).into(), nodes.into()];
        args.extend(digits.as_ref().map(Arg::from));
        args.extend([
            (&self.keys).into(),
            key_at(self.ring, level).into(),
            (&self.ring.expansion().powers).into(),
            (level as u32).into(),
            (needed as u32).into(),
            full.view(),
            gadget.view(),
        ]);
        let (nodes, queries) = (count as u32, self.queries as u32);
        let (kernel, launch) = match is_whole {
            true => (full.pick(WHOLE, "expand_stage_11_wide"), stage.launch([nodes, queries, 1])),
            false => (
                full.pick(["expand_children"; 4], "expand_children_wide"),
                full.degree().launch([full.limbs() as u32, nodes, queries], 1),
            ),
        };
        self.device.launch(kernel, launch, &args)?;
        Ok(children)
    }

    /// The digits of the images of half a of `count` nodes of each query under X -> X^`exponent`, `[query][node][digit][N]`.
    /// The first node is at the start of `nodes`; those of the next query come `stride` nodes later.
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

    /// The bottom row of each leaf of the RGSW ciphertexts, `[query][fold][digit][a, b][limb][slot]` modulo Q_e.
    fn bottom_rows(&self, leaves: &Buffer<u32>) -> Result<Buffer<u32>, OpsError> {
        let (full, count) = (self.ring.full(), self.leaves() - self.rows);
        let rows = self.device.alloc(self.queries * count * self.node_words())?;
        let Some(gadget) = &self.ring.expansion().square else {
            return Ok(rows);
        };
        let from = leaves.slice(self.rows * self.node_words()..);
        let digits = self.decompose(gadget, &from, count, self.leaves(), 1)?;
        let launch = full.degree().launch([full.limbs() as u32, count as u32, self.queries as u32], 1);
        let args = [
            (&rows).into(),
            from.into(),
            ((self.leaves() * self.node_words()) as u64).into(),
            (&digits).into(),
            (&self.keys).into(),
            key_at(self.ring, self.ring.expansion().levels.len()).into(),
            full.view(),
            gadget.view(),
        ];
        self.device.launch(full.pick(["expand_bottom"; 4], "expand_bottom_wide"), launch, &args)?;
        Ok(rows)
    }

    /// Leaves and bottom rows modulo Q_1, each where it belongs.
    fn finish(
        &self,
        leaves: &Buffer<u32>,
        bottom: &Buffer<u32>,
    ) -> Result<Vec<Expanded<Buffer<u32>>>, OpsError> {
        let (node_words, ciphertext_words) = (self.node_words(), 2 * self.ring.kept().poly_words());
        let digits = self.ring.expansion().fold.digits();
        let batch = |count: usize| -> Result<_, OpsError> {
            Ok(RlweBatch { ciphertext_words, words: self.device.alloc(count * ciphertext_words)? })
        };
        let expanded = (0..self.queries).map(|_| {
            let bits = (0..self.folds).map(|_| batch(2 * digits)).collect::<Result<_, _>>()?;
            Ok(Expanded { selectors: batch(self.rows)?, bits })
        });
        let expanded = expanded.collect::<Result<Vec<_>, OpsError>>()?;
        let (mut selectors, mut bits) = (Vec::new(), Vec::new());
        for (query, expanded) in expanded.iter().enumerate() {
            let first = query * self.leaves();
            selectors.push((part(leaves, first, self.rows, node_words), expanded.selectors.words.slice(..)));
            for (fold, bit) in expanded.bits.iter().enumerate() {
                let (low, high) = (digits * ciphertext_words, 2 * digits * ciphertext_words);
                let row = (query * self.folds + fold) * digits;
                bits.push((part(bottom, row, digits, node_words), bit.words.slice(..low)));
                let leaf = first + self.rows + fold * digits;
                bits.push((part(leaves, leaf, digits, node_words), bit.words.slice(low..high)));
            }
        }
        drop_prime(self.device, self.ring, &selectors)?;
        drop_prime(self.device, self.ring, &bits)?;
        Ok(expanded)
    }
}

/// `count` of the nodes of `words` words.
fn part(nodes: &Buffer<u32>, first: usize, count: usize, words: usize) -> Slice<'_, u32> {
    nodes.slice(first * words..(first + count) * words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_at_once_fit_memory_and_grids() {
        // N = 4096, four primes, 1,024 leaves.
        assert_eq!(queries_at_once(1024, 2 * 4 * 4096 * 4, 10), 8);
        assert_eq!(queries_at_once(4096, 1 << 20, 12), 1);
        // Small rings would leave room for more queries than a grid has.
        assert_eq!(queries_at_once(1, 512, 0), 65_535);
        assert_eq!(queries_at_once(8, 512, 3), 65_535 / 6);
    }
}
