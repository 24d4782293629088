//! Where a table is, and computes.

use std::fmt;

use hush_cpu::Cpu;
use hush_ops::{contract::Steps, path::Footprint};

/// Where a table is, and computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// The CPU.
    Cpu,
    /// The GPU of this number, or the emulator of one.
    Gpu(usize),
    /// In parts, which are elsewhere.
    Parts,
}

impl Place {
    /// Batches of a table that are worth answering at once. The CPU has enough to do with one; while a GPU computes one, the host
    /// reads the queries of another, or packs its answers; while parts scan one, another is finished.
    pub fn batches_in_flight(self) -> usize {
        match self {
            Self::Cpu => 1,
            Self::Gpu(_) | Self::Parts => 2,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Gpu(0) => f.write_str("cuda"),
            Self::Gpu(number) => write!(f, "cuda:{number}"),
            Self::Parts => f.write_str("parts"),
        }
    }
}

/// A backend that tables are hosted on.
pub(crate) trait Hosting: Steps + Footprint + 'static {
    /// Why it does nothing any more; `None` as long as all is well.
    fn lost(&self) -> Option<String>;
}

impl Hosting for Cpu {
    fn lost(&self) -> Option<String> {
        None
    }
}
