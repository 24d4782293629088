//! The backend: a device and what is kept on it between calls.

use crate::{device::Device, lwe::LweState, ring::Stages};

/// The CUDA backend. Steps take `&self` and may be called from several threads; the device does their work in order.
pub struct Cuda {
    device: Device,
    stages: Stages,
    pub(crate) lwe: LweState,
}

impl Cuda {
    /// A backend on `device`.
    pub fn new(device: Device) -> Self {
        Self { device, stages: Stages::default(), lwe: LweState::default() }
    }

    /// The same with other kernels for the stages of trees, for comparison.
    pub fn with_stages(self, stages: Stages) -> Self {
        Self { stages, ..self }
    }

    pub(crate) fn stages(&self) -> Stages {
        self.stages
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }
}
