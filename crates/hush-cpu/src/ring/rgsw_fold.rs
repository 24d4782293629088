//! Step (7): folds the entries to one.
//!
//! ```text
//! for every bit:  x_i = x_2i + bit (x_(2i+1) - x_2i)        (an external product a pair; a missing entry is zero)
//! ```
//!
//! The rounds are done some at a time: each block of `2^k` entries is one unit of work that goes depth first, so that
//! the folded ciphertexts stay in cache.

use std::borrow::Cow;

use hush_ops::{
    contract::{EntryOrder, RlweBatch},
    steps::{RgswFold, poly_bytes},
};
use rayon::prelude::*;

use super::{
    arithmetic::words,
    gadget::{external_product::RgswRows, gadget_product, scratch::Scratch},
    tables::CpuRing,
};
use crate::Cpu;

/// The number of units of work for each thread.
const UNITS: usize = 4;

/// The entries of one query.
pub(super) struct Planes<'a> {
    pub(super) entries: &'a RlweBatch,
    /// The number of entries.
    pub(super) count: usize,
    pub(super) planes: usize,
    pub(super) order: EntryOrder,
}

impl Planes<'_> {
    /// Returns the ciphertexts of one plane, entry after entry.
    fn plane(&self, plane: usize) -> Cow<'_, [u32]> {
        let index = |entry| self.order.index(entry, plane, self.count, self.planes);
        if self.order == EntryOrder::PlaneMajor || self.planes == 1 {
            let words = self.entries.ciphertext_words;
            return Cow::Borrowed(&self.entries.words[index(0) * words..][..self.count * words]);
        }
        let ciphertexts = (0..self.count).map(|entry| self.entries.ciphertext(index(entry)));
        Cow::Owned(ciphertexts.collect::<Vec<_>>().concat())
    }
}

/// Computes [`hush_ops::contract::RingOps::rgsw_fold`] for one query and operands that fit together. Runs in parallel over planes,
/// and over the units of each.
pub(super) fn rgsw_fold(cpu: &Cpu, ring: &CpuRing, planes: &Planes<'_>, bits: &[RlweBatch]) -> RlweBatch {
    let ciphertext_words = 2 * ring.kept.words();
    let rows_words = RgswRows::words(ring);
    let mut buffer = cpu.ring_buffers().take(bits.len() * rows_words);
    let mut folded = vec![0; planes.planes * ciphertext_words];
    cpu.install(|| {
        let rows = bits.par_iter().zip(buffer.par_chunks_exact_mut(rows_words));
        let bits: Vec<_> = rows.map(|(bit, words)| RgswRows::lay_out(ring, bit, words)).collect();
        let units = (UNITS * cpu.threads()).div_ceil(planes.planes);
        let out = folded.par_chunks_exact_mut(ciphertext_words).enumerate().with_max_len(1);
        out.for_each(|(plane, out)| {
            out.copy_from_slice(&fold(cpu, ring, &planes.plane(plane), &bits, units))
        });
    });
    cpu.ring_buffers().give_back(buffer);
    RlweBatch { ciphertext_words, words: folded.into() }
}

/// Runs all rounds of a plane, in at least `units` units of work as long as there are as many pairs.
fn fold(cpu: &Cpu, ring: &CpuRing, entries: &[u32], bits: &[RgswRows<'_>], units: usize) -> Vec<u32> {
    if bits.is_empty() {
        return entries.to_vec();
    }
    let block = entries.len() / (2 * ring.kept.words()) / units;
    let rounds = bits.len().min(block.max(2).ilog2() as usize);
    let folded = fold_rounds(cpu, ring, entries, &bits[..rounds]);
    if rounds == bits.len() { folded } else { fold(cpu, ring, &folded, &bits[rounds..], units) }
}

/// Runs one round for every bit.
fn fold_rounds(cpu: &Cpu, ring: &CpuRing, entries: &[u32], bits: &[RgswRows<'_>]) -> Vec<u32> {
    let words = 2 * ring.kept.words();
    let units = entries.par_chunks(words << bits.len());
    let mut folded = vec![0; units.len() * words];
    folded.par_chunks_exact_mut(words).zip(units).with_max_len(1).for_each(|(out, entries)| {
        cpu.with_workspace(|workspace| {
            let (mut scratch, stack) = RgswRows::scratch(ring, workspace, bits.len() * words);
            fold_block(ring, bits, entries, out, stack, &mut scratch);
        });
    });
    folded
}

/// Folds at most `2^bits` entries, at least one, to `out`. `stack` has memory for an entry a bit.
fn fold_block(
    ring: &CpuRing,
    bits: &[RgswRows<'_>],
    entries: &[u32],
    out: &mut [u32],
    stack: &mut [u32],
    scratch: &mut Scratch<'_>,
) {
    let Some((bit, below)) = bits.split_last() else {
        return out.copy_from_slice(entries);
    };
    let (first, second) = entries.split_at(entries.len().min(out.len() << below.len()));
    fold_block(ring, below, first, out, stack, scratch);
    let (other, stack) = stack.split_at_mut(out.len());
    if second.is_empty() {
        other.fill(0);
    } else {
        fold_block(ring, below, second, other, stack, scratch);
    }
    choose(ring, *bit, out, other, scratch);
}

/// Computes `x += bit (y - x)`.
fn choose(ring: &CpuRing, bit: RgswRows<'_>, x: &mut [u32], y: &[u32], scratch: &mut Scratch<'_>) {
    let kept = &ring.kept;
    let gadget = &ring.fold;
    let halves = x.chunks_exact(kept.words()).zip(y.chunks_exact(kept.words()));
    for (half, (x, y)) in halves.enumerate() {
        words::subtract(kept, y, x, scratch.coefficients);
        gadget_product::decompose(kept, gadget, scratch, half * gadget.digits);
    }
    bit.multiply_add(ring, scratch, x);
}

hush_ops::footprint!(Cpu: RgswFold, |step, batch| {
    let &RgswFold { ring, entries, planes, parts } = step;
    // All rounds of a part have their results at once: half of the entries, a quarter, and so on. Then each part has its result.
    batch * (entries.div_ceil(parts) + parts) * planes * 2 * poly_bytes(&ring)
});
