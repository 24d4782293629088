//! `hush-bench ntt`: the transforms of one polynomial in cache against their instruction count.

use std::error::Error;

use hush_cpu::{Level, probe};
use hush_math::modulus::find_primes;

use super::{
    report::{Column, Report, fixed, percent},
    row::{Row, Transform},
};

/// What is told of a row.
pub(super) const COLUMNS: &[Column] = &[
    ("us", 9, |row| fixed(row.transform.as_ref().map(|own| own.nanoseconds / 1e3), 2)),
    ("ns/bfly", 9, |row| fixed(row.transform.as_ref().map(|own| own.ns_per_butterfly), 3)),
    ("x scalar", 8, |row| fixed(row.transform.as_ref().map(|own| own.speedup), 1)),
    ("floor", 6, |row| percent(row.share)),
];
/// Degrees that are measured.
const DEGREES: [usize; 3] = [1024, 2048, 4096];
/// Bits of the primes that are measured.
const PRIME_BITS: [u32; 2] = [29, 31];
/// 512-bit instructions of the forward transform of 4096 coefficients with 52-bit multiply-adds, counted by hand: the
/// butterflies, one transposition, and the last reduction. The floor, for two instructions a cycle.
const FORWARD_OPS: f64 = 19_200.0;
/// As [`FORWARD_OPS`], for the inverse.
const INVERSE_OPS: f64 = 17_300.0;

pub(super) fn run(report: &mut Report) -> Result<(), Box<dyn Error>> {
    let level = Level::from_env()?;
    for degree in DEGREES {
        let butterflies = (degree / 2 * degree.ilog2() as usize) as f64;
        for bits in PRIME_BITS {
            let modulus = find_primes(degree, bits, 1)[0];
            let rates = probe::ntt_rates(level, modulus, degree)?;
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
