//! The least pace at which a client must read.

use std::time::Duration;

/// The least rate at which a client must read in the long run, in bytes a second: that of a slow modem. A timer that any progress
/// resets is no bound: a client could hold a response and its memory for hours, a byte at a time.
pub(crate) const LEAST_RATE: f64 = 4096.0;

/// The patience of a connection with its client. The patience shrinks while the client does not take bytes that wait. It grows,
/// up to its initial value, with the bytes that the client takes.
pub(crate) struct Pace {
    limit: Duration,
    left: Duration,
}

impl Pace {
    /// Creates a pace with a patience of at most `limit`.
    pub(crate) fn new(limit: Duration) -> Pace {
        Pace { limit, left: limit }
    }

    /// Returns how much longer the write that is pending now may take.
    pub(crate) fn left(&self) -> Duration {
        self.left
    }

    /// Notes that a write of `bytes` waited for `waited`:
    ///
    /// ```text
    /// left = min(max(left - waited, 0) + bytes / LEAST_RATE, limit)
    /// ```
    pub(crate) fn wrote(&mut self, bytes: usize, waited: Duration) {
        let earned = Duration::from_secs_f64(bytes as f64 / LEAST_RATE);
        self.left = self.left.saturating_sub(waited).saturating_add(earned).min(self.limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);
    const SECOND: Duration = Duration::from_secs(1);

    /// Returns the seconds after which a client that takes `bytes` every second is cut off; `None` if it is not within an hour.
    fn patience(bytes: usize) -> Option<u64> {
        let mut pace = Pace::new(LIMIT);
        (1..3600).find(|_| {
            let is_over = pace.left() < SECOND;
            pace.wrote(bytes, SECOND);
            is_over
        })
    }

    #[test]
    fn a_client_that_reads_too_slowly_is_cut_off() {
        assert_eq!(patience(1), Some(31));
        assert_eq!(patience(LEAST_RATE as usize / 2), Some(60));
        assert_eq!(patience(LEAST_RATE as usize), None);
    }

    #[test]
    fn patience_is_earned_and_does_not_pile_up() {
        let mut pace = Pace::new(LIMIT);
        assert_eq!(pace.left(), LIMIT);
        pace.wrote(1 << 30, SECOND);
        assert_eq!(pace.left(), LIMIT);
        pace.wrote(0, 25 * SECOND);
        assert_eq!(pace.left(), 5 * SECOND);
        pace.wrote(2 * LEAST_RATE as usize, SECOND);
        assert_eq!(pace.left(), 6 * SECOND);
        pace.wrote(0, 60 * SECOND);
        assert_eq!(pace.left(), Duration::ZERO);
    }
}
