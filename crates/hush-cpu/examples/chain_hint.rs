//! Times of the parts of `chain_hint` for one plaintext of the default set, the best of several: `chain_hint [RUNS]`.
//!
//! One thread, at the level that `HUSH_CPU` names. The hint is random: no part looks at its values.

use hush_cpu::{Level, probe};
use hush_he::params::COLPACK_N2048_Q52;

fn main() {
    let runs = std::env::args().nth(1).map_or(10, |runs| runs.parse().expect("a number"));
    let level = Level::from_env().expect("the machine has the level that HUSH_CPU names");
    let ring = COLPACK_N2048_Q52.ring();
    let ntt = probe::ntt_rates(level, ring.kept_primes()[0], ring.degree()).expect("the level");
    println!("{} at level {level}, one plaintext of {} rows", ring.name(), ring.degree());
    println!("transforms      {:9.2} us forward, {:.2} inverse", ntt.forward_ns / 1e3, ntt.inverse_ns / 1e3);
    let times = probe::chain_times(level, runs).expect("the level");
    println!("plan            {:9.2} ms, once", times.plan_ms);
    println!("spread columns  {:9.2} ms", times.spread_columns_ms);
    println!("spread rows     {:9.2} ms", times.spread_rows_ms);
    println!("switch          {:9.2} ms", times.switch_ms);
    println!("collect rows    {:9.2} ms", times.collect_rows_ms);
    println!("collect columns {:9.2} ms", times.collect_columns_ms);
    println!("chain_hint      {:9.2} ms", times.total_ms);
}
