//! The limits and timeouts of a server, each an option.

use std::{num::NonZeroUsize, time::Duration};

use clap::{Args, value_parser};
use hush_protocol::wire::MAX_QUERIES;
use hush_server::{ServerConfig, Throttle};

use crate::commands::wishes::parse_bytes;

/// The longest time that an option takes, in seconds.
const YEAR: u64 = 365 * 24 * 3600;
/// The number of seconds of a day.
const DAY: u64 = 24 * 3600;

/// Limits and timeouts.
#[derive(Args)]
pub(crate) struct LimitArgs {
    /// Time for which a batch stays open for more queries, in milliseconds, if some queries had to wait.
    #[arg(long, value_name = "MS", default_value_t = ServerConfig::default().window.as_millis() as u64)]
    window: u64,
    /// Seconds for which the previous epoch of a table still answers, and keeps its memory. 0 drops it at once.
    #[arg(long, value_name = "SECONDS", default_value_t = ServerConfig::default().epoch_window.as_secs(), value_parser = value_parser!(u64).range(..=YEAR))]
    epoch_window: u64,
    /// Most queries that wait for a scan of one table.
    #[arg(long, value_name = "N", default_value_t = ServerConfig::default().max_queue)]
    max_queue: usize,
    /// Longest wait of a query for its scan, in milliseconds, estimated from the last scans. A query that would wait longer is
    /// rejected at once, with a time to retry. A full batch may always wait.
    #[arg(long, value_name = "MS", default_value_t = ServerConfig::default().max_wait.as_millis() as u64)]
    max_wait: u64,
    /// Most queries in one request; a request with more is answered 413. Clients send up to 64 by default.
    #[arg(long, value_name = "N", default_value_t = ServerConfig::default().max_queries as u64, value_parser = value_parser!(u64).range(1..=MAX_QUERIES as u64))]
    max_queries: u64,
    /// Most connections at once. Beyond that, the connection that has been idle longest is closed. The limit is lower if the
    /// process may open fewer files, and the server then prints it.
    #[arg(long, value_name = "N", default_value_t = ServerConfig::default().max_connections)]
    max_connections: usize,
    /// Most connections at once of --listen-health, and of --listen-admin.
    #[arg(long, value_name = "N", default_value_t = ServerConfig::default().max_other_connections)]
    max_other_connections: usize,
    /// Most connections, waiting queries, request memory and key memory of one client address, in percent. Set 100 behind a proxy,
    /// where all clients have one address.
    #[arg(long, value_name = "PERCENT", default_value_t = ServerConfig::default().client_share, value_parser = value_parser!(u32).range(1..=100))]
    client_share: u32,
    /// Most bytes of all bodies of requests and answers in flight. A request that can never fit is answered 413.
    #[arg(long, value_name = "BYTES", default_value_t = ServerConfig::default().max_body_memory, value_parser = |text: &str| parse_bytes(text).map(|bytes| bytes as usize))]
    max_body_memory: usize,
    /// Most requests at once of one HTTP/2 connection.
    #[arg(long, value_name = "N", default_value_t = ServerConfig::default().max_streams, value_parser = value_parser!(u32).range(1..))]
    max_streams: u32,
    /// Longest time for the headers of a request, and longest idle time of a connection, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = ServerConfig::default().header_timeout.as_secs(), value_parser = value_parser!(u64).range(1..=YEAR))]
    header_timeout: u64,
    /// Longest time for the body of a request, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = ServerConfig::default().body_timeout.as_secs(), value_parser = value_parser!(u64).range(1..=YEAR))]
    body_timeout: u64,
    /// Seconds after which a client is cut off that does not read its response, or reads less than 4 KiB a second.
    #[arg(long, value_name = "SECONDS", default_value_t = ServerConfig::default().write_timeout.as_secs(), value_parser = value_parser!(u64).range(1..=YEAR))]
    write_timeout: u64,
    /// Seconds that requests in flight have to finish when the server stops.
    #[arg(long, value_name = "SECONDS", default_value_t = ServerConfig::default().drain_timeout.as_secs(), value_parser = value_parser!(u64).range(..=YEAR))]
    drain_timeout: u64,
    /// Days after which unused evaluation keys are deleted.
    #[arg(long, value_name = "DAYS", default_value_t = ServerConfig::default().key_lifetime.as_secs() / DAY, value_parser = value_parser!(u64).range(1..=u32::MAX.into()))]
    key_lifetime: u64,
    /// Most bytes of evaluation keys on disk. Beyond that, the least recently used keys are deleted.
    #[arg(long, value_name = "BYTES", default_value_t = ServerConfig::default().max_key_bytes, value_parser = parse_bytes)]
    max_key_bytes: u64,
    /// Most clients whose keys are ready in memory, at about 2.8 MB (PACK_M31), 4.5 MB (ONION_M31) or 1.9 MB (ONION_S) each.
    #[arg(long, value_name = "N", default_value = "256")]
    pub(super) open_keys: NonZeroUsize,
    /// Most queries a second of one client address. If not given, no limit.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    rate_limit: Option<u32>,
}

