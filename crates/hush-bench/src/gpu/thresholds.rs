//! `hush-bench gpu-thresholds`: from how many queries on another kernel is the faster, and keeps that for this kind of device.

use std::error::Error;

use hush_cuda::{Thresholds, ring::RlweFoldKernel};
use hush_engine::keep_thresholds;

use super::{
    Bench,
    answers::table_shape,
    kernels::{Timings, rlwe_folds},
};
use crate::row::Row;

/// Queries that no batch has.
const NEVER: usize = 1 << 20;

/// Measures kernels on tables of the scale, and keeps what follows unless the measurement failed: there may be another one.
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

/// Returns the thresholds that follow from timings; `guessed` where nothing was measured.
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

/// Returns the first of the batches from which on some kernels are always faster than others, of those for which both were
/// measured; [`NEVER`] if they are slower for the last; nothing where they were not measured.
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
        // A run of luck at 2 is none for good.
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
