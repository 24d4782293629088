//! Welch's t over the times of two classes: a fixed secret, and random ones.
//!
//! Source: Reparaz, Balasch, Verbauwhede, "Dude, is my code constant time?" (2017): interleaved classes, and a test for each of
//! several bounds above which times are left out, because long times are mostly the machine's.

use std::{
    fmt,
    time::{Duration, Instant},
};

use hush_math::csprng::Csprng;

use super::cases::{Case, Secret};

/// The largest |t| that is taken for chance.
const LIMIT: f64 = 4.5;
/// The first times of a comparison. They set the bounds, and are in no test.
const FIRST: usize = 100;
/// The fewest times of a comparison.
const FEWEST: usize = 400;
/// The number of bounds. The last test leaves no time out.
const BOUNDS: usize = 12;

/// The number, the mean and the sum of squared differences of some times (Welford).
#[derive(Clone, Copy, Default)]
struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn push(&mut self, time: f64) {
        self.count += 1.0;
        let difference = time - self.mean;
        self.mean += difference / self.count;
        self.squares += difference * (time - self.mean);
    }

    /// Returns the variance of the mean.
    fn variance(&self) -> f64 {
        self.squares / (self.count - 1.0) / self.count
    }
}

/// The result of a comparison: the test with the largest |t|.
pub(crate) struct Comparison {
    samples: usize,
    t: f64,
    /// The mean times of the two classes, in nanoseconds.
    means: [f64; 2],
}

impl Comparison {
    pub(crate) fn is_significant(&self) -> bool {
        // Times that cannot be compared count as different.
        !matches!(self.t.abs(), 0.0..=LIMIT)
    }

    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        self.t.signum() == other.t.signum()
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { samples, t, means: [fixed, random] } = self;
        write!(f, "t {t:.1}, {fixed:.0} ns and {random:.0} ns, {samples} times")
    }
}

/// Times `case` for so many seconds, the classes in random order.
pub(crate) fn compare(case: &Case, seconds: f64) -> Comparison {
    let mut rng = Csprng::from_os();
    let ready = (case.start)(&Secret::random(&mut rng));
    let fixed = Secret::fixed(true);
    let mut first = Vec::new();
    let mut bounds = Vec::new();
    let mut tests = [[Moments::default(); 2]; BOUNDS];
    let mut samples = 0;
    let start = Instant::now();
    while samples < FEWEST || start.elapsed() < Duration::from_secs_f64(seconds) {
        let class = (rng.next_u32() & 1) as usize;
        let random = Secret::random(&mut rng);
        let work = ready(if class == 0 { &fixed } else { &random });
        let begin = Instant::now();
        work();
        let time = begin.elapsed().as_nanos() as f64;
        if first.len() < FIRST {
            first.push(time);
            continue;
        }
        if bounds.is_empty() {
            first.sort_unstable_by(f64::total_cmp);
            // The bounds are closer to each other where times are long, as in the paper.
            let share = |at: usize| 1.0 - 0.5f64.powf(8.0 * (at + 1) as f64 / BOUNDS as f64);
            bounds = (0..BOUNDS - 1).map(|at| first[(share(at) * FIRST as f64) as usize]).collect();
            bounds.push(f64::INFINITY);
        }
        samples += 1;
        for (test, &bound) in tests.iter_mut().zip(&bounds) {
            if time <= bound {
                test[class].push(time);
            }
        }
    }
    let t = |[a, b]: &[Moments; 2]| (a.mean - b.mean) / (a.variance() + b.variance()).sqrt();
    let enough = tests.iter().filter(|test| test.iter().all(|class| class.count >= 30.0));
    let most = enough.max_by(|a, b| t(a).abs().total_cmp(&t(b).abs())).unwrap_or(&tests[BOUNDS - 1]);
    Comparison { samples, t: t(most), means: most.map(|class| class.mean) }
}
