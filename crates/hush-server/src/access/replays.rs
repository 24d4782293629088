//! Sealed requests that were answered already. A relay, or whoever else sees a sealed request, can send it again (RFC 9458
//! section 6.5).
//!
//! No two requests have the same encapsulated key, so the key names the request. The gateway remembers it for [`WINDOW`] at
//! least. The client's `Date`, which is sealed with the request, bounds the memory: a request is refused unless its date is later
//! than that of every forgotten request. A request made before the server started is refused too, since an earlier process may
//! have answered it. If requests come faster than the memory is meant for, older ones are forgotten sooner. Clients with slow
//! clocks then take the server's date, and still no request is answered twice.

use std::{
    collections::HashSet,
    mem,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use tokio::time::Instant;

/// The bytes of an encapsulated key that are kept. Two of 2^64 requests agree in as many.
pub(crate) const NAME_BYTES: usize = 16;
/// The least time for which a request is remembered, unless [`MOST`] come meanwhile.
const WINDOW: Duration = Duration::from_secs(300);
/// The most requests of a generation. Two full generations take 36 MB.
const MOST: usize = 1 << 19;

/// The first bytes of a request's encapsulated key.
pub(crate) type RequestName = [u8; NAME_BYTES];

/// The requests of a gateway that were answered.
pub(crate) struct Replays(Mutex<RequestMemory>);

/// A request that is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// The request was answered before.
    Replay,
    /// The request has no date, a date in the future, or a date so old that the request may be forgotten.
    Date,
}

struct RequestMemory {
    since: Instant,
    current: Generation,
    previous: Generation,
    /// The latest date of a request that is not remembered, in seconds since 1970.
    forgotten: u64,
    most: usize,
}

#[derive(Default)]
struct Generation {
    names: HashSet<RequestName>,
    /// The latest date of a request, in seconds since 1970.
    latest: u64,
}

impl Replays {
    /// Creates a memory that accepts requests made after `now`, in seconds since 1970.
    pub(crate) fn new(now: u64) -> Replays {
        Replays::with_most(now, MOST)
    }

    /// Creates a memory whose generations have at most `most` requests each.
    fn with_most(now: u64, most: usize) -> Replays {
        let current = Generation::default();
        let previous = Generation::default();
        Replays(Mutex::new(RequestMemory { since: Instant::now(), current, previous, forgotten: now, most }))
    }

    /// Accepts an opened request, once. `date` is when its client made it, by the client's clock, and `now` the time of the
    /// server, both in seconds since 1970.
    ///
    /// # Errors
    /// [`Unanswered::Replay`] for a request that was accepted before, also if two threads take the same one. [`Unanswered::Date`]
    /// for a date that is missing, later than `now`, or no later than that of a forgotten request.
    pub(crate) fn admit(&self, name: RequestName, date: Option<u64>, now: u64) -> Result<(), Unanswered> {
        let mut seen = self.0.lock();
        if seen.since.elapsed() >= WINDOW {
            seen.turn();
        }
        if seen.current.names.contains(&name) || seen.previous.names.contains(&name) {
            return Err(Unanswered::Replay);
        }
        let date = date.filter(|date| seen.forgotten < *date && *date <= now).ok_or(Unanswered::Date)?;
        if seen.current.names.len() >= seen.most {
            seen.turn();
            if date <= seen.forgotten {
                return Err(Unanswered::Date);
            }
        }
        seen.current.names.insert(name);
        seen.current.latest = seen.current.latest.max(date);
        Ok(())
    }
}

impl RequestMemory {
    /// Begins a generation, and forgets the one before the last.
    fn turn(&mut self) {
        self.since = Instant::now();
        let old = mem::replace(&mut self.previous, mem::take(&mut self.current));
        self.forgotten = self.forgotten.max(old.latest);
    }
}

/// Returns a time in seconds since 1970.
pub(crate) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_000_000;

    fn name(number: u64) -> RequestName {
        u128::from(number).to_le_bytes()
    }

    #[test]
    fn a_request_is_taken_once() {
        let replays = Replays::new(START);
        assert_eq!(replays.admit(name(1), Some(START + 5), START + 9), Ok(()));
        for date in [Some(START + 5), Some(START), Some(START + 99), None] {
            assert_eq!(replays.admit(name(1), date, START + 9), Err(Unanswered::Replay));
        }
        assert_eq!(replays.admit(name(2), Some(START + 9), START + 9), Ok(()));
        // A request with a date before the start, in the future or missing is refused and not remembered.
        for date in [Some(START), Some(0), Some(START + 10), None] {
            assert_eq!(replays.admit(name(3), date, START + 9), Err(Unanswered::Date), "{date:?}");
        }
        assert_eq!(replays.admit(name(3), Some(START + 1), START + 9), Ok(()));
    }

    #[test]
    fn a_full_memory_refuses_what_it_may_have_forgotten() {
        let replays = Replays::with_most(START, 10);
        // Two requests share a date and some are out of order, so that generations end between requests of one date.
        let date = |number: u64| START + 1 + number / 2 - number % 5 / 4;
        let now = START + 1000;
        let taken: Vec<u64> = (0..100)
            .filter(|&number| replays.admit(name(number), Some(date(number)), now) == Ok(()))
            .collect();
        assert!(taken.len() > 90, "{taken:?}");
        let seen = replays.0.lock();
        assert!(seen.current.names.len() <= 10 && seen.previous.names.len() <= 10);
        drop(seen);
        for number in taken {
            let again = replays.admit(name(number), Some(date(number)), now);
            assert!(again.is_err(), "request {number} is answered twice");
        }
    }
}
