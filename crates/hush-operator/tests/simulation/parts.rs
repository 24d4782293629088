//! A table whose parts are elsewhere, and fail.

use std::sync::{Arc, Mutex, PoisonError};

use hush_cpu::Cpu;
use hush_engine::{
    Backends, Engine, Silent,
    parts::{PartEngine, Share, Source, Unavailable, Workers, open_head, open_part},
};
use prost::bytes::Bytes;

use super::dice::Dice;

/// The parts of a table.
const PARTS: usize = 2;

/// The way of batches to the parts.
#[derive(Default)]
pub(crate) struct Network(Mutex<Option<(Dice, u64)>>);

impl Network {
    /// Has batches fail from now on, so many in a hundred.
    pub(crate) fn fail(&self, seed: u64, percent: u64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Dice::new(seed), percent));
    }

    /// Returns whether a part is out of reach, and whether one of another epoch answers.
    fn draw(&self) -> (bool, bool) {
        match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some((dice, percent)) => (dice.chance(*percent), dice.chance(*percent)),
            None => (false, false),
        }
    }
}

/// The parts of the epochs of a table, as the head of one of them reaches them.
struct Reached {
    network: Arc<Network>,
    epochs: Arc<Vec<Vec<Arc<dyn PartEngine>>>>,
    own: usize,
}

impl Workers for Reached {
    fn scan(&self, batch: Bytes) -> Result<Vec<Bytes>, Unavailable> {
        let parts = (0..PARTS).map(|part| {
            let (is_away, is_other) = self.network.draw();
            if is_away {
                return Err(Unavailable { part, reason: "it does not reply".into() });
            }
            let epoch = if is_other { (self.own + 1) % self.epochs.len() } else { self.own };
            Ok(self.epochs[epoch][part].scan(batch.clone()).into())
        });
        parts.collect()
    }
}

/// Opens the head of each epoch of a table.
pub(crate) fn head(
    sources: Vec<Source>,
    network: &Arc<Network>,
    cpu: &Arc<Cpu>,
    backends: &Backends,
) -> Vec<Arc<dyn Engine>> {
    let parts = |source| {
        let share = |index| Share { index, weights: vec![1; PARTS] };
        (0..PARTS).map(|index| open_part(source, &share(index), backends, &Silent).unwrap()).collect()
    };
    let epochs: Arc<Vec<_>> = Arc::new(sources.iter().map(parts).collect());
    let open = |(own, source)| {
        let workers = Reached { network: network.clone(), epochs: epochs.clone(), own };
        open_head(source, Arc::new(workers), cpu.clone()).unwrap()
    };
    sources.iter().enumerate().map(open).collect()
}
