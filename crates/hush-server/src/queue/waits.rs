//! The time that a query waits for its scan, and whether that is too long.

use std::time::Duration;

use tokio::time::Instant;

use crate::{access::client::ClientAddress, config::ServerConfig, problem::Problem, queue::turns::Turns};

/// The longest wait of an admitted query for its own scan, in scan times, however long a scan takes: the rest of the running
/// scan, and in its last quarter a full batch before its own. That is enough for batches to be full. With its own scan, and the
/// time for bodies and answers, an admitted query is answered within three scan times.
const LEAST_SCANS: f64 = 1.25;
/// The assumed duration of a scan before one was measured.
const FIRST_GUESS: Duration = Duration::from_secs(1);

/// An estimate of how long a table's scans take, learnt from the last ones.
#[derive(Default)]
pub(crate) struct ScanTime {
    /// The estimated duration of the scan of a full batch.
    full: Option<Duration>,
    /// The time at which the running scan began, if there is one.
    began: Option<Instant>,
}

impl ScanTime {
    /// Notes that a scan begins.
    pub(crate) fn begin(&mut self) {
        self.began = Some(Instant::now());
    }

    /// Notes that the running scan is over.
    pub(crate) fn end(&mut self) {
        self.began = None;
    }

    /// Learns from a scan that answered `queries` of at most `max_batch` in `elapsed`. A batch that is not full takes no longer
    /// than a full one, and a full one at most `max_batch / queries` times as long:
    ///
    /// ```text
    /// most = elapsed * max_batch / queries
    /// full = most                           for the first scan
    ///        (3 * full + elapsed) / 4       if the batch was at least half full
    ///        clamp(full, elapsed, most)     otherwise
    /// ```
    pub(crate) fn learn(&mut self, queries: usize, max_batch: usize, elapsed: Duration) {
        let most = elapsed.mul_f64((max_batch as f64 / queries.max(1) as f64).max(1.0));
        self.full = Some(match self.full {
            None => most,
            Some(full) if 2 * queries >= max_batch => (full * 3 + elapsed) / 4,
            Some(full) => full.clamp(elapsed.min(most), most),
        });
    }

    fn full(&self) -> Duration {
        self.full.unwrap_or(FIRST_GUESS)
    }

    /// Returns how long a query waits for its scan if `ahead` queries are before it.
    fn wait(&self, ahead: usize, max_batch: usize) -> Duration {
        let left = self.began.map_or(Duration::ZERO, |began| self.full().saturating_sub(began.elapsed()));
        left.saturating_add(self.full().saturating_mul((ahead / max_batch) as u32))
    }

