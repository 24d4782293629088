//! Every limit and timeout of the server, in one struct.

use std::{
    fmt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use hush_protocol::wire;

use crate::{error::ServerError, keys::Keys};

/// Limits and timeouts. The defaults suit one server with a few tables.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The time for which the next batch of a table stays open after a scan that others waited for. A query that arrives at an
    /// idle table never waits.
    pub window: Duration,
    /// The time for which a replaced epoch still answers queries that name it, and keeps its memory. Zero drops it at once. The
    /// maximum is a year.
    pub epoch_window: Duration,
    /// The most queries that wait for a scan of one table; more are answered 503.
    pub max_queue: usize,
    /// The longest time that a query may wait for its scan, estimated from the last scans. A query that would wait longer is
    /// answered 503 at once. A full batch may wait in any case, and another one towards the end of a scan.
    pub max_wait: Duration,
    /// The most queries in one request; more are answered 413.
    pub max_queries: usize,
    /// The most connections. Beyond that, a new connection takes the place of the one that has been idle for longest.
    /// If none is idle, new ones wait in the listener's backlog.
    pub max_connections: usize,
    /// The most connections of each listener for health or admin endpoints alone.
    pub max_other_connections: usize,
    /// The share that one client may have of connections, of `max_queue`, of `max_body_memory` and of `max_key_bytes`, in
    /// percent. Behind a proxy, where all clients have one address, the right value is 100.
    pub client_share: u32,
    /// The most bytes that request bodies and their answers take together, from the first byte of a body until the response is
    /// written. A request beyond the limit is answered 503. A request whose body and answers alone exceed it is answered 413.
    pub max_body_memory: usize,
    /// The most requests of one HTTP/2 connection at once: a client that has more to ask uses more connections.
    pub max_streams: u32,
    /// The longest wait for a request's headers, and for the next request on an open connection.
    pub header_timeout: Duration,
    /// The longest time that a request's body may take.
    pub body_timeout: Duration,
    /// The longest time for which a client may take nothing of a response, or less than 4 KiB a second on average.
    pub write_timeout: Duration,
    /// The longest wait for requests in flight after a shutdown.
    pub drain_timeout: Duration,
    /// The file that keeps the evaluation keys of clients. `None` keeps them in memory, until the server stops. Each server needs
    /// its own file.
    pub keys_path: Option<PathBuf>,
    /// The time after which unused keys expire, by `key_clock`.
    pub key_lifetime: Duration,
    /// The clock that says when keys were used.
    pub key_clock: Clock,
    /// The most bytes of keys. Keys that were used longest ago are evicted first. The file takes up to a quarter more on disk.
    pub max_key_bytes: u64,
    /// The most keys that are ready in memory, the keys of waiting queries included. If waiting queries hold all of them, other
    /// queries are answered 503. A key takes some MB, depending on its parameter set.
    pub open_keys: usize,
    /// The queries per second of each client address; `None` is no limit. An upload of keys, and a request for whether keys are
    /// here, count as one query each.
    pub throttle: Option<Throttle>,
    /// Whether the server is ready only while no table has failed. Otherwise it is ready while one table answers.
    pub require_tables: bool,
}

/// A source of dates: the system's clock, or one that a test moves.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    /// Creates a clock of which `date` is the date.
    pub fn new(date: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(date))
    }

    /// Returns the date.
    pub(crate) fn date(&self) -> SystemTime {
        self.0()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new(SystemTime::now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// A token bucket for each client: an IPv4 address, or a /64 of IPv6. Behind a proxy all clients have one address, so there the
/// proxy must have the limit.
#[derive(Clone, Copy, Debug)]
pub struct Throttle {
    /// The sustained queries per second of a client.
    pub queries_per_second: u32,
    /// The queries that a client may make at once after a pause.
    pub burst: u32,
}

impl Default for ServerConfig {
    fn default() -> ServerConfig {
        ServerConfig {
            window: Duration::from_millis(2),
            epoch_window: Duration::from_secs(60),
            max_queue: 1024,
            max_wait: Duration::from_millis(100),
            max_queries: wire::MAX_QUERIES,
            max_connections: 1024,
            max_other_connections: 64,
            client_share: 25,
            max_body_memory: 1 << 30,
            max_streams: 32,
            header_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(30),
            keys_path: None,
            key_lifetime: Duration::from_secs(30 * 24 * 3600),
            key_clock: Clock::default(),
            max_key_bytes: 4 << 30,
            open_keys: 256,
            throttle: None,
            require_tables: false,
        }
    }
}

impl ServerConfig {
    /// Returns the part of `total` that one client may have: at least 1.
    pub(crate) fn share_of(&self, total: usize) -> usize {
        let share = total as u128 * u128::from(self.client_share.min(100)) / 100;
        (share as usize).max(1)
    }

    /// Returns the most queries of one client that wait for a scan of one table: at least the maximum of one request.
    pub(crate) fn client_queue(&self) -> usize {
        self.share_of(self.max_queue).max(self.max_queries)
    }

    /// Opens the file of [`ServerConfig::keys_path`] as [`run`](crate::run) does, and closes it. The file itself is neither
    /// created nor changed. Returns whether no other server uses the file; a file in use is not read.
    ///
    /// # Errors
    /// [`ServerError::KeyFile`] if the file cannot be opened, or cannot be created in its folder.
    pub fn check_keys(&self) -> Result<bool, ServerError> {
        Keys::check(self)
    }

    /// Refuses settings under which no request could ever be answered.
    ///
    /// # Errors
    /// [`ServerError::Config`] names the option that sets it.
    pub fn check(&self) -> Result<(), ServerError> {
        let (rate, burst) = match &self.throttle {
            Some(throttle) => (throttle.queries_per_second as usize, throttle.burst as usize),
            None => (1, 1),
        };
        let least = [
            ("max-queries", 1, self.max_queries),
            ("max-queue", self.max_queries, self.max_queue),
            ("max-connections", 1, self.max_connections),
            ("max-other-connections", 1, self.max_other_connections),
            ("client-share", 1, self.client_share as usize),
            ("max-body-memory", 1, self.max_body_memory),
            ("max-streams", 1, self.max_streams as usize),
            ("open-keys", 1, self.open_keys),
            ("rate-limit", 1, rate.min(burst)),
        ];
        for (setting, min, actual) in least {
            if actual < min {
                return Err(ServerError::Config { setting, min, actual });
            }
        }
        Ok(())
    }
}
