//! From how many queries on a batch takes another kernel: guesses, or what was measured on a device.

use serde::{Deserialize, Serialize};

/// Batches at which one kernel hands over to the next. All kernels give the same words, so a bad figure costs time alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thresholds {
    /// Fewest queries whose products with a database of ring elements are made on tensor cores.
    pub mma_from: usize,
    /// Fewest queries of which Hopper's own kernel makes them, where it can.
    pub hopper_from: usize,
}

/// Thresholds for devices that were not measured; an H100 has these. Below `mma_from` CUDA cores have less to prepare; up to
/// `hopper_from` memory is the limit.
impl Default for Thresholds {
    fn default() -> Self {
        Self { mma_from: 3, hopper_from: 40 }
    }
}
