//! How long the parts of the step take, for the benchmarks.

use std::sync::Arc;

use hush_he::{
    entities::ColumnMasks,
    params::{COLPACK_N2048_Q52, RingContext},
};
use hush_math::csprng::Csprng;
use hush_ops::contract::RingOps;

use super::{ChainPlan, chain_hint, with_block};
use crate::{Cpu, CpuError, Level};

/// The shortest times of the parts of `chain_hint`, in milliseconds of a processor: a whole plaintext under the default
/// set, on one thread.
#[derive(Clone, Copy, Debug)]
pub struct ChainTimes {
    /// Tables for the masks, made once.
    pub plan_ms: f64,
    /// Lift and transform of the hint's columns.
    pub spread_columns_ms: f64,
    /// Transform and rotation of the rows.
    pub spread_rows_ms: f64,
    /// The chain of key switches.
    pub switch_ms: f64,
    /// Rotation and transform of the digits' rows.
    pub collect_rows_ms: f64,
    /// Transform of the columns, and their bytes.
    pub collect_columns_ms: f64,
    /// The whole step, without the plan.
    pub total_ms: f64,
}

/// Times `chain_hint` at `level`: the best of `runs` runs, for each part.
///
/// # Errors
/// [`CpuError`] if the machine lacks `level` or a thread cannot be started.
pub fn chain_times(level: Level, runs: usize) -> Result<ChainTimes, CpuError> {
    let cpu = Cpu::with_level(level, 1)?;
    let context = Arc::new(RingContext::new(*COLPACK_N2048_Q52.ring()));
    let (ring, masks) = (cpu.open_ring(context.clone()), ColumnMasks::new(&context));
    let degree = context.kept().degree();
    let mut hint = vec![0; degree * degree];
    Csprng::insecure_from_seed(1).fill_u32(&mut hint);
    let mut best = ChainTimes {
        plan_ms: f64::INFINITY,
        spread_columns_ms: f64::INFINITY,
        spread_rows_ms: f64::INFINITY,
        switch_ms: f64::INFINITY,
        collect_rows_ms: f64::INFINITY,
        collect_columns_ms: f64::INFINITY,
        total_ms: f64::INFINITY,
    };
    // All on the backend's one thread, whose time is measured.
    cpu.install(|| {
        for _ in 0..runs {
            let plan = keep_best(&mut best.plan_ms, || ChainPlan::new(&ring, &masks));
            with_block(&cpu, &ring, &plan, |block| {
                keep_best(&mut best.spread_columns_ms, || block.spread_columns(&hint));
                keep_best(&mut best.spread_rows_ms, || block.spread_rows());
                keep_best(&mut best.switch_ms, || block.switch());
                keep_best(&mut best.collect_rows_ms, || block.collect_rows());
                keep_best(&mut best.collect_columns_ms, || block.collect_columns(degree))
                    .expect("random entries fit");
            });
            keep_best(&mut best.total_ms, || chain_hint(&cpu, &ring, &plan, &hint))
                .expect("random entries fit");
        }
    });
    Ok(best)
}

/// Runs `work` and lowers `best` to its milliseconds.
fn keep_best<R>(best: &mut f64, work: impl FnOnce() -> R) -> R {
    let start = thread_ms();
    let result = work();
    *best = best.min(thread_ms() - start);
    result
}

/// Time that a processor has spent on this thread: what else runs disturbs it less than that of a clock.
fn thread_ms() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_finite_and_positive() {
        let times = chain_times(Level::detect(), 1).expect("the machine has its level");
        for ms in [times.plan_ms, times.switch_ms, times.collect_columns_ms, times.total_ms] {
            assert!(ms.is_finite() && ms > 0.0);
        }
    }
}
