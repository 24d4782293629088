//! The limit of queries per second and client address, by token buckets.

use std::{collections::HashMap, hash::Hash};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{access::client::ClientAddress, config::Throttle};

/// The most clients that are remembered. Beyond that, the server forgets all clients that are not in debt, or else all clients.
/// Memory stays bounded, and the price is a fresh burst.
const MAX_CLIENTS: usize = 1 << 16;

/// The buckets of all clients (or other keys) that asked lately.
pub(crate) struct Buckets<K = ClientAddress> {
    limit: Throttle,
    buckets: Mutex<HashMap<K, Bucket>>,
}

#[derive(Clone, Copy)]
struct Bucket {
    /// The queries that the client may make now. Negative after a request with many queries: they are counted once the body is
    /// read, and it is read if the client may make at least one.
    tokens: f64,
    /// The time at which `tokens` was right.
    at: Instant,
}

impl<K: Copy + Eq + Hash> Buckets<K> {
    pub(crate) fn new(limit: Throttle) -> Self {
        Self { limit, buckets: Mutex::default() }
    }

    /// Takes one token. Fails with the seconds after which there will be one.
    pub(crate) fn admit(&self, client: K, now: Instant) -> Result<(), u64> {
        let rate = f64::from(self.limit.queries_per_second);
        self.with_bucket(client, now, |bucket| {
            if bucket.tokens >= 1.0 {
                bucket.tokens -= 1.0;
                Ok(())
            } else {
                Err(((1.0 - bucket.tokens) / rate).ceil() as u64)
            }
        })
    }

    /// Takes the tokens of the other queries of an admitted request.
    pub(crate) fn charge(&self, client: K, queries: usize, now: Instant) {
        self.with_bucket(client, now, |bucket| bucket.tokens -= queries as f64);
    }

    /// Refills the bucket of a client, and applies `step` to it. A client that is not remembered has a full bucket.
    ///
    /// ```text
    /// tokens = min(tokens + queries_per_second * (now - at), burst)
    /// ```
    fn with_bucket<T>(&self, client: K, now: Instant, step: impl FnOnce(&mut Bucket) -> T) -> T {
        let mut buckets = self.buckets.lock();
        let full = f64::from(self.limit.burst);
        let refilled = |bucket: &Bucket| {
            let seconds = now.saturating_duration_since(bucket.at).as_secs_f64();
            (bucket.tokens + seconds * f64::from(self.limit.queries_per_second)).min(full)
        };
        if buckets.len() >= MAX_CLIENTS {
            buckets.retain(|_, bucket| refilled(bucket) < full);
            if buckets.len() > MAX_CLIENTS / 2 {
                buckets.clear();
            }
        }
        let bucket = buckets.entry(client).or_insert(Bucket { tokens: full, at: now });
        *bucket = Bucket { tokens: refilled(bucket), at: now };
        step(bucket)
    }
}

#[cfg(test)]
mod tests {
    use std::{net::IpAddr, time::Duration};

    use super::*;

    fn client(number: u32) -> ClientAddress {
        IpAddr::V4(number.into()).into()
    }

    #[test]
    fn a_bucket_empties_refills_and_remembers_debt() {
        let buckets = Buckets::new(Throttle { queries_per_second: 2, burst: 3 });
        let start = Instant::now();
        for _ in 0..3 {
            assert_eq!(buckets.admit(client(1), start), Ok(()));
        }
        assert_eq!(buckets.admit(client(1), start), Err(1));
        assert_eq!(buckets.admit(client(2), start), Ok(()));
        assert_eq!(buckets.admit(client(1), start + Duration::from_millis(500)), Ok(()));

        // Ten queries in one request: 3 - 1 - 9 = -7 tokens, so 8 are missing at 2 a second.
        let later = start + Duration::from_secs(60);
        assert_eq!(buckets.admit(client(1), later), Ok(()));
        buckets.charge(client(1), 9, later);
        assert_eq!(buckets.admit(client(1), later), Err(4));
        assert_eq!(buckets.admit(client(1), later + Duration::from_secs(4)), Ok(()));
    }

    #[test]
    fn memory_is_bounded() {
        let buckets = Buckets::new(Throttle { queries_per_second: 1, burst: 1 });
        let now = Instant::now();
        for number in 0..3 * MAX_CLIENTS as u32 {
            assert_eq!(buckets.admit(client(number), now), Ok(()));
        }
        assert!(buckets.buckets.lock().len() <= MAX_CLIENTS);
    }

    #[test]
    fn who_is_in_debt_is_remembered_among_many() {
        let buckets = Buckets::new(Throttle { queries_per_second: 1, burst: 1 });
        let start = Instant::now();
        assert_eq!(buckets.admit(client(0), start), Ok(()));
        buckets.charge(client(0), 99, start);
        for number in 1..MAX_CLIENTS as u32 {
            assert_eq!(buckets.admit(client(number), start), Ok(()));
        }
        let later = start + Duration::from_secs(1);
        assert_eq!(buckets.admit(client(u32::MAX), later), Ok(()));
        assert_eq!(buckets.buckets.lock().len(), 2, "full buckets are forgotten");
        assert_eq!(buckets.admit(client(0), later), Err(99));
    }
}
