//! Queries per second and client address: token buckets.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Mutex, PoisonError},
    time::Instant,
};

use crate::config::Throttle;

/// Clients that are remembered at most. Beyond that, all that are not in debt are forgotten, or
/// everybody: memory stays bounded, and the price is a fresh burst.
const MAX_CLIENTS: usize = 1 << 16;

/// One bucket for each client that asked lately.
pub(crate) struct Buckets {
    limit: Throttle,
    buckets: Mutex<HashMap<IpAddr, Bucket>>,
}

#[derive(Clone, Copy)]
struct Bucket {
    /// Queries that the client may make now. Negative after a request with many queries: they are
    /// counted once the body is read, and it is read if the client may make at least one.
    tokens: f64,
    /// When `tokens` was right.
    at: Instant,
}

impl Buckets {
    pub(crate) fn new(limit: Throttle) -> Buckets {
        Buckets { limit, buckets: Mutex::default() }
    }

    /// Takes one token, or says in how many seconds there will be one.
    pub(crate) fn admit(&self, client: IpAddr, now: Instant) -> Result<(), u64> {
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
    pub(crate) fn charge(&self, client: IpAddr, queries: usize, now: Instant) {
        self.with_bucket(client, now, |bucket| bucket.tokens -= queries as f64);
    }

    fn with_bucket<T>(&self, client: IpAddr, now: Instant, step: impl FnOnce(&mut Bucket) -> T) -> T {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
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
        let bucket = buckets.entry(network(client)).or_insert(Bucket { tokens: full, at: now });
        *bucket = Bucket { tokens: refilled(bucket), at: now };
        step(bucket)
    }
}

/// What counts as one client: an IPv4 address, or the /64 that an IPv6 host picks addresses from.
pub(crate) fn network(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const CLIENT: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 1));
    const NEIGHBOUR: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 9, 9, 9, 9));
    const OTHER: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 2, 0, 0, 0, 1));

    #[test]
    fn a_bucket_empties_refills_and_remembers_debt() {
        let buckets = Buckets::new(Throttle { queries_per_second: 2, burst: 3 });
        let start = Instant::now();
        for _ in 0..3 {
            assert_eq!(buckets.admit(CLIENT, start), Ok(()));
        }
        assert_eq!(buckets.admit(CLIENT, start), Err(1));
        assert_eq!(buckets.admit(NEIGHBOUR, start), Err(1));
        assert_eq!(buckets.admit(OTHER, start), Ok(()));
        assert_eq!(buckets.admit(CLIENT, start + Duration::from_millis(500)), Ok(()));

        // Ten queries in one request: 3 - 1 - 9 = -7 tokens, so 8 are missing at 2 a second.
        let later = start + Duration::from_secs(60);
        assert_eq!(buckets.admit(CLIENT, later), Ok(()));
        buckets.charge(CLIENT, 9, later);
        assert_eq!(buckets.admit(CLIENT, later), Err(4));
        assert_eq!(buckets.admit(CLIENT, later + Duration::from_secs(4)), Ok(()));
    }

    #[test]
    fn memory_is_bounded() {
        let buckets = Buckets::new(Throttle { queries_per_second: 1, burst: 1 });
        let now = Instant::now();
        for client in 0..3 * MAX_CLIENTS as u32 {
            assert_eq!(buckets.admit(IpAddr::V4(client.into()), now), Ok(()));
        }
        assert!(buckets.buckets.lock().unwrap().len() <= MAX_CLIENTS);
    }
}
