//! `hush-bench ntt`: the transforms of one polynomial in cache against their instruction count.

use std::{error::Error, time::Instant};

use hush_cpu::{AlignedBuffer, CpuError, Level, ntt::Ntt};
use hush_math::{csprng::Csprng, modulus::find_primes};

use super::{
    probe,
    report::{Column, Report, fixed, percent},
    row::{Row, Transform},
};

/// The columns of a row.
pub(super) const COLUMNS: &[Column] = &[
    ("us", 9, |row| fixed(row.transform.as_ref().map(|own| own.nanoseconds / 1e3), 2)),
    ("ns/bfly", 9, |row| fixed(row.transform.as_ref().map(|own| own.ns_per_butterfly), 3)),
    ("x scalar", 8, |row| fixed(row.transform.as_ref().map(|own| own.speedup), 1)),
    ("floor", 6, |row| percent(row.share)),
];
/// The degrees that are measured.
const DEGREES: [usize; 3] = [1024, 2048, 4096];
/// The bits of the primes that are measured.
const PRIME_BITS: [u32; 2] = [29, 31];
/// The number of 512-bit instructions of the forward transform of 4096 coefficients with 52-bit multiply-adds, counted by hand:
/// the butterflies, one transposition, and the last reduction. The floor assumes two instructions a cycle.
const FORWARD_OPS: f64 = 19_200.0;
/// The number of instructions of an inverse transform, counted as [`FORWARD_OPS`].
const INVERSE_OPS: f64 = 17_300.0;

/// The number of transforms that are timed together.
const REPEATS: u32 = 16;
/// The number of timings in one round, of which the best counts.
const RUNS: usize = 20;
/// The number of rounds of all measurements, so that all see the same clock rates.
const ROUNDS: usize = 20;

pub(super) fn run(report: &mut Report) -> Result<(), Box<dyn Error>> {
    let level = Level::from_env()?;
    for degree in DEGREES {
        let butterflies = (degree / 2 * degree.ilog2() as usize) as f64;
        for bits in PRIME_BITS {
            let modulus = find_primes(degree, bits, 1)[0];
            let rates = ntt_rates(level, modulus, degree)?;
            for (name, nanoseconds, scalar, ops) in [
                ("forward", rates.forward_ns, rates.scalar_forward_ns, FORWARD_OPS),
                ("inverse", rates.inverse_ns, rates.scalar_inverse_ns, INVERSE_OPS),
            ] {
                let floor = rates.ifma_gops.map(|gops| ops * butterflies / (2048.0 * 12.0) / gops);
                let transform = Transform {
                    level: level.name(),
                    degree,
                    modulus,
                    nanoseconds,
                    ns_per_butterfly: nanoseconds / butterflies,
                    speedup: scalar / nanoseconds,
                    ifma_gops: rates.ifma_gops,
                };
                report.push(&Row {
                    share: floor.map(|floor| floor / nanoseconds),
                    transform: Some(transform),
                    ..Row::named(format!("{name} N={degree} {bits}-bit"))
                });
            }
        }
    }
    Ok(())
}

/// The shortest times of one transform in cache, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct NttRates {
    /// The portable forward transform, [`hush_math::ntt::NttPlan::forward`].
    pub(super) scalar_forward_ns: f64,
    /// The portable inverse transform, [`hush_math::ntt::NttPlan::inverse`].
    pub(super) scalar_inverse_ns: f64,
    /// The forward transform at the level.
    pub(super) forward_ns: f64,
    /// The inverse transform at the level.
    pub(super) inverse_ns: f64,
    /// 10^9 multiply-adds of 52 bits and 512-bit vectors a second; `None` if the machine has no AVX-512 IFMA.
    pub(super) ifma_gops: Option<f64>,
}

/// Times the negacyclic transforms of `degree` coefficients modulo `modulus` at `level`, on this thread.
///
/// # Errors
/// [`CpuError::MissingLevel`] if the machine lacks `level`.
///
/// # Panics
/// If [`hush_math::ntt::NttPlan::new`] panics for `modulus` and `degree`.
pub(super) fn ntt_rates(level: Level, modulus: u32, degree: usize) -> Result<NttRates, CpuError> {
    let ntt = Ntt::at(level, modulus, degree)?;
    let mut scratch = AlignedBuffer::<u64>::zeroed(ntt.scratch_words());
    let mut values = AlignedBuffer::<u32>::zeroed(degree);
    let mut rng = Csprng::insecure_from_seed(u64::from(modulus));
    values.fill_with(|| rng.next_u32() % modulus);
    let mut best = NttRates {
        scalar_forward_ns: f64::INFINITY,
        scalar_inverse_ns: f64::INFINITY,
        forward_ns: f64::INFINITY,
        inverse_ns: f64::INFINITY,
        ifma_gops: None,
    };
    for _ in 0..ROUNDS {
        keep_best(&mut best.scalar_forward_ns, 2, || ntt.plan().forward(&mut values));
        keep_best(&mut best.scalar_inverse_ns, 2, || ntt.plan().inverse(&mut values));
        keep_best(&mut best.forward_ns, RUNS, || ntt.forward(&mut values, &mut scratch));
        keep_best(&mut best.inverse_ns, RUNS, || ntt.inverse(&mut values, &mut scratch));
        let gops = probe::ifma_gops();
        best.ifma_gops = best.ifma_gops.into_iter().chain(gops).reduce(f64::max);
    }
    Ok(best)
}

/// Lowers `best` to the shortest time of `work` in `runs` timings, in nanoseconds.
fn keep_best(best: &mut f64, runs: usize, mut work: impl FnMut()) {
    for _ in 0..runs {
        let start = Instant::now();
        for _ in 0..REPEATS {
            work();
        }
        *best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(REPEATS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_finite_and_positive() {
        let modulus = find_primes(1024, 29, 1)[0];
        for &level in Level::ALL {
            match ntt_rates(level, modulus, 1024) {
                Ok(rates) => {
                    let NttRates { scalar_forward_ns, scalar_inverse_ns, forward_ns, inverse_ns, .. } = rates;
                    for ns in [scalar_forward_ns, scalar_inverse_ns, forward_ns, inverse_ns] {
                        assert!(ns.is_finite() && ns > 0.0, "{level}");
                    }
                }
                Err(error) => assert!(matches!(error, CpuError::MissingLevel { .. })),
            }
        }
    }
}
