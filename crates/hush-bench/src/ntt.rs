//! `hush-bench ntt`: the transforms of one polynomial in cache against their instruction count.

use std::error::Error;

use hush_cpu::{Level, probe};
use hush_math::modulus::find_primes;
use serde::Serialize;

use super::Args;

/// Degrees that are measured.
const DEGREES: [usize; 3] = [1024, 2048, 4096];
/// Bits of the primes that are measured.
const PRIME_BITS: [u32; 2] = [29, 31];
/// 512-bit instructions of the forward transform of 4096 coefficients with 52-bit multiply-adds, counted by hand: the
/// butterflies, one transposition, and the last reduction. The floor, for two instructions a cycle.
const FORWARD_OPS: f64 = 19_200.0;
/// As [`FORWARD_OPS`], for the inverse.
const INVERSE_OPS: f64 = 17_300.0;

/// One transform.
#[derive(Serialize)]
struct Row {
    name: String,
    level: &'static str,
    degree: usize,
    modulus: u32,
    nanoseconds: f64,
    ns_per_butterfly: f64,
    /// Time of the portable code over this time.
    speedup: f64,
    /// 10^9 512-bit multiply-adds of 52 bits a second, measured in the same run.
    ifma_gops: Option<f64>,
    /// Share of the instruction floor at that rate; none without IFMA.
    share: Option<f64>,
}

pub(super) fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let level = Level::from_env()?;
    if !args.json {
        println!("{:<26} {:>9} {:>9} {:>8} {:>6}", "what", "us", "ns/bfly", "x scalar", "floor");
    }
    for degree in DEGREES {
        for bits in PRIME_BITS {
            let modulus = find_primes(degree, bits, 1)[0];
            let rates = probe::ntt_rates(level, modulus, degree)?;
            let row = |name: &str, ns: f64, scalar_ns: f64, ops: f64| {
                let butterflies = (degree / 2 * degree.ilog2() as usize) as f64;
                let floor_ns = rates.ifma_gops.map(|gops| ops * butterflies / (2048.0 * 12.0) / gops);
                Row {
                    name: format!("{name} N={degree} {bits}-bit"),
                    level: level.name(),
                    degree,
                    modulus,
                    nanoseconds: ns,
                    ns_per_butterfly: ns / butterflies,
                    speedup: scalar_ns / ns,
                    ifma_gops: rates.ifma_gops,
                    share: floor_ns.map(|floor_ns| floor_ns / ns),
                }
            };
            print(args.json, &row("forward", rates.forward_ns, rates.scalar_forward_ns, FORWARD_OPS));
            print(args.json, &row("inverse", rates.inverse_ns, rates.scalar_inverse_ns, INVERSE_OPS));
        }
    }
    Ok(())
}

fn print(json: bool, row: &Row) {
    if json {
        println!("{}", serde_json::to_string(row).expect("a row is plain data"));
        return;
    }
    println!(
        "{:<26} {:>9.2} {:>9.3} {:>8.1} {:>6}",
        row.name,
        row.nanoseconds / 1e3,
        row.ns_per_butterfly,
        row.speedup,
        row.share.map_or("-".into(), |share| format!("{:.0}%", 100.0 * share))
    );
}
