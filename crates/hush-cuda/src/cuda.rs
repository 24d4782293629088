//! The backend: a device and what is kept on it between calls.

use crate::{
    Thresholds,
    device::Device,
    lwe::{FoldKernel, PreparedMatrices},
    ring::Stages,
};

/// The CUDA backend. Steps take `&self` and may be called from several threads; the device does their work in order.
pub struct Cuda {
    device: Device,
    stages: Stages,
    thresholds: Thresholds,
    symbols_on_host: bool,
    /// The kernel of all folds, if it is given.
    pub(crate) fold_kernel: Option<FoldKernel>,
    pub(crate) matrices: PreparedMatrices,
}

impl Cuda {
    /// Creates a backend on `device`.
    pub fn new(device: Device) -> Self {
        let (stages, thresholds, symbols_on_host, fold_kernel, matrices) = Default::default();
        Self { device, stages, thresholds, symbols_on_host, fold_kernel, matrices }
    }

    /// Returns the backend with other kernels for the stages of trees, for comparison.
    pub fn with_stages(self, stages: Stages) -> Self {
        Self { stages, ..self }
    }

    /// Returns the backend with thresholds that were measured on such a device.
    pub fn with_thresholds(self, thresholds: Thresholds) -> Self {
        Self { thresholds, ..self }
    }

    /// Returns the backend with one kernel for all folds, to compare kernels. [`FoldKernel::Wgmma`] needs Hopper.
    pub fn with_fold_kernel(self, kernel: FoldKernel) -> Self {
        Self { fold_kernel: Some(kernel), ..self }
    }

    /// Returns the batches at which its kernels hand over to each other.
    pub fn thresholds(&self) -> Thresholds {
        self.thresholds
    }

    /// Returns a backend whose databases of symbols stay in the host's memory, and are copied to the device for every
    /// batch: for databases that the device has no room for.
    pub fn with_symbols_on_host(self) -> Self {
        Self { symbols_on_host: true, ..self }
    }

    pub(crate) fn symbols_on_host(&self) -> bool {
        self.symbols_on_host
    }

    pub(crate) fn stages(&self) -> Stages {
        self.stages
    }

    /// Returns the device.
    pub fn device(&self) -> &Device {
        &self.device
    }
}
