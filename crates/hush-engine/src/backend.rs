//! The backends that compute, chosen once.

use std::sync::Arc;

use hush_cpu::Cpu;

use crate::{
    choice::{BackendChoice, BackendError},
    gpus::gpu::Gpu,
    memory::choice::MemoryChoice,
    placement::SpreadChoice,
};

/// The number of clients whose keys a device has memory for by default: the default of `hushdb serve`.
const CLIENTS: usize = 256;

/// The backends of a program. Each table gets one of them.
pub struct Backends {
    choice: BackendChoice,
    cpu: Arc<Cpu>,
    /// The GPUs, at least one, or the reason why none is used.
    gpus: Result<Vec<Gpu>, BackendError>,
    clients: usize,
    memory: MemoryChoice,
    spread: SpreadChoice,
}

impl Backends {
    /// Opens the CPU backend and, unless the choice is the CPU, all GPUs.
    ///
    /// # Errors
    /// [`BackendError::Unavailable`] if the GPU is asked for and cannot be used, [`BackendError::Variable`] if `HUSH_CUDA` has
    /// an unknown value.
    pub fn choose(choice: BackendChoice, cpu: Arc<Cpu>) -> Result<Self, BackendError> {
        if choice == BackendChoice::Cpu {
            return Ok(Self::cpu_only(cpu));
        }
        let gpus = match Gpu::open_all() {
            Err(error @ BackendError::Variable(_)) => return Err(error),
            Err(error) if choice == BackendChoice::Cuda => {
                return Err(BackendError::Unavailable(error.to_string()));
            }
            gpus => gpus,
        };
        Ok(Self::new(choice, cpu, gpus))
    }

    fn new(choice: BackendChoice, cpu: Arc<Cpu>, gpus: Result<Vec<Gpu>, BackendError>) -> Self {
        let memory = MemoryChoice::default();
        Self { choice, cpu, gpus, clients: CLIENTS, memory, spread: SpreadChoice::One }
    }

    /// Uses the CPU for all tables.
    pub fn cpu_only(cpu: Arc<Cpu>) -> Self {
        Self::new(BackendChoice::Cpu, cpu, Err(BackendError::NotAskedFor))
    }

    /// Uses the CPU, and open devices, at least one, in place of the GPUs.
    #[cfg(any(feature = "cuda", feature = "emulator"))]
    pub fn with_devices(
        choice: BackendChoice,
        cpu: Arc<Cpu>,
        devices: impl IntoIterator<Item = hush_cuda::device::Device>,
    ) -> Self {
        let gpus = devices.into_iter().enumerate().map(|(number, device)| Gpu::new(number, device)).collect();
        Self::new(choice, cpu, Ok(gpus))
    }

    /// Sets the number of clients whose evaluation keys are in memory at most. Devices have memory for them.
    pub fn for_clients(self, clients: usize) -> Self {
        Self { clients, ..self }
    }

    /// Sets how files that the host scans are kept in its memory.
    pub fn with_memory(self, memory: MemoryChoice) -> Self {
        Self { memory, ..self }
    }

    /// Sets how tables are spread over several GPUs: each on one, if this is not called.
    pub fn with_spread(self, spread: SpreadChoice) -> Self {
        Self { spread, ..self }
    }

    pub(crate) fn spread(&self) -> SpreadChoice {
        self.spread
    }

    pub(crate) fn memory(&self) -> MemoryChoice {
        self.memory
    }

    pub(crate) fn clients(&self) -> usize {
        self.clients
    }

    /// Returns the CPU backend, which also does what no GPU does.
    pub fn cpu(&self) -> &Arc<Cpu> {
        &self.cpu
    }

    /// Returns the GPUs by their numbers; empty if none is used.
    pub(crate) fn gpus(&self) -> &[Gpu] {
        self.gpus.as_deref().unwrap_or_default()
    }

    /// Returns the reason why no GPU is used; `None` if one is. [`BackendError::Device`] is worth telling the owner of the GPU.
    pub fn unused_because(&self) -> Option<&BackendError> {
        self.gpus.as_ref().err()
    }

    /// Returns whether a table that the GPU cannot serve may go to the CPU.
    pub(crate) fn is_free_to_choose(&self) -> bool {
        self.choice == BackendChoice::Auto
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_can_always_be_had() {
        let cpu = Arc::new(Cpu::new(1).unwrap());
        let backends = Backends::choose(BackendChoice::Cpu, cpu).unwrap();
        assert_eq!(backends.unused_because(), Some(&BackendError::NotAskedFor));
    }

    #[cfg(not(any(feature = "cuda", feature = "emulator")))]
    #[test]
    fn a_program_without_gpu_support_says_so() {
        let cpu = Arc::new(Cpu::new(1).unwrap());
        let backends = Backends::choose(BackendChoice::Auto, cpu.clone()).unwrap();
        assert_eq!(backends.unused_because(), Some(&BackendError::NotBuilt));
        let Err(error) = Backends::choose(BackendChoice::Cuda, cpu) else { panic!("there is no GPU") };
        assert!(error.to_string().contains("make build-cuda"), "{error}");
    }
}
