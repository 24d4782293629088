//! The limits of retries: how often a server is asked again, and for how long.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::Refused;

/// The number of retries without new bytes: for a server that has never answered, and for one that has.
pub(crate) const FIRST_ATTEMPTS: u32 = 2;
const ATTEMPTS: u32 = 8;
/// The wait after the first failure; each further wait is twice as long.
const PAUSE: Duration = Duration::from_millis(200);
/// The time for an interrupted download, beside the time that its bytes take at [`LEAST_RATE`].
const PATIENCE: Duration = Duration::from_secs(3600);
/// The slowest accepted rate, in bytes per second.
const LEAST_RATE: u64 = 4 << 10;

/// The attempts and the time that a download may still take. Only bytes beyond the furthest point so far are progress.
pub(crate) struct Patience {
    begun: Instant,
    /// The most bytes that had ever arrived.
    furthest: u64,
    /// The number of failures since `furthest` grew.
    failures: u32,
    /// The number of failures allowed before the first byte.
    first_attempts: u32,
    /// The wait after the first failure.
    pub(crate) pause: Duration,
}

impl Patience {
    /// Creates the limits for a server that has not answered yet.
    pub(crate) fn with_new() -> Self {
        Self { first_attempts: FIRST_ATTEMPTS, ..Self::with_known() }
    }

    /// Creates the limits for a server that has answered before.
    pub(super) fn with_known() -> Self {
        let begun = Instant::now();
        Self { begun, furthest: 0, failures: 0, first_attempts: ATTEMPTS, pause: PAUSE }
    }

    /// Records that `here` bytes have arrived.
    pub(crate) fn reach(&mut self, here: u64) {
        if here > self.furthest {
            (self.furthest, self.failures) = (here, 0);
        }
    }

    /// Returns how long to wait after a failure at `now`. Returns the failure if retrying is useless or the limits are reached.
    pub(crate) fn after(&mut self, refused: Refused, now: Instant) -> Result<Duration, Refused> {
        let attempts = if self.furthest == 0 { self.first_attempts } else { ATTEMPTS };
        let longest = PATIENCE + Duration::from_secs(self.furthest / LEAST_RATE);
        let is_enough = self.failures >= attempts || now.saturating_duration_since(self.begun) > longest;
        if is_enough || refused.advice.is_some() {
            return Err(refused);
        }
        self.failures += 1;
        Ok(self.pause * (1 << (self.failures - 1)))
    }

    /// Returns the most bytes that had ever arrived.
    pub(crate) fn furthest(&self) -> u64 {
        self.furthest
    }
}

/// Repeats a request while a retry may succeed, at most `attempts` times after the first.
pub(crate) async fn persist<T, F>(attempts: u32, mut request: impl FnMut() -> F) -> Result<T, Refused>
where
    F: Future<Output = Result<T, Refused>>,
{
    for attempt in 0..attempts {
        match request().await {
            Err(Refused { advice: None, .. }) => sleep(PAUSE * (1 << attempt)).await,
            other => return other,
        }
    }
    request().await
}

#[cfg(test)]
mod tests {
    use super::{
        super::{SILENT, TOO_SOON},
        *,
    };

    #[test]
    fn the_same_bytes_again_are_no_progress() {
        let mut patience = Patience::with_new();
        let now = patience.begun;
        let mut fail = |here, now| {
            patience.reach(here);
            patience.after(Refused::for_now(TOO_SOON), now)
        };
        assert_eq!(fail(1000, now).unwrap(), PAUSE);
        for failures in 1..ATTEMPTS {
            assert_eq!(fail(u64::from(failures), now).unwrap(), PAUSE * (1 << failures));
        }
        assert!(fail(1000, now).is_err());
        assert_eq!(fail(1001, now).unwrap(), PAUSE, "one byte more is");
        let late = PATIENCE + Duration::from_secs(1);
        assert!(fail(1002, now + late).is_err(), "but not for ever");
        assert!(fail(1002 + LEAST_RATE, now + late).is_ok());
    }

    #[test]
    fn a_server_that_never_answers_is_given_up_soon() {
        let mut patience = Patience::with_new();
        let mut fail = || patience.after(Refused::for_now(SILENT), Instant::now());
        assert!((0..FIRST_ATTEMPTS).all(|_| fail().is_ok()) && fail().is_err());
        let mut patience = Patience::with_known();
        let mut fail = || patience.after(Refused::for_now(SILENT), Instant::now());
        assert!((0..ATTEMPTS).all(|_| fail().is_ok()) && fail().is_err());
        assert!(Patience::with_known().after(Refused::changed(), Instant::now()).is_err());
    }
}
