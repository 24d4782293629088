//! The backend: a device and what is kept on it between calls.

use crate::{device::Device, lwe::LweState};

/// The CUDA backend. Steps take `&self` and may be called from several threads; the device does their work in order.
pub struct Cuda {
    device: Device,
    pub(crate) lwe: LweState,
}

impl Cuda {
    /// A backend on `device`.
    pub fn new(device: Device) -> Self {
        Self { device, lwe: LweState::default() }
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }
}
