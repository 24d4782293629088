//! How slowly a client may read.

use std::time::Duration;

/// Bytes that a client has to take for its patience to start afresh. A timer that any progress
/// resets would let a client hold a response for ever with one byte at a time.
const PROGRESS_BYTES: usize = 16 << 10;

/// What a connection has waited for its client to take the next [`PROGRESS_BYTES`]. Only time in
/// which there is something to write counts, however many responses it is spread over.
pub(crate) struct Pace {
    limit: Duration,
    waited: Duration,
    written: usize,
}

impl Pace {
    /// Waits `limit` for each [`PROGRESS_BYTES`].
    pub(crate) fn new(limit: Duration) -> Pace {
        Pace { limit, waited: Duration::ZERO, written: 0 }
    }

    /// How much longer the write that is pending now may take.
    pub(crate) fn left(&self) -> Duration {
        self.limit.saturating_sub(self.waited)
    }

    /// A write took `waited` and wrote `bytes`.
    pub(crate) fn wrote(&mut self, bytes: usize, waited: Duration) {
        self.waited = self.waited.saturating_add(waited);
        self.written = self.written.saturating_add(bytes);
        if self.written >= PROGRESS_BYTES {
            *self = Pace::new(self.limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    #[test]
    fn single_bytes_use_up_the_limit() {
        let mut pace = Pace::new(LIMIT);
        assert_eq!(pace.left(), LIMIT);
        pace.wrote(1, Duration::from_secs(29));
        assert_eq!(pace.left(), Duration::from_secs(1));
        pace.wrote(1, Duration::from_secs(29));
        assert_eq!(pace.left(), Duration::ZERO);
    }

    #[test]
    fn enough_bytes_renew_it() {
        let mut pace = Pace::new(LIMIT);
        pace.wrote(PROGRESS_BYTES - 1, Duration::from_secs(20));
        assert_eq!(pace.left(), Duration::from_secs(10));
        pace.wrote(1, Duration::from_secs(9));
        assert_eq!(pace.left(), LIMIT);
        pace.wrote(PROGRESS_BYTES - 1, Duration::from_secs(1));
        assert_eq!(pace.left(), Duration::from_secs(29));
    }
}
