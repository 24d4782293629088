//! The choice of a table's placement: the first of several for which there is enough memory.

use hush_protocol::{any_page::TableParams, facts::Facts, share::Share};

use super::{Device, PlacedShare, Placement};
use crate::{
    Backends, Progress,
    gpus::gpu::Gpu,
    memory::plan::{DoesNotFit, MemoryPlan},
};

impl Backends {
    /// Chooses the placement of a table that is served here, or of a `part` of it whose answers are finished
    /// elsewhere.
    ///
    /// Several GPUs get copies of a table or shares of it, as [`super::SpreadChoice`] says. Otherwise the first GPU with enough
    /// memory gets it. If there is none, a table goes to several GPUs, or else to several or one with memory for all but its
    /// symbols. If none of these fits, the CPU gets it, and `progress` is told why, if there is a GPU.
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
        let spread = if part.is_none() { self.spread_out(table, progress) } else { None };
        if let Some(spread) = spread {
            return Ok(spread);
        }
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
            Ok(gpu.map(|gpu| (Placement::new(vec![placed(gpu)]), gpu.is_lost())))
        };
        match on_one(false) {
            // A lost GPU reports the reason to its users, unless other GPUs have enough memory.
            Ok(Some((lost, true))) if finishes => Ok(Some(self.on_several(table, false).unwrap_or(lost))),
            Err(refused) => {
                // A part that is finished elsewhere is on one GPU.
                let several =
                    |is_streamed| if finishes { self.on_several(table, is_streamed) } else { Err(None) };
                let streamed = |all: Option<DoesNotFit>| match on_one(true) {
                    Ok(Some((streamed, _))) => Ok(several(true).unwrap_or(streamed)),
                    _ => several(true).map_err(|_| all.unwrap_or(refused)),
                };
                several(false).or_else(streamed).map(Some)
            }
            one => Ok(one?.map(|(placement, _)| placement)),
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
