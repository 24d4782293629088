//! Forward and back substitution on a stripe of the values' symbols.
//!
//! A pass works through its stripe in runs of 32 blocks of four slots:
//!
//! 1. Load the run into a window, rows outermost for long reads.
//! 2. Solve it lane by lane: 64 symbols of its 128 slots and of the slots that they look back on. A lane fits L1 for bytes and
//!    L2 for words.
//! 3. Write it back. The slots hold the result of the forward pass until the back pass replaces it.

use std::ops::Range;

use hush_ops::symbol::Symbol;

use super::{
    factor::{FREE, Factors},
    panels::{BLOCK, Panels, Quad},
    shared_slots::SharedSlots,
};
use crate::kernels::prefetch;

/// The number of symbols of a slot that a kernel call works on.
pub(super) const LANE: usize = 64;

/// Returns the number of symbols of a slot that a thread takes at a time: 512 bytes.
pub(super) const fn stripe<S>() -> usize {
    512 / size_of::<S>()
}

/// The number of blocks loaded into the window together.
const RUN: usize = 32;

/// A lane of the four slots of a block, in the kernel's order.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Group<S>(pub(super) [[S; LANE]; BLOCK]);

impl<S: Symbol> Group<S> {
    fn zero() -> Self {
        Self([[S::default(); LANE]; BLOCK])
    }
}

/// The inner operations at one level of instructions. All three are safe only if the machine has these instructions.
pub(super) struct Kernel<S> {
    /// `load(group, place, symbols, scale)` puts `scale * symbols` (at most a lane) at one of the four places, which
    /// must be zero.
    pub(super) load: unsafe fn(&mut Group<S>, usize, &[S], S),
    /// `store(group, place, symbols)` reads the symbols back.
    pub(super) store: unsafe fn(&Group<S>, usize, &mut [S]),
    /// `solve(quads, lower, solved, group)` solves the four rows of a block, in ascending order if `lower`, else in
    /// descending order. `quads[1..]` belong to the groups of `solved` from the last backwards.
    pub(super) solve: Solve<S>,
}

type Solve<S> = unsafe fn(&[Quad<S>], bool, &[Group<S>], &mut Group<S>);

/// The right-hand sides: rows of `size` symbols.
#[derive(Clone, Copy)]
pub(super) struct Values<'a, S> {
    pub(super) symbols: &'a [S],
    pub(super) size: usize,
}

/// Solves for the symbols `columns` (at most a [`stripe`]) of all slots.
///
/// # Safety
/// The machine has the kernel's instructions, and nothing else accesses these columns of the slots.
pub(super) unsafe fn solve_stripe<S: Symbol>(
    kernel: &Kernel<S>,
    factors: &Factors<S>,
    values: Values<'_, S>,
    columns: Range<usize>,
    slots: &SharedSlots<'_, S>,
) {
    let stripe = Stripe { kernel, columns, slots, count: factors.rows.len() };
    // SAFETY: the caller's promises.
    unsafe {
        stripe.pass(&factors.lower, true, |slot, columns| {
            let row = factors.rows[slot];
            let start = row as usize * values.size;
            (row != FREE)
                .then(|| (&values.symbols[start + columns.start..start + columns.end], factors.scales[slot]))
        });
        stripe.pass(&factors.upper, false, |slot, columns| {
            Some((&*slots.columns_mut(slot, columns), S::from(1)))
        });
    }
}

struct Stripe<'a, S> {
    kernel: &'a Kernel<S>,
    columns: Range<usize>,
    slots: &'a SharedSlots<'a, S>,
    count: usize,
}

impl<S: Symbol> Stripe<'_, S> {
    /// Substitutes through `panels`, in ascending order of slots if `lower`, else descending. Reads the symbols and the scale
    /// that `source(slot, columns)` returns (`None`: zeros), and writes the slots.
    ///
    /// # Safety
    /// The conditions of [`solve_stripe`] must hold.
    unsafe fn pass<'v>(
        &self,
        panels: &Panels<S>,
        lower: bool,
        source: impl Fn(usize, Range<usize>) -> Option<(&'v [S], S)>,
    ) {
        let blocks = panels.blocks();
        let lane_groups = panels.reach() + RUN;
        let mut window = vec![Group::zero(); self.columns.len().div_ceil(LANE) * lane_groups];
        for first in (0..blocks).step_by(RUN) {
            // The blocks of the run in the order of the pass, each with its index in a lane of the window.
            let run = (first..blocks.min(first + RUN)).map(|order| {
                (if lower { order } else { blocks - 1 - order }, panels.reach() + order - first)
            });
            for lane in window.chunks_exact_mut(lane_groups) {
                lane.copy_within(RUN.., 0);
                lane[panels.reach()..].fill(Group::zero());
            }
            for (block, at) in run.clone() {
                for slot in self.slots_of(block) {
                    for (columns, lane) in self.lanes().zip(window.chunks_exact_mut(lane_groups)) {
                        if let Some((symbols, scale)) = source(slot, columns) {
                            // SAFETY: the caller's promise.
                            unsafe { (self.kernel.load)(&mut lane[at], slot % BLOCK, symbols, scale) };
                        }
                    }
                }
            }
            for (columns, lane) in self.lanes().zip(window.chunks_exact_mut(lane_groups)) {
                for (block, at) in run.clone() {
                    let next = if lower { Some(block + RUN) } else { block.checked_sub(RUN) };
                    for slot in next.map_or(0..0, |block| self.slots_of(block)) {
                        // The first cache line of the lane, which the next run reads.
                        if let Some((symbols, _)) = source(slot, columns.clone()) {
                            prefetch(symbols.as_ptr());
                        }
                    }
                    let (solved, rest) = lane.split_at_mut(at);
                    // SAFETY: the caller's promise.
                    unsafe { (self.kernel.solve)(panels.block(block), lower, solved, &mut rest[0]) };
                }
            }
            for (block, at) in run {
                for slot in self.slots_of(block) {
                    for (columns, lane) in self.lanes().zip(window.chunks_exact(lane_groups)) {
                        // SAFETY: the caller's promises; the slice does not outlive the call.
                        unsafe {
                            (self.kernel.store)(
                                &lane[at],
                                slot % BLOCK,
                                self.slots.columns_mut(slot, columns),
                            );
                        }
                    }
                }
            }
        }
    }

    /// Returns the columns of each lane.
    fn lanes(&self) -> impl Iterator<Item = Range<usize>> {
        let end = self.columns.end;
        self.columns.clone().step_by(LANE).map(move |start| start..end.min(start + LANE))
    }

    /// Returns the slots of block `block`. The last block may have fewer than four; blocks after it have none.
    fn slots_of(&self, block: usize) -> Range<usize> {
        block * BLOCK..self.count.min((block + 1) * BLOCK)
    }
}
