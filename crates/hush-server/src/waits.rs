//! How long a query will wait for its scan, and whether that is too long.

use std::time::Duration;

use crate::{client::Client, config::ServerConfig, problem::Problem, turns::Turns};

/// Full batches that may wait, however long they take: one that is about to be scanned, and one that fills meanwhile. So a query
/// that is let in is answered within three scans: the one that it finds, and these.
const LEAST_BATCHES: usize = 2;
/// What a scan is taken to last before there was one.
const FIRST_GUESS: Duration = Duration::from_secs(1);

/// What the scans of a table take, learnt from the last ones.
#[derive(Default)]
pub(crate) struct ScanTime {
    /// Of a full batch.
    full: Option<Duration>,
}

impl ScanTime {
    /// A scan answered `queries` of at most `max_batch`. A batch that is not full takes less than a full one, which takes
    /// at most as much more as it has more queries.
    pub(crate) fn learn(&mut self, queries: usize, max_batch: usize, elapsed: Duration) {
        let most = elapsed.mul_f64((max_batch as f64 / queries.max(1) as f64).max(1.0));
        self.full = Some(match self.full {
            None => most,
            Some(full) if 2 * queries >= max_batch => (full * 3 + elapsed) / 4,
            Some(full) => full.clamp(elapsed.min(most), most),
        });
    }

    /// How long so many queries take, the scan that is going on included.
    fn of(&self, queries: usize, max_batch: usize) -> Duration {
        let scans = 1 + queries.div_ceil(max_batch) as u32;
        self.full.unwrap_or(FIRST_GUESS).saturating_mul(scans)
    }

    /// Queries that may be ahead of one that is let in.
    fn room(&self, max_wait: Duration, max_batch: usize) -> usize {
        let full = self.full.unwrap_or(FIRST_GUESS).max(Duration::from_micros(1));
        let batches = (max_wait.as_secs_f64() / full.as_secs_f64()) as usize;
        batches.max(LEAST_BATCHES).saturating_mul(max_batch)
    }

    /// Lets `queries` more of `client` in behind those that wait, if the first of them is not scanned too late.
    ///
    /// # Errors
    /// `throttled` if the client would have more than its share of the queue, `overloaded` if too much waits. Both say when what
    /// waits now will have been answered.
    pub(crate) fn admit<T>(
        &self,
        waiting: &Turns<T>,
        client: Client,
        queries: usize,
        config: &ServerConfig,
        max_batch: usize,
    ) -> Result<(), Problem> {
        let overloaded = || {
            let problem = Problem::overloaded("too many queries are waiting for this table");
            Err(problem.retry_in(self.of(waiting.len(), max_batch)))
        };
        if waiting.len() + queries > config.max_queue {
            return overloaded();
        }
        let own = waiting.of(client);
        if own + queries > config.client_queue() {
            let problem = Problem::used_up("queries that wait for this table");
            return Err(problem.retry_in(self.of(own, max_batch)));
        }
        if waiting.ahead_of(client) >= self.room(config.max_wait, max_batch) {
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

    fn client(last: u8) -> Client {
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

    #[test]
    fn long_scans_have_two_batches_waiting_and_short_ones_what_takes_no_longer_than_allowed() {
        let (long, short) = (learnt(&[(8, 4 * SECOND)]), learnt(&[(8, SECOND / 100)]));
        assert_eq!(long.room(SECOND / 4, BATCH), 16);
        assert_eq!(short.room(SECOND / 4, BATCH), 25 * 8);
        assert_eq!(ScanTime::default().room(SECOND / 4, BATCH), 16);
        assert_eq!(learnt(&[(8, Duration::ZERO)]).room(Duration::MAX, BATCH), usize::MAX);
    }

    #[test]
    fn those_who_ask_little_are_let_in_when_others_have_filled_the_queue() {
        let config = ServerConfig { max_queries: 4, client_share: 100, ..ServerConfig::default() };
        let time = learnt(&[(8, 3 * SECOND)]);
        let mut waiting = Turns::default();
        let admit = |waiting: &Turns<()>, name| time.admit(waiting, client(name), 1, &config, BATCH);
        for _ in 0..16 {
            admit(&waiting, 1).unwrap();
            waiting.push(client(1), ());
        }
        let refused = admit(&waiting, 1).unwrap_err();
        assert!(refused.is(Code::Overloaded));
        // The scan that is going on, and two more.
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
        let time = learnt(&[(8, SECOND)]);
        let mut waiting = Turns::default();
        assert!(time.admit(&waiting, client(1), 100, &config, BATCH).is_ok());
        (0..100).for_each(|_| waiting.push(client(1), ()));
        assert!(time.admit(&waiting, client(1), 1, &config, BATCH).unwrap_err().is(Code::Overloaded));
        assert!(time.admit(&waiting, client(1), 200, &config, BATCH).unwrap_err().is(Code::Throttled));
        assert!(time.admit(&waiting, client(2), 100, &config, BATCH).is_ok());
    }
}
