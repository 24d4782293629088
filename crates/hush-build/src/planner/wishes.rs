//! The wishes of users for a table: a goal, budgets, clients, their network, and prices.

use std::{fmt, str::FromStr};

use hush_protocol::wording::Slot;
use thiserror::Error;

use super::Network;

/// The default number of look-ups of a client in an epoch. It is small, so that clients do not wait for the download of a hint.
const LOOKUPS: f64 = 10.0;

/// The quantity to minimise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Goal {
    /// The product of the bytes that are kept and the squared time of a first look-up and two later ones: a tenth less time
    /// is worth a fifth more bytes. The kept bytes are the server's memory, and what each client sends and receives once.
    #[default]
    Balance,
    /// The time of a look-up: the server's time, and the time of sending with its round trips.
    Latency,
    /// The bytes that a look-up sends and receives.
    Bytes,
    /// The memory of a server.
    Memory,
    /// The cost of a look-up: cores and traffic.
    Cost,
}

impl Goal {
    /// Every goal, by name.
    pub const ALL: [(&'static str, Goal); 5] = [
        ("balance", Self::Balance),
        ("latency", Self::Latency),
        ("bytes", Self::Bytes),
        ("memory", Self::Memory),
        ("cost", Self::Cost),
    ];
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|(own, _)| *own == name);
        found
            .map(|(_, goal)| goal)
            .ok_or_else(|| format!("unknown goal '{name}': use balance, latency, bytes, memory or cost"))
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, _) = Self::ALL.into_iter().find(|(_, goal)| goal == self).expect("all are there");
        f.write_str(name)
    }
}

/// A limit of a server's memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MemoryBudget {
    /// This many times the bytes of the values.
    Times(f64),
    /// This many bytes.
    Bytes(u64),
}

/// The limits of a table; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budgets {
    /// The maximum bytes of a query.
    pub upload: Option<u64>,
    /// The maximum bytes of an answer.
    pub download: Option<u64>,
    /// The maximum bytes that a client sends and receives once.
    pub setup: Option<u64>,
    /// The maximum memory of a server.
    pub memory: Option<MemoryBudget>,
    /// The maximum seconds of a look-up, counted as in [`Goal::Latency`].
    pub latency: Option<f64>,
    /// Whether a server may link the look-ups of a client. A build that names a protocol, a parameter set or a form allows it.
    pub linkable: bool,
}

/// The clients for which tables are offered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clients {
    /// The number of clients that have keys in a server's memory at once.
    pub count: usize,
    /// The number of look-ups of each client before the table changes.
    pub lookups: f64,
}

impl Default for Clients {
    fn default() -> Self {
        Self { count: 1, lookups: LOOKUPS }
    }
}

/// The prices, in one currency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// The price of an hour of a core.
    pub core_hour: f64,
    /// The price of 10^9 bytes sent, either way.
    pub gigabyte: f64,
}

impl Default for Prices {
    /// Returns the prices of clouds: 0.04 an hour of a core, 0.05 a gigabyte.
    fn default() -> Self {
        Self { core_hour: 0.04, gigabyte: 0.05 }
    }
}

/// The wishes for a table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wishes {
    /// The goal.
    pub goal: Goal,
    /// The limits that nothing may exceed.
    pub budgets: Budgets,
    /// The clients of the table.
    pub clients: Clients,
    /// The network of the clients.
    pub network: Network,
    /// The prices.
    pub prices: Prices,
}

/// The error if no table is within the budgets.
#[derive(Clone, Debug, Error)]
#[error("{binding}: the nearest is {} with {exceeded}", told_options(nearest))]
pub struct OutOfBudget {
    pub(super) binding: String,
    /// The options of the table that exceeds its budgets least.
    pub(super) nearest: Vec<(&'static str, String)>,
    pub(super) exceeded: String,
}

/// Returns options of `build` in the form in which messages show them.
pub(super) fn told_options(options: &[(&'static str, String)]) -> String {
    let options = options.iter().map(|(name, value)| Slot::Setting(name, value).to_string());
    options.collect::<Vec<_>>().join(" ")
}
