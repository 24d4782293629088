//! The goal and the budgets of a table, and the machine to choose for: the options of `plan` and `build`.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use etcetera::BaseStrategy;
use hush_build::planner::{Budgets, Clients, Goal, Machine, MemoryBudget, Network, Prices, Wishes};
use hush_cpu::Cpu;
use hush_engine::Progress;
use hush_protocol::wording::Slot;
use hush_store::whole_file;

/// The goal and the budgets.
#[derive(Args, Clone)]
pub(super) struct WishArgs {
    /// Quantity to minimise: latency (of the server and of sending), bytes (sent and received), memory (of a server),
    /// cost (cores and traffic) or, if none is given, balance (latency, weighed with memory).
    #[arg(long, value_name = "GOAL")]
    goal: Option<Goal>,
    /// Longest query to accept, such as 100K.
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    max_upload: Option<u64>,
    /// Longest answer to accept, such as 1M.
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    max_download: Option<u64>,
    /// Most bytes that a client sends and receives once, as keys or a hint.
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    max_setup: Option<u64>,
    /// Most memory of a server, in bytes or as a multiple of the values, such as 8G or 1.5x.
    #[arg(long, value_name = "BYTES|TIMES", value_parser = parse_memory)]
    max_memory: Option<MemoryBudget>,
    /// Longest look-up to accept, with its transfer, such as 200ms or 1.5s.
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    max_latency: Option<f64>,
    /// Allow protocols whose queries name the client's keys, so that a server can link the look-ups of one client.
    #[arg(long)]
    linkable: bool,
    /// Number of clients whose keys a server holds at once.
    #[arg(long, value_name = "C", default_value_t = Clients::default().count)]
    clients: usize,
    /// Look-ups of a client before the table changes. These look-ups share what is sent once.
    #[arg(long, value_name = "L", default_value_t = Clients::default().lookups, value_parser = parse_positive)]
    lookups_per_client: f64,
    /// Upload rate of clients, in Mbit/s.
    #[arg(long, value_name = "MBIT", default_value_t = Network::default().up, value_parser = parse_positive)]
    up: f64,
    /// Download rate of clients, in Mbit/s.
    #[arg(long, value_name = "MBIT", default_value_t = Network::default().down, value_parser = parse_positive)]
    down: f64,
    /// Time of a round trip of clients, such as 40ms, or lan (1ms), broadband (20ms), mobile (60ms) or tor (300ms).
    #[arg(long, value_name = "TIME", default_value = "40ms", value_parser = parse_round_trip)]
    rtt: f64,
    /// Price of an hour of a core, for --goal cost.
    #[arg(long, value_name = "PRICE", default_value_t = Prices::default().core_hour, value_parser = parse_price)]
    price_core_hour: f64,
    /// Price of a gigabyte sent or received, in the same currency.
    #[arg(long, value_name = "PRICE", default_value_t = Prices::default().gigabyte, value_parser = parse_price)]
    price_gigabyte: f64,
}

impl WishArgs {
    /// Returns the wishes, if any differs from the defaults.
    pub(super) fn given(&self) -> Option<Wishes> {
        let wishes = self.wishes();
        (self.goal.is_some() || wishes != Wishes::default()).then_some(wishes)
    }

    /// Returns the wishes, including defaults.
    pub(super) fn wishes(&self) -> Wishes {
        Wishes {
            goal: self.goal.unwrap_or_default(),
            budgets: Budgets {
                upload: self.max_upload,
                download: self.max_download,
                setup: self.max_setup,
                memory: self.max_memory,
                latency: self.max_latency,
                linkable: self.linkable,
            },
            clients: Clients { count: self.clients, lookups: self.lookups_per_client },
            network: Network { up: self.up, down: self.down, rtt: self.rtt },
            prices: Prices { core_hour: self.price_core_hour, gigabyte: self.price_gigabyte },
        }
    }
}

/// Reads the profile of a machine from a file.
pub(super) fn read_machine(path: &Path) -> Result<Arc<Machine>, String> {
    let shown = path.display();
    let text = fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
    let machine = Machine::from_profile(&text).map_err(|error| {
        format!(
            "{shown} is no profile of a machine ({error}): make one with {} there",
            Slot::Command("plan", &[Slot::Setting("save-machine", &shown)])
        )
    })?;
    Ok(Arc::new(machine))
}

/// Returns the profile of this machine with `threads` threads: the cached one, or a new measurement, which takes about 16 seconds.
pub(super) fn this_machine(
    threads: usize,
    again: bool,
    progress: &dyn Progress,
) -> Result<Arc<Machine>, Box<dyn Error>> {
    let own = Own::new(threads)?;
    if let Some(machine) = own.kept().filter(|_| !again) {
        return Ok(machine);
    }
    progress.note(&format!("measuring {}, {}, {threads} threads: some 16 s, once", own.model, own.level));
    let machine = Machine::measure(&own.cpu, progress)?;
    if let Some(path) = own.file() {
        // Without a cached profile, the next call measures again.
        let _ = save_machine(&machine, &path);
    }
    Ok(Arc::new(machine))
}

