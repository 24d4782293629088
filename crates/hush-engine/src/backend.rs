//! What computes: the choice of a backend, made once.

use std::{cmp::Reverse, sync::Arc};

use hush_cpu::Cpu;
use hush_protocol::{any_page::TableParams, facts::Facts, share::Share};

use crate::{
    Progress,
    choice::{BackendChoice, BackendError},
    gpus::{
        gpu::Gpu,
        seats::{PartSeat, Seat, Seating},
        spread::shares,
    },
    memory::{
        choice::MemoryChoice,
        plan::{DoesNotFit, MemoryPlan},
    },
    place::GpuSet,
};

/// Clients whose keys a device has room for, unless told: the default of `hushdb serve`.
const CLIENTS: usize = 256;

/// The backends that a program has, of which each table gets one.
pub struct Backends {
    choice: BackendChoice,
    cpu: Arc<Cpu>,
    /// The GPUs, at least one, or why none is used.
    gpus: Result<Vec<Gpu>, BackendError>,
    clients: usize,
    memory: MemoryChoice,
}

impl Backends {
    /// The CPU and, unless they are not wanted, all GPUs, which are opened.
    ///
    /// # Errors
    /// [`BackendError::Unavailable`] if the GPU is asked for and cannot be used, [`BackendError::Variable`].
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
        Self { choice, cpu, gpus, clients: CLIENTS, memory: MemoryChoice::default() }
    }

    /// The CPU for all tables.
    pub fn cpu_only(cpu: Arc<Cpu>) -> Self {
        Self::new(BackendChoice::Cpu, cpu, Err(BackendError::NotAskedFor))
    }

    /// The CPU, and open devices, at least one, in place of the GPUs.
    #[cfg(any(feature = "cuda", feature = "emulator"))]
    pub fn with_devices(
        choice: BackendChoice,
        cpu: Arc<Cpu>,
        devices: impl IntoIterator<Item = hush_cuda::device::Device>,
    ) -> Self {
        let gpus = devices.into_iter().enumerate().map(|(number, device)| Gpu::new(number, device)).collect();
        Self::new(choice, cpu, Ok(gpus))
    }

    /// Evaluation keys of `clients` clients are in memory at most: a device has room for them.
    pub fn for_clients(self, clients: usize) -> Self {
        Self { clients, ..self }
    }

    /// How files that are scanned by the host are in its memory.
    pub fn with_memory(self, memory: MemoryChoice) -> Self {
        Self { memory, ..self }
    }

    pub(crate) fn memory(&self) -> MemoryChoice {
        self.memory
    }

    pub(crate) fn clients(&self) -> usize {
        self.clients
    }

    /// The CPU, which does what no GPU does, too.
    pub fn cpu(&self) -> &Arc<Cpu> {
        &self.cpu
    }

    /// Why no GPU is used; `None` if one is. [`BackendError::Device`] is what its owner wants to know.
    pub fn unused_because(&self) -> Option<&BackendError> {
        self.gpus.as_ref().err()
    }

    /// Whether a table that the GPU cannot serve may go to the CPU.
    pub(crate) fn is_free_to_choose(&self) -> bool {
        self.choice == BackendChoice::Auto
    }

    /// The GPU if the table is to be served there, or several if none has room for all of it. `progress` is told why not, if there
    /// is one.
    ///
    /// # Errors
    /// [`DoesNotFit`] if the GPU was asked for.
    pub(crate) fn gpus_to_serve(
        &self,
        table: &TableParams,
        progress: &dyn Progress,
    ) -> Result<Option<Seating<'_>>, DoesNotFit> {
        let on_several =
            |refused| self.seats(table).map(Seating::Several).map_err(|all| all.unwrap_or(refused));
        let seat = match self.seat(table.facts(), |gpu| gpu.serving_plan(table, self.clients)) {
            // One that is lost tells whoever uses it why, unless others have room.
            Ok(Some(seat)) if seat.gpu.is_lost() => {
                Ok(Some(self.seats(table).map_or(Seating::One(seat), Seating::Several)))
            }
            Ok(seat) => Ok(seat.map(Seating::One)),
            Err(refused) => {
                on_several(refused).or_else(|refused| self.streaming(table).ok_or(refused)).map(Some)
            }
        };
        self.or_cpu(seat, progress)
    }

    /// The GPU that has room for all of a table but its symbols.
    fn streaming(&self, table: &TableParams) -> Option<Seating<'_>> {
        let seat = self.seat(table.facts(), |gpu| gpu.streaming_plan(table, self.clients));
        seat.ok().flatten().map(Seating::Streaming)
    }

    /// The GPU where a part of a table is to be scanned, whose answers are finished elsewhere; `None` for the CPU.
    ///
    /// # Errors
    /// [`DoesNotFit`] if the GPU was asked for.
    pub(crate) fn gpu_to_scan(
        &self,
        table: &TableParams,
        share: &Share,
        progress: &dyn Progress,
    ) -> Result<Option<Seat<'_>>, DoesNotFit> {
        let plan = |gpu: &Gpu| gpu.scanning_plan(table, share, self.clients);
        self.or_cpu(self.seat(table.facts(), plan), progress)
    }

    /// Returns the GPUs that have room for work that they share, each with all that `plan` says. None for the CPU; `progress` is
    /// told why, if there is a GPU. `facts` are of the table that the work is for.
    ///
    /// # Errors
    /// [`DoesNotFit`] if the GPU was asked for.
    pub fn gpus_to_share(
        &self,
        facts: &Facts,
        plan: impl Fn(&Gpu) -> MemoryPlan,
        progress: &dyn Progress,
    ) -> Result<Vec<Seat<'_>>, DoesNotFit> {
        let Some(first) = self.or_cpu(self.seat(facts, &plan), progress)? else {
            return Ok(Vec::new());
        };
        // Whatever is wrong with the others, the first one does it.
        let others =
            self.gpus.iter().flatten().filter(|gpu| !std::ptr::eq(*gpu, first.gpu) && !gpu.is_lost());
        let others = others.map(|gpu| Seat { gpu, plan: plan(gpu), free: gpu.free_bytes() });
        let others = others.filter(|seat| seat.plan.needed_bytes() <= seat.free);
        Ok([first].into_iter().chain(others).collect())
    }

    /// None for the CPU, if nothing fits and the choice is free.
    fn or_cpu<T>(
        &self,
        seat: Result<Option<T>, DoesNotFit>,
        progress: &dyn Progress,
    ) -> Result<Option<T>, DoesNotFit> {
        seat.or_else(|reason| {
            if !self.is_free_to_choose() {
                return Err(reason);
            }
            progress.note(&format!("on the CPU: the {} {}", reason.what(), reason.needs()));
            Ok(None)
        })
    }

    /// The first GPU that has room, or that is lost, if there is one.
    fn seat(&self, facts: &Facts, plan: impl Fn(&Gpu) -> MemoryPlan) -> Result<Option<Seat<'_>>, DoesNotFit> {
        let Ok(gpus) = &self.gpus else { return Ok(None) };
        let encoded = facts.encoded_bytes;
        let (mut lost, mut refused) = (None, None);
        for gpu in gpus {
            let (plan, free) = (plan(gpu), gpu.free_bytes());
            match plan.check(gpu.name(), free, encoded) {
                Ok(()) => return Ok(Some(Seat { gpu, plan, free })),
                // It has no memory at all: whoever uses it is told why, unless another has room.
                Err(_) if gpu.is_lost() => lost = lost.or(Some(Seat { gpu, plan, free })),
                Err(reason) => refused = refused.or(Some(reason)),
            }
        }
        if lost.is_some() {
            return Ok(lost);
        }
        refused.map_or(Ok(None), Err)
    }

    /// Several GPUs with a part of the table each, the one with the most room first; what is missing, if there are several.
    fn seats(&self, table: &TableParams) -> Result<Vec<PartSeat<'_>>, Option<DoesNotFit>> {
        let gpus = self.gpus.iter().flatten().filter(|gpu| !gpu.is_lost());
        let mut gpus: Vec<_> = gpus.map(|gpu| (gpu, gpu.free_bytes())).collect();
        gpus.sort_by_key(|(_, free)| Reverse(*free));
        gpus.truncate(GpuSet::MOST);
        if gpus.len() < 2 {
            return Err(None);
        }
        let free: Vec<usize> = gpus.iter().map(|(_, free)| *free).collect();
        let plan =
            |device: usize, share: &Share| gpus[device].0.serving_part_plan(table, share, self.clients);
        match shares(table, &free, plan) {
            Ok(shares) => {
                let seats = gpus.iter().zip(shares).filter_map(|(&(gpu, free), planned)| {
                    planned.map(|(share, plan)| PartSeat { share, seat: Seat { gpu, plan, free } })
                });
                Ok(seats.collect())
            }
            Err(plans) => {
                let names: Vec<&str> = gpus.iter().map(|(gpu, _)| gpu.name()).collect();
                let (names, free) = (names.join(" and "), free.iter().sum());
                Err(MemoryPlan::refused_together(&plans, &names, free, table.facts().encoded_bytes))
            }
        }
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
