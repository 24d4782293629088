//! The wishes of users for a table: a goal, budgets, and how they are connected.

use std::{fmt, str::FromStr};

use hush_protocol::wording::Slot;
use thiserror::Error;

/// The default number of a client's look-ups in an epoch: few, as many clients make few and should not wait for a hint.
const LOOKUPS: f64 = 10.0;

/// The quantity to minimise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Goal {
    /// The time of a look-up, and what is kept of a table, equally: half of one is worth twice the other. The server keeps its
    /// memory, and each client what it sends and receives once.
    #[default]
    Balance,
    /// The time of a look-up: the server's, and that of sending.
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

/// Memory that a server may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MemoryBudget {
    /// So many times the values.
    Times(f64),
    /// So many bytes.
    Bytes(u64),
}

/// Limits; `None` is none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budgets {
    /// Bytes of a query.
    pub upload: Option<u64>,
    /// Bytes of an answer.
    pub download: Option<u64>,
    /// Bytes that a client sends and receives once.
    pub setup: Option<u64>,
    /// A server's memory.
    pub memory: Option<MemoryBudget>,
    /// Seconds of a look-up, as of [`Goal::Latency`].
    pub latency: Option<f64>,
    /// Whether a server may link the look-ups of a client. What names a protocol, a parameter set or a form allows it.
    pub linkable: bool,
}

/// For whom tables are offered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clients {
    /// How many have keys in a server's memory at once.
    pub count: usize,
    /// How often each looks up before the table changes.
    pub lookups: f64,
}

impl Default for Clients {
    fn default() -> Self {
        Self { count: 1, lookups: LOOKUPS }
    }
}

/// How clients are connected: 10^6 bits a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// From a client.
    pub up: f64,
    /// To a client.
    pub down: f64,
}

impl Default for Network {
    /// 32 Mbit/s both ways.
    fn default() -> Self {
        Self { up: 32.0, down: 32.0 }
    }
}

/// The prices, in one currency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// An hour of a core.
    pub core_hour: f64,
    /// 10^9 bytes sent, either way.
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
    /// For whom it is.
    pub clients: Clients,
    /// How these are connected.
    pub network: Network,
    /// The prices.
    pub prices: Prices,
}

/// No table is within the budgets.
#[derive(Clone, Debug, Error)]
#[error("{binding}: the nearest is {} with {exceeded}", told_options(nearest))]
pub struct OutOfBudget {
    pub(super) binding: String,
    /// The options of the table that exceeds its budgets least.
    pub(super) nearest: Vec<(&'static str, String)>,
    pub(super) exceeded: String,
}

/// Returns options of `build` as a message has them.
pub(super) fn told_options(options: &[(&'static str, String)]) -> String {
    let options = options.iter().map(|(name, value)| Slot::Setting(name, value).to_string());
    options.collect::<Vec<_>>().join(" ")
}