/// Returns the cached profile of this machine with `threads` threads, if it has been measured.
#[cfg(feature = "page")]
pub(super) fn kept_machine(threads: usize) -> Option<Arc<Machine>> {
    Own::new(threads).ok()?.kept()
}

/// This machine with a number of threads.
struct Own {
    cpu: Cpu,
    model: String,
    level: String,
}

impl Own {
    fn new(threads: usize) -> Result<Self, Box<dyn Error>> {
        let cpu = Cpu::new(threads)?;
        let level = cpu.level().to_string();
        Ok(Self { cpu, model: hush_engine::cpu_model(), level })
    }

    /// Returns the file of the cached profile, if there is a cache folder.
    fn file(&self) -> Option<PathBuf> {
        cache_file(&format!("{} {} {}", self.model, self.level, self.cpu.threads()))
    }

    fn kept(&self) -> Option<Arc<Machine>> {
        read_machine(&self.file()?).ok().filter(|machine: &Arc<Machine>| {
            let name = &self.model;
            let level = &self.level;
            let threads = self.cpu.threads();
            (&machine.name, &machine.level, machine.threads) == (name, level, threads)
        })
    }
}

/// Writes a profile atomically.
pub(super) fn save_machine(machine: &Machine, path: &Path) -> Result<(), String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let text = serde_json::to_string_pretty(machine).expect("plain data") + "\n";
    let written = fs::create_dir_all(folder).and_then(|()| whole_file::write(path, &text, 0o644));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the file of the cached profile of a machine of this name, if there is a cache folder.
fn cache_file(name: &str) -> Option<PathBuf> {
    let cache = etcetera::choose_base_strategy().ok()?.cache_dir();
    Some(
        cache.join("hushdb/machines").join(
            name.chars()
                .map(|c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
                .collect::<String>()
                + ".json",
        ),
    )
}

pub(super) fn parse_bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u32); 8] =
        [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40), ("K", 10), ("M", 20), ("G", 30), ("T", 40)];
    let (number, bits) = UNITS
        .into_iter()
        .find_map(|(unit, bits)| Some((text.strip_suffix(unit)?, bits)))
        .unwrap_or((text.strip_suffix('B').unwrap_or(text), 0));
    let bytes = number.trim().parse::<f64>().ok().map(|number| number * (1u64 << bits) as f64);
    let bytes = bytes.filter(|bytes| (0.0..1e18).contains(bytes));
    bytes
        .map(|bytes| bytes as u64)
        .ok_or_else(|| "a number of bytes is like 4096, 100K, 1.5M or 8G".to_owned())
}

fn parse_memory(text: &str) -> Result<MemoryBudget, String> {
    match text.strip_suffix('x') {
        Some(times) => parse_positive(times).map(MemoryBudget::Times),
        None => parse_bytes(text).and_then(|bytes| match bytes {
            0 => Err(String::new()),
            bytes => Ok(MemoryBudget::Bytes(bytes)),
        }),
    }
    .map_err(|_| "memory is a number of bytes (8G) or a multiple of the values (1.5x)".to_owned())
}

pub(super) fn parse_seconds(text: &str) -> Result<f64, String> {
    let (number, unit) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1e-3),
        (None, Some(number)) => (number, 1.0),
        (None, None) => return Err("a time is like 200ms or 1.5s".into()),
    };
    parse_positive(number).map(|number| number * unit).map_err(|_| "a time is like 200ms or 1.5s".into())
}

/// Parses the time of a round trip, or the name of a network.
fn parse_round_trip(text: &str) -> Result<f64, String> {
    match text {
        "lan" => Ok(1e-3),
        "broadband" => Ok(20e-3),
        "mobile" => Ok(60e-3),
        "tor" => Ok(300e-3),
        _ => parse_seconds(text)
            .map_err(|_| "a round trip is like 40ms, or lan, broadband, mobile or tor".into()),
    }
}

pub(super) fn parse_positive(text: &str) -> Result<f64, String> {
    let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "it is a number above 0".to_owned())
}

fn parse_price(text: &str) -> Result<f64, String> {
    let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "a price is a number".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read() {
        assert_eq!(parse_bytes("100K"), Ok(102_400));
        assert_eq!(parse_bytes("1.5MiB"), Ok(3 << 19));
        assert_eq!(parse_bytes("4096"), Ok(4096));
        assert_eq!(parse_memory("1.5x"), Ok(MemoryBudget::Times(1.5)));
        assert_eq!(parse_memory("8G"), Ok(MemoryBudget::Bytes(8 << 30)));
        assert_eq!(parse_seconds("200ms"), Ok(0.2));
        assert_eq!(parse_seconds("1.5s"), Ok(1.5));
        assert_eq!(parse_round_trip("tor"), parse_round_trip("300ms"));
        assert_eq!(parse_bytes("0"), Ok(0));
        for wrong in ["", "x", "-1", "nan", "1e400", "12 apples", "0"] {
            assert!(wrong == "0" || parse_bytes(wrong).is_err(), "{wrong}");
            assert!(parse_memory(wrong).is_err() && parse_seconds(wrong).is_err(), "{wrong}");
        }
    }
}
