//! The choice of a table's placement: the first of several for which there is enough memory.

use std::cmp::Reverse;

use hush_protocol::{any_page::TableParams, facts::Facts, share::Share};

use super::{Device, PlacedShare, Placement, spread::shares};
use crate::{
    Backends, Progress,
    gpus::gpu::Gpu,
    memory::plan::{DoesNotFit, MemoryPlan},
};

/// The most GPUs that a table is on: as many as a machine has.
const MOST_GPUS: usize = 16;

impl Backends {
    /// Chooses the placement of a table that is served here, or of a `part` of it whose answers are finished
    /// elsewhere.
    ///
    /// The first GPU with enough memory gets it. If there is none, a table goes to several GPUs, or else to the first that has
    /// memory for all but its symbols. If none of these fits, the CPU gets it, and `progress` is told why, if there is a GPU.
    ///
    /// # Errors
    /// [`DoesNotFit`] if the GPU was asked for.
    pub(crate) fn place(
        &self,
        table: &TableParams,
        part: Option<&Share>,
        progress: &dyn Progress,
    ) -> Result<Placement, DoesNotFit> {
        let share = part.cloned().unwrap_or_else(Share::whole);
        let on_gpus = self.or_cpu(self.on_gpus(table, &share, part.is_none()), progress)?;
        Ok(on_gpus.unwrap_or_else(|| Placement::on(Device::Cpu, share)))
    }

    fn on_gpus(
        &self,
        table: &TableParams,
        share: &Share,
        finishes: bool,
    ) -> Result<Option<Placement>, DoesNotFit> {
        let on_one = |is_streamed| {
            let placed = |gpu: &Gpu| PlacedShare { share: share.clone(), device: gpu.device(), is_streamed };
            let gpu = self.first_with_room(table.facts(), |gpu| {
                gpu.plan(table, &placed(gpu), finishes, self.clients())
            })?;
            Ok(gpu.map(|gpu| (Placement { shares: vec![placed(gpu)] }, gpu.is_lost())))
        };
        match on_one(false) {
            // A lost GPU reports the reason to its users, unless other GPUs have enough memory.
            Ok(Some((lost, true))) if finishes => Ok(Some(self.on_several(table).unwrap_or(lost))),
            Err(refused) if finishes => {
                let streamed = |all: Option<DoesNotFit>| match on_one(true) {
                    Ok(Some((streamed, _))) => Ok(streamed),
                    _ => Err(all.unwrap_or(refused)),
                };
                self.on_several(table).or_else(streamed).map(Some)
            }
            one => Ok(one?.map(|(placement, _)| placement)),
        }
    }

    /// Returns several GPUs with a share of the table each, the one with the most free memory first.
    ///
    /// # Errors
    /// The missing memory, if there are several GPUs.
    fn on_several(&self, table: &TableParams) -> Result<Placement, Option<DoesNotFit>> {
        let gpus = self.gpus().iter().filter(|gpu| !gpu.is_lost());
        let mut gpus: Vec<_> = gpus.map(|gpu| (gpu, gpu.free_bytes())).collect();
        gpus.sort_by_key(|(_, free)| Reverse(*free));
        gpus.truncate(MOST_GPUS);
        if gpus.len() < 2 {
            return Err(None);
        }
        let free: Vec<usize> = gpus.iter().map(|(_, free)| *free).collect();
        let placed = |number: usize, share: Share| PlacedShare {
            share,
            device: gpus[number].0.device(),
            is_streamed: false,
        };
        let chosen = shares(table, &free, |number, share| {
            gpus[number].0.plan(table, &placed(number, share.clone()), true, self.clients())
        });
        match chosen {
            Ok(shares) => {
                let shares = shares.into_iter().map(|share| placed(share.index, share));
                Ok(Placement { shares: shares.collect() })
            }
            Err(plans) => {
                let names: Vec<&str> = gpus.iter().map(|(gpu, _)| gpu.name()).collect();
                let names = names.join(" and ");
                let free = free.iter().sum();
                Err(MemoryPlan::refused_together(&plans, &names, free, table.facts().encoded_bytes))
            }
        }
    }

    /// Returns the GPUs that have enough memory for work that they share, each for all of `plan`. Empty for the CPU; `progress` is
    /// told why, if there is a GPU. `facts` are of the table that the work is for.
    ///
    /// # Errors
    /// [`DoesNotFit`] if the GPU was asked for.
    pub fn gpus_to_share(
        &self,
        facts: &Facts,
        plan: impl Fn(&Gpu) -> MemoryPlan,
        progress: &dyn Progress,
    ) -> Result<Vec<&Gpu>, DoesNotFit> {
        let Some(first) = self.or_cpu(self.first_with_room(facts, &plan), progress)? else {
            return Ok(Vec::new());
        };
        // The first GPU suffices, whatever is wrong with the others.
        let others = self.gpus().iter().filter(|gpu| !std::ptr::eq(*gpu, first) && !gpu.is_lost());
        let others = others.filter(|gpu| plan(gpu).needed_bytes() <= gpu.free_bytes());
        Ok([first].into_iter().chain(others).collect())
    }

    /// Returns `None` for the CPU, if nothing fits and the choice is free.
    fn or_cpu<T>(
        &self,
        on_gpus: Result<Option<T>, DoesNotFit>,
        progress: &dyn Progress,
    ) -> Result<Option<T>, DoesNotFit> {
        on_gpus.or_else(|reason| {
            if !self.is_free_to_choose() {
                return Err(reason);
            }
            progress.note(&format!("on the CPU: the {} {}", reason.what(), reason.needs()));
            Ok(None)
        })
    }

    /// Returns the first GPU that has enough memory, or that is lost, if there is a GPU.
    fn first_with_room(
        &self,
        facts: &Facts,
        plan: impl Fn(&Gpu) -> MemoryPlan,
    ) -> Result<Option<&Gpu>, DoesNotFit> {
        let mut lost = None;
        let mut refused = None;
        for gpu in self.gpus() {
            match plan(gpu).check(gpu.name(), gpu.free_bytes(), facts.encoded_bytes) {
                Ok(()) => return Ok(Some(gpu)),
                // A lost GPU has no memory at all, and reports the reason to its users, unless another GPU has enough memory.
                Err(_) if gpu.is_lost() => lost = lost.or(Some(gpu)),
                Err(reason) => refused = refused.or(Some(reason)),
            }
        }
        match (lost, refused) {
            (None, Some(reason)) => Err(reason),
            (lost, _) => Ok(lost),
        }
    }
}
