//! A backend that notes which steps are called, with the shapes of their operands, and does them by their definitions.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};

use hush_he::{entities::EvaluationKeys, params::RingContext};
use hush_ops::{
    contract::{BatchWords, HostMemory, RlweBatch},
    reference::{ByDefinition, Reference},
    steps::StepShape,
};

/// Notes the steps of one query.
#[derive(Default)]
pub(crate) struct Recorder {
    steps: Mutex<Vec<StepShape>>,
    /// Whether pairs were packed that are not switched yet.
    has_pairs: AtomicBool,
}

impl Recorder {
    /// Returns what was called since the last time.
    pub(crate) fn take(&self) -> Vec<StepShape> {
        std::mem::take(&mut self.steps.lock().unwrap())
    }
}

impl HostMemory for Recorder {
    fn called(&self, step: impl Into<StepShape>) {
        let step = step.into();
        // Plaintexts of pairs are noted already when they are switched; all others are two polynomials each.
        if !(matches!(step, StepShape::Respond(_)) && self.has_pairs.swap(false, Ordering::Relaxed)) {
            self.steps.lock().unwrap().push(step);
        }
    }
}

impl ByDefinition for Recorder {
    fn define_pack_pairs(
        &self,
        ring: &RingContext,
        keys: &EvaluationKeys,
        batch: &RlweBatch,
        pairs: usize,
    ) -> BatchWords {
        self.has_pairs.store(pairs > 0, Ordering::Relaxed);
        Reference.define_pack_pairs(ring, keys, batch, pairs)
    }
}
