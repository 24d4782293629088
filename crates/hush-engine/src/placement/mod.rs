//! The placement of a table: shares of it, each on a device.
//!
//! * `choose.rs`: the placement that a table gets. `spread.rs`: copies and shares on several GPUs, by `spread_choice.rs` and by the
//!   times of `floors.rs`.

mod choose;
mod floors;
mod spread;
mod spread_choice;

use std::{fmt, sync::Arc};

use hush_ops::path::Content;
use hush_protocol::{any_page::TableParams, share::Share};

pub use floors::{Rates, SpreadTimes};
pub use spread_choice::SpreadChoice;

/// The number of batches of a table that are worth answering at once, unless only the CPU computes them. While a GPU computes one,
/// the host reads the queries of another, or packs its answers; while other processes scan one, another is finished.
pub const BATCHES_IN_FLIGHT: usize = 2;

/// A device that computes on a share of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Device {
    /// The CPU.
    Cpu,
    /// The GPU of this number, or the emulator of one.
    Gpu(usize),
    /// Devices of other processes.
    Elsewhere,
}

/// A share of a table on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedShare {
    /// The units of the table that the device scans.
    pub share: Share,
    /// The device.
    pub device: Device,
    /// Whether the symbols stay in the host's memory, and are copied to the device for every batch. Otherwise all files are
    /// resident where the device computes.
    pub is_streamed: bool,
}

/// The placement of a table, or of the part of it that a process has. The CPU does not share a table with GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The shares, at least one, in the order of the devices. Several that are each the whole table are copies.
    pub shares: Vec<PlacedShare>,
    /// Whether each device does for the queries that it finishes what a part would do for all ([`TableParams::finished_by_query`]).
    pub by_query: bool,
}

impl Placement {
    fn new(shares: Vec<PlacedShare>) -> Self {
        Self { shares, by_query: false }
    }

    /// Returns the placement of a share that is resident on one device.
    pub fn on(device: Device, share: Share) -> Self {
        Self::new(vec![PlacedShare { share, device, is_streamed: false }])
    }

    /// Returns the table as its devices have it.
    pub(crate) fn as_placed(&self, table: &TableParams) -> TableParams {
        let by_query = if self.by_query { table.finished_by_query() } else { None };
        by_query.unwrap_or_else(|| table.clone())
    }

    /// Returns the devices. Keys that are opened on them serve all tables on the same devices in the same order.
    pub fn devices(&self) -> Arc<[Device]> {
        self.shares.iter().map(|placed| placed.device).collect()
    }

    /// Returns the number of batches that are worth answering at once. A single batch keeps the CPU busy.
    pub fn batches_in_flight(&self) -> usize {
        let at_once = if self.has_copies() { self.shares.len() } else { 1 };
        if self.is_on_cpu() { 1 } else { at_once * BATCHES_IN_FLIGHT }
    }

    /// Returns whether several devices have the whole table each.
    pub fn has_copies(&self) -> bool {
        self.shares.len() > 1 && self.shares.iter().all(|placed| placed.share == Share::whole())
    }

    /// Returns what the devices have, for people: "a copy on each of 2 GPUs".
    pub fn described(&self) -> String {
        let each = if self.has_copies() { "a copy" } else { "a share" };
        match &self.shares[..] {
            [PlacedShare { device: Device::Gpu(_), is_streamed: true, .. }] => {
                "on a GPU, with its symbols in the host's memory".into()
            }
            [PlacedShare { device: Device::Gpu(_), .. }] => "on a GPU".into(),
            [PlacedShare { device: Device::Cpu, .. }] => "on the CPU".into(),
            several => format!("{each} on each of {} GPUs", several.len()),
        }
    }

    /// Returns whether only the CPU computes.
    pub(crate) fn is_on_cpu(&self) -> bool {
        self.shares.iter().all(|placed| placed.device == Device::Cpu)
    }

    /// Returns whether the host reads `content` for every batch.
    pub(crate) fn is_read_by_host(&self, content: &Content) -> bool {
        let is_symbols = matches!(content, Content::Symbols { .. });
        self.is_on_cpu() || is_symbols && self.shares.iter().any(|placed| placed.is_streamed)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Gpu(0) => f.write_str("cuda"),
            Self::Gpu(number) => write!(f, "cuda:{number}"),
            Self::Elsewhere => f.write_str("parts"),
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gpus = self.shares.iter().map(|placed| match placed.device {
            Device::Gpu(number) => Ok(number.to_string()),
            device => Err(device),
        });
        match (&self.shares[..], gpus.collect::<Result<Vec<_>, _>>()) {
            ([one], _) => one.device.fmt(f),
            (_, Ok(numbers)) => {
                let between = if self.has_copies() { "," } else { "+" };
                write!(f, "cuda:{}", numbers.join(between))
            }
            _ => Device::Elsewhere.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placements_have_names() {
        for (devices, name, in_flight) in [
            (&[Device::Cpu][..], "cpu", 1),
            (&[Device::Gpu(0)], "cuda", 2),
            (&[Device::Gpu(2)], "cuda:2", 2),
            (&[Device::Gpu(2), Device::Gpu(0)], "cuda:2+0", 2),
            (&[Device::Cpu, Device::Elsewhere], "parts", 2),
        ] {
            let share = |index| Share { index, weights: vec![1; devices.len()] };
            let placed = |(index, &device)| Placement::on(device, share(index)).shares;
            let shares = devices.iter().enumerate().flat_map(placed);
            let placement = Placement::new(shares.collect());
            assert_eq!((placement.to_string(), placement.batches_in_flight()), (name.into(), in_flight));
            assert_eq!(placement.devices()[..], *devices);
        }
        let copies = [1, 3].map(|gpu| Placement::on(Device::Gpu(gpu), Share::whole()).shares.remove(0));
        let placement = Placement::new(copies.into());
        assert_eq!((placement.to_string(), placement.batches_in_flight()), ("cuda:1,3".into(), 4));
    }
}
