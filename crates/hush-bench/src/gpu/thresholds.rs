//! `hush-bench gpu-thresholds`: from how many queries on another kernel is the faster, and keeps that for this kind of device.

use std::error::Error;

use hush_cuda::{FoldKernel, Thresholds, ring::RlweFoldKernel};
use hush_engine::keep_thresholds;

use super::{
    Bench,
    answers::table_shape,
    kernels::{Timings, lwe_folds, rlwe_folds},
};
use crate::row::Row;

/// Queries that no batch has.
const NEVER: usize = 1 << 20;

/// Measures kernels on tables of the scale, and keeps what follows unless a measurement failed: there may be another one.
pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Box<dyn Error>> {
    let (scale, guessed) = (bench.scale, bench.cuda.thresholds());
    let shape = table_shape(scale.threshold_bytes, scale.columns);
    let folds = bench.attempt(Row::named("lwe_fold"), |bench| {
        lwe_folds(bench, shape, &scale.threshold_batches[..FoldKernel::Gemv.pass_queries()])
    });
    bench.cuda.release_unused();
    let products =
        bench.attempt(Row::named("pack"), |bench| rlwe_folds(bench, shape, scale.threshold_batches));
    let (Some(folds), Some(products)) = (folds, products) else { return Ok(()) };
    let thresholds = thresholds(&folds, &products, scale.threshold_batches, guessed);
    let info = bench.cuda.device().info();
    let kept = keep_thresholds(info, thresholds)?;
    bench.report.push(&Row { thresholds: Some(thresholds.into()), ..Row::named("thresholds") });
    bench.report.note(&format!("kept in {}, for every {}", kept.display(), info.name));
    Ok(())
}

/// What follows of timings; what was not measured is as guessed.
fn thresholds(
    folds: &Timings<FoldKernel>,
    products: &Timings<RlweFoldKernel>,
    batches: &[usize],
    guessed: Thresholds,
) -> Thresholds {
    let others = [FoldKernel::Wgmma, FoldKernel::Mma];
    let tensor = [RlweFoldKernel::Mma, RlweFoldKernel::Hopper, RlweFoldKernel::HopperBeside];
    let gemv_to = first_for_good(folds, batches, &[FoldKernel::Gemv], &others);
    let mma_from = first_for_good(products, batches, &[RlweFoldKernel::Imad], &tensor);
    let hopper_from = first_for_good(products, batches, &tensor[..1], &tensor[1..]);
    let beside_from = first_for_good(products, batches, &tensor[1..2], &tensor[2..]);
    Thresholds {
        gemv_most: gemv_to.map_or(guessed.gemv_most, |from| (from - 1).min(FoldKernel::Gemv.pass_queries())),
        mma_from: mma_from.unwrap_or(guessed.mma_from),
        hopper_from: hopper_from.unwrap_or(guessed.hopper_from),
        beside_from: beside_from.unwrap_or(guessed.beside_from),
    }
}

/// The first of the batches from which on some kernels are always faster than others, of those for which both were measured;
/// [`NEVER`] if they are slower for the last; nothing where they were not measured.
fn first_for_good<K: PartialEq>(
    timings: &Timings<K>,
    batches: &[usize],
    early: &[K],
    late: &[K],
) -> Option<usize> {
    let seconds = |kernels: &[K], batch: usize| {
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
        use FoldKernel::{Gemv, Mma, Wgmma};
        use RlweFoldKernel::{Hopper, HopperBeside, Imad};
        let guessed = Thresholds { gemv_most: 0, mma_from: 4, hopper_from: 9, beside_from: 33 };
        let batches = [1, 2, 4, 8, 16];
        // A run of luck at 2 is none for good.
        let imad = [1.0, 2.1, 3.0, 6.0, 12.0].into_iter().zip(batches).map(|(s, b)| (Imad, b, s));
        let mma =
            [2.0, 2.0, 3.1, 3.2, 5.0].into_iter().zip(batches).map(|(s, b)| (RlweFoldKernel::Mma, b, s));
        let hopper = [2.5, 2.5, 3.2, 3.1, 3.0].into_iter().zip(batches).map(|(s, b)| (Hopper, b, s));
        let beside = [2.6, 2.6, 3.3, 3.2, 2.9].into_iter().zip(batches).map(|(s, b)| (HopperBeside, b, s));
        let products: Vec<_> = imad.chain(mma).chain(hopper).chain(beside).collect();
        for (folds, gemv_most) in [
            (vec![(Gemv, 1, 1.0), (Wgmma, 1, 1.1), (Gemv, 2, 1.2), (Wgmma, 2, 1.1)], 1),
            (vec![(Gemv, 1, 1.0), (Mma, 1, 1.1), (Gemv, 2, 1.2), (Mma, 2, 1.3)], 2),
            (vec![(Gemv, 1, 1.2), (Mma, 1, 1.1), (Gemv, 2, 1.4), (Mma, 2, 1.3)], 0),
            (vec![(Gemv, 1, 1.0)], 0),
        ] {
            let expected = Thresholds { gemv_most, mma_from: 8, hopper_from: 8, beside_from: 16 };
            assert_eq!(thresholds(&folds, &products, &batches, guessed), expected);
        }
        let without: Vec<_> =
            products.into_iter().filter(|(kernel, ..)| ![Hopper, HopperBeside].contains(kernel)).collect();
        assert_eq!(thresholds(&vec![], &without, &batches, guessed), Thresholds { mma_from: 8, ..guessed });
        let never = vec![(Imad, 1, 1.0), (RlweFoldKernel::Mma, 1, 2.0)];
        assert_eq!(thresholds(&vec![], &never, &batches, guessed), Thresholds { mma_from: NEVER, ..guessed });
    }
}
