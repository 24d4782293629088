//! How fast the transforms are, for the benchmarks.

use std::{arch::asm, time::Instant};

use hush_math::csprng::Csprng;

use super::Ntt;
use crate::{AlignedBuffer, CpuError, Level};

/// Transforms that are timed together.
const REPEATS: u32 = 16;
/// Timings of which the best counts, in one round.
const RUNS: usize = 20;
/// Rounds of all measurements, so that all see the same clock rates.
const ROUNDS: usize = 20;

/// The shortest times of one transform in cache, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct NttRates {
    /// [`hush_math::ntt::NttPlan::forward`].
    pub scalar_forward_ns: f64,
    /// [`hush_math::ntt::NttPlan::inverse`].
    pub scalar_inverse_ns: f64,
    /// The forward transform at the level.
    pub forward_ns: f64,
    /// The inverse transform at the level.
    pub inverse_ns: f64,
    /// 10^9 multiply-adds of 52 bits and 512-bit vectors a second; `None` if the machine has no AVX-512 IFMA.
    pub ifma_gops: Option<f64>,
}

/// Times the negacyclic transforms of `degree` coefficients modulo `modulus` at `level`, on this thread.
///
/// # Errors
/// [`CpuError::MissingLevel`] if the machine lacks `level`.
///
/// # Panics
/// As [`hush_math::ntt::NttPlan::new`].
pub fn ntt_rates(level: Level, modulus: u32, degree: usize) -> Result<NttRates, CpuError> {
    let ntt = Ntt::new(level.require()?, modulus, degree);
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
        let gops = ifma_gops();
        best.ifma_gops = best.ifma_gops.into_iter().chain(gops).reduce(f64::max);
    }
    Ok(best)
}

/// The best measured rate of 512-bit multiply-adds of 52 bits, in 10^9 a second, if the machine has them.
fn ifma_gops() -> Option<f64> {
    const ITERATIONS: u64 = 1000;
    Level::Avx512Ifma.require().ok()?;
    let mut nanoseconds = f64::INFINITY;
    // SAFETY: the machine has AVX-512 IFMA.
    keep_best(&mut nanoseconds, RUNS, || unsafe { repeat_vpmadd52luq(ITERATIONS) });
    Some((16 * ITERATIONS) as f64 / nanoseconds)
}

/// Lowers `best` to the shortest time of `work`, in nanoseconds.
fn keep_best(best: &mut f64, runs: usize, mut work: impl FnMut()) {
    for _ in 0..runs {
        let start = Instant::now();
        for _ in 0..REPEATS {
            work();
        }
        *best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(REPEATS));
    }
}

/// 16 instructions an iteration, in as many chains.
///
/// # Safety
/// The CPU must have AVX-512 IFMA.
unsafe fn repeat_vpmadd52luq(iterations: u64) {
    // SAFETY: changes registers only, all of which are declared; the CPU has IFMA, says the caller.
    unsafe {
        asm!(
            "2:",
            ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
            "vpmadd52luq zmm\\r, zmm16, zmm17",
            ".endr",
            "dec rcx",
            "jnz 2b",
            inout("rcx") iterations => _,
            clobber_abi("sysv64"),
            options(nomem, nostack),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_finite_and_positive() {
        let modulus = hush_math::modulus::find_primes(1024, 29, 1)[0];
        for level in Level::ALL {
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
