//! How fast the transforms are, for the benchmarks.

use std::{arch::asm, time::Instant};

use hush_math::csprng::Csprng;

use super::Ntt;
use crate::{AlignedBuffer, CpuError, Level};

/// Transforms that are timed together.
const REPEATS: u32 = 16;
/// Timings of which the best counts.
const RUNS: usize = 400;

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
    Ok(NttRates {
        scalar_forward_ns: best_ns(RUNS / 10, || ntt.plan().forward(&mut values)),
        scalar_inverse_ns: best_ns(RUNS / 10, || ntt.plan().inverse(&mut values)),
        forward_ns: best_ns(RUNS, || ntt.forward(&mut values, &mut scratch)),
        inverse_ns: best_ns(RUNS, || ntt.inverse(&mut values, &mut scratch)),
    })
}

/// The best measured rate of 512-bit multiply-adds of 52 bits on one thread, in 10^9 instructions a second.
///
/// # Errors
/// [`CpuError::MissingLevel`] if the machine has no AVX-512 IFMA.
pub fn ifma_gops() -> Result<f64, CpuError> {
    const ITERATIONS: u64 = 100_000;
    Level::Avx512Ifma.require()?;
    // SAFETY: the machine has AVX-512 IFMA.
    let nanoseconds = best_ns(RUNS / 10, || unsafe { repeat_vpmadd52luq(ITERATIONS) });
    Ok((16 * ITERATIONS) as f64 / nanoseconds)
}

/// The shortest time of `work`, in nanoseconds.
fn best_ns(runs: usize, mut work: impl FnMut()) -> f64 {
    (0..runs)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..REPEATS {
                work();
            }
            start.elapsed().as_secs_f64() * 1e9 / f64::from(REPEATS)
        })
        .fold(f64::INFINITY, f64::min)
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
                    let NttRates { scalar_forward_ns, scalar_inverse_ns, forward_ns, inverse_ns } = rates;
                    for ns in [scalar_forward_ns, scalar_inverse_ns, forward_ns, inverse_ns] {
                        assert!(ns.is_finite() && ns > 0.0, "{level}");
                    }
                }
                Err(error) => assert!(matches!(error, CpuError::MissingLevel { .. })),
            }
        }
    }
}
