//! `hush-bench gpu-thresholds`: the numbers of queries from which on another kernel is faster, kept for this kind of device.

use std::error::Error;

use hush_cuda::{Thresholds, ring::RlweFoldKernel};
use hush_engine::keep_thresholds;

use super::{
    Bench,
    answers::table_shape,
    kernels::{Timings, rlwe_folds},
};
use crate::row::Row;

/// A number of queries that no batch has.
const NEVER: usize = 1 << 20;

/// Measures kernels on tables of the scale, and keeps the thresholds that follow. If the measurement failed, nothing is kept:
/// there may be another one.
pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Box<dyn Error>> {
    let scale = bench.scale;
    let guessed = bench.cuda.thresholds();
    let shape = table_shape(scale.threshold_bytes, scale.columns);
    let products =
        bench.attempt(Row::named("pack"), |bench| rlwe_folds(bench, shape, scale.threshold_batches));
    let Some(products) = products else { return Ok(()) };
    let thresholds = thresholds(&products, scale.threshold_batches, guessed);
    let info = bench.cuda.device().info();
    let kept = keep_thresholds(info, thresholds)?;
    bench.report.push(&Row { thresholds: Some(thresholds), ..Row::named("thresholds") });
    bench.report.note(&format!("kept in {}, for every {}", kept.display(), info.name));
    Ok(())
}

/// Returns the thresholds that follow from timings, and those of `guessed` where nothing was measured.
fn thresholds(products: &Timings, batches: &[usize], guessed: Thresholds) -> Thresholds {
    let mma_from = first_for_good(
        products,
        batches,
        &[RlweFoldKernel::Imad],
        &[RlweFoldKernel::Mma, RlweFoldKernel::Hopper],
    );
    let hopper_from = first_for_good(products, batches, &[RlweFoldKernel::Mma], &[RlweFoldKernel::Hopper]);
    Thresholds {
        mma_from: mma_from.unwrap_or(guessed.mma_from),
        hopper_from: hopper_from.unwrap_or(guessed.hopper_from),
    }
}

/// Returns the first of the batches from which on the kernels of `late` are always faster than those of `early`, among the
/// batches with timings of both. Returns [`NEVER`] if `late` is slower for the last batch, and `None` if there are no timings.
fn first_for_good(
    timings: &Timings,
    batches: &[usize],
    early: &[RlweFoldKernel],
    late: &[RlweFoldKernel],
) -> Option<usize> {
    let seconds = |kernels: &[RlweFoldKernel], batch: usize| {
        let of = timings.iter().filter(|(kernel, own, _)| kernels.contains(kernel) && *own == batch);
        of.map(|&(.., seconds)| seconds).min_by(f64::total_cmp)
    };
    let measured =
        batches.iter().filter_map(|&batch| Some((batch, seconds(early, batch)?, seconds(late, batch)?)));
    let measured: Vec<_> = measured.collect();
    let ahead = measured.iter().rev().take_while(|(_, early, late)| late < early).last();
    (!measured.is_empty()).then(|| ahead.map_or(NEVER, |&(batch, ..)| batch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_follow_from_timings() {
        use RlweFoldKernel::{Hopper, Imad, Mma};
        let guessed = Thresholds { mma_from: 4, hopper_from: 9 };
        let batches = [1, 2, 4, 8, 16];
        // A lucky run at batch 2 sets no threshold.
        let imad = [1.0, 2.1, 3.0, 6.0, 12.0].into_iter().zip(batches).map(|(s, b)| (Imad, b, s));
        let mma = [2.0, 2.0, 3.1, 3.2, 5.0].into_iter().zip(batches).map(|(s, b)| (Mma, b, s));
        let hopper = [2.5, 2.5, 3.2, 3.1, 3.0].into_iter().zip(batches).map(|(s, b)| (Hopper, b, s));
        let mut products: Vec<_> = imad.chain(mma).chain(hopper).collect();
        assert_eq!(thresholds(&products, &batches, guessed), Thresholds { mma_from: 8, hopper_from: 8 });
        products.retain(|(kernel, ..)| *kernel != Hopper);
        assert_eq!(thresholds(&products, &batches, guessed), Thresholds { mma_from: 8, ..guessed });
        let never = vec![(Imad, 1, 1.0), (Mma, 1, 2.0)];
        assert_eq!(thresholds(&never, &batches, guessed), Thresholds { mma_from: NEVER, ..guessed });
        assert_eq!(thresholds(&vec![], &batches, guessed), guessed);
    }
}
