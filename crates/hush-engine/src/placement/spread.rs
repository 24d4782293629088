//! The shares of a table that no GPU holds alone.

use hush_protocol::{any_page::TableParams, share::Share};

use crate::memory::plan::MemoryPlan;

/// The most corrections of shares, whose units may be too coarse for the memory that they were cut for.
const ROUNDS: usize = 64;
/// The inverse of the part of its share that a device without enough memory gives to the others.
const GIVEN: u32 = 16;
/// The weight of the device with the most free memory.
const MOST: u64 = 1 << 20;

/// Returns the shares of some GPUs that have `free` bytes; the index of a share is the number of its GPU. A GPU without any free
/// memory for a share gets none. `plan` plans the memory of a share on a GPU.
///
/// Shares are proportional to the memory of each GPU beyond what all of them need: keys, and a batch.
///
/// # Errors
/// The plans of shares that do not fit, if there are no others.
pub(crate) fn shares(
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