impl LimitArgs {
    /// Returns the server's configuration, without a file of keys.
    pub(super) fn config(&self) -> ServerConfig {
        ServerConfig {
            window: Duration::from_millis(self.window),
            epoch_window: Duration::from_secs(self.epoch_window),
            max_queue: self.max_queue,
            max_wait: Duration::from_millis(self.max_wait),
            max_queries: self.max_queries as usize,
            max_connections: self.max_connections,
            max_other_connections: self.max_other_connections,
            client_share: self.client_share,
            max_body_memory: self.max_body_memory,
            max_streams: self.max_streams,
            header_timeout: Duration::from_secs(self.header_timeout),
            body_timeout: Duration::from_secs(self.body_timeout),
            write_timeout: Duration::from_secs(self.write_timeout),
            drain_timeout: Duration::from_secs(self.drain_timeout),
            key_lifetime: Duration::from_secs(self.key_lifetime * DAY),
            max_key_bytes: self.max_key_bytes,
            open_keys: self.open_keys.get(),
            throttle: self
                .rate_limit
                .map(|rate| Throttle { queries_per_second: rate, burst: rate.saturating_mul(4) }),
            ..ServerConfig::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command, FromArgMatches};

    use super::*;

    fn limits() -> Command {
        LimitArgs::augment_args(Command::new("serve"))
    }

    fn config(given: &[&str]) -> Result<ServerConfig, String> {
        let given = ["serve"].into_iter().chain(given.iter().copied());
        let matches = limits().try_get_matches_from(given).map_err(|error| error.to_string())?;
        Ok(LimitArgs::from_arg_matches(&matches).unwrap().config())
    }

    #[test]
    fn defaults_are_those_of_the_server() {
        assert_eq!(format!("{:?}", config(&[]).unwrap()), format!("{:?}", ServerConfig::default()));
    }

    #[test]
    fn every_option_is_a_limit_of_its_own() {
        let mut seen = vec![format!("{:?}", config(&[]).unwrap())];
        for arg in limits().get_arguments() {
            let given = format!("--{}=7", arg.get_long().unwrap());
            seen.push(format!("{:?}", config(&[&given]).unwrap()));
        }
        let count = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), count);
    }

    #[test]
    fn values_out_of_range_are_refused_with_the_range() {
        for (given, range) in [
            ("--epoch-window=31536001", "31536001 is not in 0..=31536000"),
            ("--max-queries=0", "0 is not in 1..=256"),
            ("--max-queries=257", "257 is not in 1..=256"),
            ("--max-streams=0", "0 is not in 1..=4294967295"),
            ("--header-timeout=0", "0 is not in 1..=31536000"),
            ("--body-timeout=0", "0 is not in 1..=31536000"),
            ("--write-timeout=0", "0 is not in 1..=31536000"),
            ("--drain-timeout=31536001", "31536001 is not in 0..=31536000"),
            ("--rate-limit=0", "0 is not in 1.."),
            ("--drain-timeout=30s", "invalid digit"),
            ("--max-body-memory=-1", "a number of bytes is like 4096"),
        ] {
            let error = config(&[given]).unwrap_err();
            assert!(error.contains(range), "{given}: {error}");
        }
    }

    /// Formats a default as in the table of limits.
    fn shown(arg: &Arg) -> String {
        let [default] = arg.get_default_values() else { return "none".into() };
        let default = default.to_str().unwrap();
        let name = arg.get_value_names().unwrap()[0].as_str();
        match (name, default.parse::<u64>().unwrap()) {
            ("MS", _) => format!("{default} ms"),
            ("SECONDS", _) => format!("{default} s"),
            ("DAYS", _) => format!("{default} days"),
            ("PERCENT", _) => format!("{default} %"),
            ("BYTES", bytes) => format!("{} GiB", bytes >> 30),
            _ => default.into(),
        }
    }

    #[test]
    fn the_table_of_limits_has_every_option_with_its_default() {
        let (_, section) =
            include_str!("../../../../../docs/reference/http-api.md").split_once("\n## Limits\n").unwrap();
        let (section, _) = section.split_once("\n## ").unwrap();
        let rows: Vec<String> = section
            .lines()
            .filter_map(|line| line.strip_prefix("| `"))
            .map(|line| line.rsplitn(2, " | ").last().unwrap().replace('`', ""))
            .collect();
        let options: Vec<String> = limits()
            .get_arguments()
            .map(|arg| format!("{} | {}", arg.get_long().unwrap(), shown(arg)))
            .collect();
        assert_eq!(rows, options);
    }
}
