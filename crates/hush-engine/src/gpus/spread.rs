//! A table that no GPU holds alone, on several: who gets which share of it.

use hush_protocol::{any_page::TableParams, share::Share};

use crate::memory::plan::MemoryPlan;

/// How often shares are mended whose units are too coarse for the memory that they were cut for.
const ROUNDS: usize = 64;
/// A device that has no room for its share gives this part of it to the others.
const GIVEN: u32 = 16;
/// Weight of the device with the most room.
const MOST: u64 = 1 << 20;

/// The share of each of some devices that have `free` bytes; those that have none have no room for anything. `plan` says what a
/// share takes of which device.
///
/// Shares are as the room is that each device has beyond what all of them need: keys, and a batch.
///
/// # Errors
/// The plans of shares that have no room, if there are no others.
pub(crate) fn shares(
    table: &TableParams,
    free: &[usize],
    plan: impl Fn(usize, &Share) -> MemoryPlan,
) -> Result<Vec<Option<(Share, MemoryPlan)>>, Vec<MemoryPlan>> {
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
            // Nothing has room: what an equal share would take is what is missing.
            weights.fill(1);
        }
        let planned: Vec<(Share, MemoryPlan)> = (0..free.len())
            .map(|device| {
                let share = Share { index: device, weights: weights.clone() };
                let plan = plan(device, &share);
                (share, plan)
            })
            .collect();
        let is_used = |device: usize| has_units(&planned[device].0);
        let is_short = |device: usize| is_used(device) && planned[device].1.needed_bytes() > free[device];
        let short: Vec<usize> = (0..free.len()).filter(|&device| is_short(device)).collect();
        if short.is_empty() {
            let used: Vec<bool> = (0..free.len()).map(is_used).collect();
            let shares = planned.into_iter().zip(used);
            return Ok(shares.map(|(planned, is_used)| is_used.then_some(planned)).collect());
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
