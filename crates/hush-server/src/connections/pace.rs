//! How slowly a client may read.

use std::time::Duration;

/// Bytes a second that a client has to take in the long run, as over a slow modem. A timer that any progress resets would let
/// a client hold a response, and the memory that it takes, for hours with a byte at a time.
pub(crate) const LEAST_RATE: f64 = 4096.0;

/// A connection's patience with its client. It shrinks while there is something to write that the client does not take, and grows
/// with what the client takes, up to where it began.
pub(crate) struct Pace {
    limit: Duration,
    left: Duration,
}

impl Pace {
    /// Patience of `limit`.
    pub(crate) fn new(limit: Duration) -> Pace {
        Pace { limit, left: limit }
    }

    /// Returns how much longer the write that is pending now may take.
    pub(crate) fn left(&self) -> Duration {
        self.left
    }

    /// A write took `waited` and wrote `bytes`.
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

    /// Seconds after which a client that takes `bytes` every second is cut off, if it ever is within an hour.
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
