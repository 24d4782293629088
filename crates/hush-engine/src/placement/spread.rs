//! A table on several GPUs: a copy on each, or a share.

use std::cmp::Reverse;

use hush_ops::path::Step;
use hush_protocol::{any_page::TableParams, share::Share};

use super::{PlacedShare, Placement, Rates, SpreadChoice, SpreadTimes};
use crate::{
    Backends, Progress,
    gpus::gpu::Gpu,
    memory::plan::{DoesNotFit, MemoryPlan},
};

/// The most GPUs that a table is on: as many as a machine has.
const MOST_GPUS: usize = 16;
/// The copies of a table that a GPU has room for if it gets one by choice: this epoch's, the next one's while it is loaded, and
/// as much for batches, which take up to half of what the first copy leaves.
const ROOMS: usize = 3;
/// The queries of a batch by which copies, shares and a single GPU are compared.
const BATCH: usize = 32;
/// The part of one GPU's time for a batch that shares take at most, to be worth the other GPUs.
const WORTH: f64 = 0.75;

/// The most corrections of shares, whose units may be too coarse for the memory that they were cut for.
const ROUNDS: usize = 64;
/// The inverse of the part of its share that a device without enough memory gives to the others.
const GIVEN: u32 = 16;
/// The weight of the device with the most free memory.
const MOST: u64 = 1 << 20;

impl Backends {
    /// Returns copies or shares of a table on several GPUs, if these are chosen and there is room. `progress` is told why they are
    /// not there if they are asked for.
    pub(super) fn spread_out(&self, table: &TableParams, progress: &dyn Progress) -> Option<Placement> {
        let shares = || self.on_several(table, false);
        let spread = match self.spread() {
            SpreadChoice::One => return None,
            SpreadChoice::Auto => {
                // A table of a single unit is one share.
                let shares = || shares().ok().filter(|placement| placement.shares.len() > 1);
                return self
                    .copies(table, ROOMS)
                    .or_else(|| shares().filter(|placement| is_worth(table, placement)));
            }
            SpreadChoice::Replicate => {
                self.copies(table, 1).ok_or("fewer than two GPUs have room for the table")
            }
            SpreadChoice::Shard => match shares() {
                Ok(placement) if placement.shares.len() > 1 => Ok(placement),
                Ok(_) => Err(
                    "the table has a single part to scan, so it is not cut; with other columns it may have more",
                ),
                Err(_) => Err("the GPUs together have too little room for its parts"),
            },
        };
        let working = self.gpus().iter().filter(|gpu| !gpu.is_lost()).count();
        let because = match (&spread, working) {
            (_, 0) => "no GPU is used",
            (_, 1) => "there is one GPU",
            (Err(reason), _) => reason,
            (Ok(placement), all) if placement.shares.len() < all => {
                let used = placement.shares.len();
                progress.note(&format!("spread: {}: on {used} of {all} GPUs, as the others have no room, or no part is left for them", self.spread()));
                return spread.ok();
            }
            _ => return spread.ok(),
        };
        progress.note(&format!("spread: {} is not done: {because}", self.spread()));
        spread.ok()
    }

    /// Returns every GPU that has room for the table `rooms` times, if there are several.
    fn copies(&self, table: &TableParams, rooms: usize) -> Option<Placement> {
        let placed =
            |gpu: &Gpu| PlacedShare { share: Share::whole(), device: gpu.device(), is_streamed: false };
        let has_room = |gpu: &&Gpu| {
            let plan = gpu.plan(table, &placed(gpu), true, self.clients());
            !gpu.is_lost() && rooms * plan.needed_bytes() <= gpu.free_bytes()
        };
        let shares: Vec<_> = self.gpus().iter().filter(has_room).take(MOST_GPUS).map(placed).collect();
        (shares.len() > 1).then(|| Placement::new(shares))
    }

