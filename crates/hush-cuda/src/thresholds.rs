//! The batch sizes from which another kernel takes over: the defaults, or values measured on a device.

use serde::{Deserialize, Serialize};

/// The batch sizes at which one kernel takes over from another. All kernels give the same words, so a bad value only costs time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thresholds {
    /// The fewest queries for which tensor cores compute the products with a database of ring elements.
    pub mma_from: usize,
    /// The fewest queries for which the kernel for Hopper computes these products, on devices that support it.
    pub hopper_from: usize,
}

/// The thresholds of an H100, used for devices without measurements. Below `mma_from`, CUDA cores need less preparation. Up to
/// `hopper_from`, memory is the limit.
impl Default for Thresholds {
    fn default() -> Self {
        Self { mma_from: 3, hopper_from: 40 }
    }
}
