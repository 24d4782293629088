//! The time that work takes, by the clock of the host.

use std::time::Instant;

/// The fewest runs of which the median counts.
pub(crate) const RUNS: usize = 3;
/// The least seconds of all runs.
const SPAN: f64 = 0.5;

/// Returns the median time of `work` in seconds, after a run that does not count, and the last result. Fails with the first error
/// of `work`.
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

/// Returns the bound that `share` of `seconds` stay within. `seconds` has at least one.
pub(crate) fn quantile(mut seconds: Vec<f64>, share: f64) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[((seconds.len() - 1) as f64 * share) as usize]
}
