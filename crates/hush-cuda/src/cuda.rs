//! The backend: a device and the data that stays on it between calls.

use crate::{
    Thresholds,
    device::Device,
    lwe::{FoldKernel, PreparedMatrices},
    ring::Stages,
};

/// The CUDA backend. Its steps take `&self` and may be called from several threads; the device runs them in order.
pub struct Cuda {
    device: Device,
    stages: Stages,
    thresholds: Thresholds,
    symbols_on_host: bool,
    /// The kernel for all folds; `None` chooses the fastest of the device.
    pub(crate) fold_kernel: Option<FoldKernel>,
    pub(crate) matrices: PreparedMatrices,
}

impl Cuda {
    /// Creates a backend on `device`.
    pub fn new(device: Device) -> Self {
        let (stages, thresholds, symbols_on_host, fold_kernel, matrices) = Default::default();
        Self { device, stages, thresholds, symbols_on_host, fold_kernel, matrices }
    }

    /// Sets the kernels for the stages of trees, to compare them.
    pub fn with_stages(self, stages: Stages) -> Self {
        Self { stages, ..self }
    }

    /// Sets the thresholds, which should be measured on this kind of device.
    pub fn with_thresholds(self, thresholds: Thresholds) -> Self {
        Self { thresholds, ..self }
    }

    /// Sets one kernel for all folds, to compare kernels. [`FoldKernel::Wgmma`] needs Hopper.
    pub fn with_fold_kernel(self, kernel: FoldKernel) -> Self {
        Self { fold_kernel: Some(kernel), ..self }
    }

    /// Returns the batch sizes at which one kernel takes over from another.
    pub fn thresholds(&self) -> Thresholds {
        self.thresholds
    }

    /// Keeps databases of symbols in the host's memory, and copies them to the device for every batch. Use it for databases that do
    /// not fit into device memory.
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