    /// Returns several GPUs with a share of the table each, the one with the most free memory first. `is_streamed`: whether the
    /// symbols stay in the host's memory.
    ///
    /// # Errors
    /// The missing memory, if there are several GPUs.
    pub(super) fn on_several(
        &self,
        table: &TableParams,
        is_streamed: bool,
    ) -> Result<Placement, Option<DoesNotFit>> {
        let gpus = self.gpus().iter().filter(|gpu| !gpu.is_lost());
        let mut gpus: Vec<_> = gpus.map(|gpu| (gpu, gpu.free_bytes())).collect();
        gpus.sort_by_key(|(_, free)| Reverse(*free));
        gpus.truncate(MOST_GPUS);
        if gpus.len() < 2 {
            return Err(None);
        }
        let free: Vec<usize> = gpus.iter().map(|(_, free)| *free).collect();
        let placed =
            |number: usize, share: Share| PlacedShare { share, device: gpus[number].0.device(), is_streamed };
        let chosen = |table: &TableParams| {
            shares(table, &free, |number, share| {
                gpus[number].0.plan(table, &placed(number, share.clone()), true, self.clients())
            })
        };
        let placement = |by_query| {
            move |shares: Vec<Share>| Placement {
                shares: shares.into_iter().map(|share| placed(share.index, share)).collect(),
                by_query,
            }
        };
        if let Some(Ok(shares)) = table.finished_by_query().as_ref().map(chosen) {
            return Ok(placement(true)(shares));
        }
        match chosen(table).map(placement(false)) {
            Ok(placement) => Ok(placement),
            Err(plans) => {
                let names: Vec<&str> = gpus.iter().map(|(gpu, _)| gpu.name()).collect();
                let names = names.join(" and ");
                let free = free.iter().sum();
                Err(MemoryPlan::refused_together(&plans, &names, free, table.facts().encoded_bytes))
            }
        }
    }
}

/// Returns whether shares of a table answer a batch in so much less time than a single GPU that they are worth the others.
fn is_worth(table: &TableParams, placement: &Placement) -> bool {
    let step_seconds = |step: &Step, batch| Rates::H100.step_seconds(step, batch);
    let table = &placement.as_placed(table);
    let times = SpreadTimes { table, step_seconds: &step_seconds, link: SpreadTimes::PCIE };
    let weights = &placement.shares[0].share.weights;
    times.on_shares(weights, BATCH) <= WORTH * times.on_one(BATCH)
}

/// Returns the shares of some GPUs that have `free` bytes; the index of a share is the number of its GPU. A GPU without any free
/// memory for a share gets none. `plan` plans the memory of a share on a GPU.
///
/// Shares are proportional to the memory of each GPU beyond what all of them need: keys, and a batch.
///
/// # Errors
/// The plans of shares that do not fit, if there are no others.
fn shares(
    table: &TableParams,
    free: &[usize],
    plan: impl Fn(usize, &Share) -> MemoryPlan,
) -> Result<Vec<Share>, Vec<MemoryPlan>> {
    let room = |device: usize| {
        let needed = plan(device, &Share::nothing()).needed_bytes();
        free[device].checked_sub(needed).map_or(0, |room| room as u64)
    };
    let rooms: Vec<u64> = (0..free.len()).map(room).collect();
    let most = rooms.iter().copied().max().unwrap_or(0).max(1);
    let mut weights: Vec<u32> =
        rooms.iter().map(|&room| (u128::from(room) * u128::from(MOST) / u128::from(most)) as u32).collect();
    let scanned = table.scanned();
    let has_units = |share: &Share| share.of(&scanned).iter().any(|units| !units.is_empty());
    let mut plans = Vec::new();
    for _ in 0..ROUNDS {
        if weights.iter().all(|&weight| weight == 0) {
            // No GPU has memory, so the plans of equal shares show what is missing.
            weights.fill(1);
        }
        let planned: Vec<(Share, MemoryPlan)> = (0..free.len())
            .map(|device| {
                let share = Share { index: device, weights: weights.clone() };
                let plan = plan(device, &share);
                (share, plan)
            })
            .collect();
        let mut short = Vec::new();
        for (device, (share, plan)) in planned.iter().enumerate() {
            if has_units(share) && plan.needed_bytes() > free[device] {
                short.push(device);
            }
        }
        if short.is_empty() {
            return Ok(planned.into_iter().map(|(share, _)| share).filter(has_units).collect());
        }
        plans = planned.into_iter().map(|(_, plan)| plan).collect();
        if short.len() == free.len() {
            break;
        }
        for device in short {
            weights[device] -= (weights[device] / GIVEN).max(1).min(weights[device]);
        }
    }
    Err(plans)
}

#[cfg(test)]
mod tests {
    use hush_protocol::{Protocol, table::TableShape};

    use super::*;
    use crate::Device;

    /// Shares are worth the GPUs of a table of 8 GiB, and not those of one that is scanned in no time.
    #[test]
    fn shares_are_for_long_scans() {
        let shares = [0, 1].map(|index| Share { index, weights: vec![1, 1] });
        let placed = shares.map(|share| Placement::on(Device::Gpu(share.index), share).shares.remove(0));
        let placement = Placement::new(placed.into());
        for (blocks, is_large) in [(1 << 10, true), (1, false)] {
            let shape = TableShape { columns: 1 << 15, blocks, slot_bytes: 256 };
            let table =
                Protocol::Colpack.page().table("COLPACK_N2048_Q52", shape).expect("within the limits");
            assert_eq!(is_worth(&table, &placement), is_large, "{shape:?}");
        }
    }
}
