//! How long work takes, by the clock of the host.

use std::time::Instant;

/// Fewest runs of which the median counts.
const RUNS: usize = 3;
/// Seconds of all runs, at least.
const SPAN: f64 = 0.5;

/// Returns the middle of several timings in seconds, after a run that does not count, and the last result.
pub(crate) fn timed<T, E>(mut work: impl FnMut() -> Result<T, E>) -> Result<(f64, T), E> {
    let mut result = work()?;
    let begin = Instant::now();
    let mut seconds = Vec::new();
    while seconds.len() < RUNS || begin.elapsed().as_secs_f64() < SPAN {
        let start = Instant::now();
        result = work()?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    Ok((quantile(seconds, 0.5), result))
}

/// Returns the bound that `share` of `seconds` stay within; there is at least one.
pub(crate) fn quantile(mut seconds: Vec<f64>, share: f64) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[((seconds.len() - 1) as f64 * share) as usize]
}
