//! The batches that a device has room for.

use hush_engine::MemoryPlan;

/// Returns the sizes of `batches` that a device with `free` bytes has room for. The largest that fits replaces those that are too
/// large.
///
/// # Errors
/// A text that says what a table of `encoded` bytes needs, if there is no room for it.
pub(super) fn batches_that_fit(
    plan: &MemoryPlan,
    device: &str,
    free: usize,
    encoded: u64,
    batches: &[usize],
) -> Result<Vec<usize>, String> {
    plan.check(device, free, encoded).map_err(|error| error.needs())?;
    let most = plan.max_batch(free);
    let mut fit: Vec<usize> = batches.iter().map(|&batch| batch.min(most)).collect();
    fit.dedup();
    Ok(fit)
}

#[cfg(test)]
mod tests {
    use hush_cuda::Cuda;
    use hush_protocol::{Protocol, share::Share, table::TableShape};

    use super::*;

    const BATCHES: [usize; 4] = [1, 8, 32, 64];

    /// Returns the memory plan of a table of 64 GiB, and its encoded bytes.
    fn hybrid() -> (MemoryPlan, u64) {
        let shape = TableShape { columns: 1 << 16, blocks: 256, slot_bytes: 4096 };
        let table = Protocol::Hybrid.page().table("PACK_M31", shape).unwrap();
        let plan = MemoryPlan::of_share::<Cuda>(&table, &Share::whole(), true, 1);
        (plan, table.facts().encoded_bytes)
    }

    fn fit(free: usize) -> Result<Vec<usize>, String> {
        let (plan, encoded) = hybrid();
        batches_that_fit(&plan, "GPU", free, encoded, &BATCHES)
    }

    #[test]
    fn a_table_that_does_not_fit_says_what_it_needs() {
        let refused = fit(72 << 30).unwrap_err();
        assert!(refused.starts_with("needs 74."), "{refused}");
        assert!(refused.contains("(database 64.00 GiB, hint 10.00 GiB"), "{refused}");
        assert!(refused.ends_with("72.00 GiB are free on GPU"), "{refused}");
        let needed = hybrid().0.needed_bytes();
        assert!(fit(needed - 1).is_err());
        assert_eq!(fit(needed).unwrap(), [1]);
    }

    #[test]
    fn batches_that_are_too_large_become_the_largest() {
        let (plan, _) = hybrid();
        for (most, expected) in [
            (1, &[1][..]),
            (7, &[1, 7]),
            (8, &[1, 8]),
            (20, &[1, 8, 20]),
            (63, &[1, 8, 32, 63]),
            (64, &BATCHES),
            (1000, &BATCHES),
        ] {
            let free = plan.kept_bytes() + 2 * plan.batch_bytes(most);
            assert_eq!(fit(free).unwrap(), expected, "{most}");
        }
    }
}