    /// Admits `queries` of `client` behind the queries that wait, if the first of them is not scanned too late.
    ///
    /// # Errors
    /// `throttled` if the client would have more than its share of the queue, `overloaded` if too many queries wait. Both tell
    /// the client when the queries that wait now will have been answered.
    pub(crate) fn admit<T>(
        &self,
        waiting: &Turns<T>,
        client: ClientAddress,
        queries: usize,
        config: &ServerConfig,
        max_batch: usize,
    ) -> Result<(), Problem> {
        let overloaded = || {
            let problem = Problem::overloaded("too many queries are waiting for this table");
            Err(problem.retry_in(self.wait(waiting.len() + max_batch, max_batch)))
        };
        if waiting.len() + queries > config.max_queue {
            return overloaded();
        }
        let own = waiting.of(client);
        if own + queries > config.client_queue() {
            let problem = Problem::used_up("queries that wait for this table");
            return Err(problem.retry_in(self.wait(own + max_batch, max_batch)));
        }
        let most = config.max_wait.max(self.full().mul_f64(LEAST_SCANS));
        if self.wait(waiting.ahead_of(client), max_batch) > most {
            return overloaded();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::problem::Code;

    const BATCH: usize = 8;
    const SECOND: Duration = Duration::from_secs(1);

    fn client(last: u8) -> ClientAddress {
        IpAddr::from([10, 0, 0, last]).into()
    }

    fn learnt(scans: &[(usize, Duration)]) -> ScanTime {
        let mut time = ScanTime::default();
        scans.iter().for_each(|&(queries, elapsed)| time.learn(queries, BATCH, elapsed));
        time
    }

    #[test]
    fn a_scan_of_a_full_batch_is_learnt() {
        assert_eq!(learnt(&[(1, SECOND)]).full, Some(8 * SECOND));
        assert_eq!(learnt(&[(1, SECOND), (4, SECOND)]).full, Some((3 * 8 * SECOND + SECOND) / 4));
        assert_eq!(learnt(&[(8, 10 * SECOND), (2, SECOND)]).full, Some(4 * SECOND));
        assert_eq!(learnt(&[(8, SECOND), (1, 2 * SECOND)]).full, Some(2 * SECOND));
        let steady = learnt(&[(8, 8 * SECOND)].repeat(20));
        assert_eq!(steady.full, Some(8 * SECOND));
    }

    /// Returns the estimate for a scan that has been running since `since`.
    fn going_on(full: Duration, since: Duration) -> ScanTime {
        ScanTime { full: Some(full), began: Instant::now().checked_sub(since) }
    }

    fn admits(time: &ScanTime, waiting: usize, max_wait: Duration) -> bool {
        let config = ServerConfig { max_wait, client_share: 100, ..ServerConfig::default() };
        let mut turns = Turns::default();
        (0..waiting).for_each(|_| turns.push(client(1), ()));
        time.admit(&turns, client(1), 1, &config, BATCH).is_ok()
    }

    #[test]
    fn a_batch_may_wait_and_in_the_last_quarter_of_a_scan_another() {
        let early = going_on(4 * SECOND, SECOND);
        let late = going_on(4 * SECOND, 7 * SECOND / 2);
        assert!(admits(&early, 7, Duration::ZERO) && !admits(&early, 8, Duration::ZERO));
        assert!(admits(&late, 15, Duration::ZERO) && !admits(&late, 16, Duration::ZERO));
        // A scan that takes longer than those before it is as good as over.
        let longer = going_on(4 * SECOND, 9 * SECOND);
        assert!(admits(&longer, 15, Duration::ZERO) && !admits(&longer, 16, Duration::ZERO));
        // More batches may wait if their scans are short enough to be over in time.
        let short = going_on(SECOND / 100, Duration::ZERO);
        assert!(admits(&short, 79, SECOND / 10) && !admits(&short, 88, SECOND / 10));
        assert!(admits(&short, 1000, Duration::MAX));
    }

    #[test]
    fn those_who_ask_little_are_let_in_when_others_have_filled_the_queue() {
        let config = ServerConfig { max_queries: 4, client_share: 100, ..ServerConfig::default() };
        let time = going_on(3 * SECOND, 3 * SECOND);
        let mut waiting = Turns::default();
        let admit = |waiting: &Turns<()>, name| time.admit(waiting, client(name), 1, &config, BATCH);
        for _ in 0..16 {
            admit(&waiting, 1).unwrap();
            waiting.push(client(1), ());
        }
        let refused = admit(&waiting, 1).unwrap_err();
        assert!(refused.is(Code::Overloaded));
        // Two batches that wait take two scans, and the query itself one.
        assert_eq!(refused.retry_after(), Some(9));
        for name in 2..17 {
            admit(&waiting, name).unwrap();
            waiting.push(client(name), ());
        }
        // Sixteen clients are ahead of the seventeenth, which would be scanned third.
        assert!(admit(&waiting, 17).is_err() && admit(&waiting, 2).is_err());
    }

    #[test]
    fn a_request_of_many_queries_is_let_in_when_its_first_has_room() {
        let config = ServerConfig { max_queries: 100, ..ServerConfig::default() };
        let time = going_on(SECOND, Duration::ZERO);
        let mut waiting = Turns::default();
        assert!(time.admit(&waiting, client(1), 100, &config, BATCH).is_ok());
        (0..100).for_each(|_| waiting.push(client(1), ()));
        assert!(time.admit(&waiting, client(1), 1, &config, BATCH).unwrap_err().is(Code::Overloaded));
        assert!(time.admit(&waiting, client(1), 200, &config, BATCH).unwrap_err().is(Code::Throttled));
        assert!(time.admit(&waiting, client(2), 100, &config, BATCH).is_ok());
    }
}
