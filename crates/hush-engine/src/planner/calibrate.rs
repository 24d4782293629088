//! What the steps take here: each kind of step of every protocol, at two sizes and some batches.

use std::{collections::BTreeMap, error::Error, time::Instant};

use hush_cpu::Cpu;
use hush_ops::path::{Footprint, Step, StepShape};
use hush_protocol::{
    Protocol,
    any_page::{Slots, TableParams},
    facts::DbForm,
};

use super::{
    Machine, Times, Timing,
    machine::nominal_seconds,
    offers::secure_presets,
    operands::{Operands, Random},
};
use crate::Progress;

/// Bytes of all files of the tables whose steps are measured: one that fits into caches, and one that does not.
const TABLES: [u64; 2] = [8 << 20, 96 << 20];
/// Shapes tell little that are not so many times as large.
const APART: f64 = 2.0;
/// Bytes of their slots: the first that the protocol takes.
const SLOTS: [[usize; 3]; 2] = [[256, 64, 1], [4096, 256, 1]];
/// Batches that are measured of a step that scans, and of one that does not.
const OF_SCANS: &[usize] = &[1, 2, 4, 8, 16, 64];
const OF_OTHERS: &[usize] = &[1, 8];
/// Runs of which the fastest counts, unless they take too long.
const RUNS: usize = 5;
/// Seconds of all runs of a step, about: of one that scans, and of another.
const SPAN_OF_SCANS: f64 = 0.08;
const SPAN_OF_OTHERS: f64 = 0.03;
/// What would take longer than so many seconds is not measured, nor what would take more memory than so many bytes.
const LONGEST: f64 = 0.15;
const MOST_BYTES: usize = 256 << 20;

impl Machine {
    /// Measures this machine with the threads of `cpu`: some 15 seconds.
    ///
    /// # Errors
    /// If a step fails, or is cancelled.
    pub fn measure(cpu: &Cpu, progress: &dyn Progress) -> Result<Self, Box<dyn Error>> {
        let steps = steps();
        progress.start("measure", steps.len() as u64, "steps");
        let (random, mut timings) = (Random::default(), Vec::new());
        for step in &steps {
            let (shape, mut a_query) = (&step.shape, 0.0);
            let (batches, span) = effort(shape);
            for &batch in batches.iter().filter(|&&batch| is_told_by(step, batch)) {
                // Such a batch takes as long for each query as the one before, about.
                if batch as f64 * a_query > LONGEST {
                    break;
                }
                let seconds = fastest(random.step(cpu, shape, batch)?, span)?;
                a_query = seconds / batch as f64;
                timings.push(Timing {
                    step: shape.name().into(),
                    set: shape.ring().map_or("", |ring| ring.name()).into(),
                    size: nominal_seconds(shape, 1),
                    batch,
                    ratio: seconds / nominal_seconds(shape, batch),
                });
            }
            progress.advance(1);
            progress.check()?;
        }
        let (name, level) = (crate::machine::cpu_model(), cpu.level().to_string());
        Ok(Self { name, level, threads: cpu.threads(), times: Times::Measured(timings) })
    }
}

/// The batches that are measured of a step, as what all queries of a batch share makes a difference; and seconds of all runs.
fn effort(shape: &StepShape) -> (&'static [usize], f64) {
    match shape {
        StepShape::LweFold { .. }
        | StepShape::PackColumns { .. }
        | StepShape::RlweFold { .. }
        | StepShape::SymbolFold { .. }
        | StepShape::Pack { .. } => (OF_SCANS, SPAN_OF_SCANS),
        _ => (OF_OTHERS, SPAN_OF_OTHERS),
    }
}

/// Whether a batch tells more than smaller ones do, and there is room for it.
fn is_told_by(step: &Step, batch: usize) -> bool {
    let largest = if step.one_by_one { 1 } else { <Cpu as Footprint>::largest_batch(&step.shape) };
    batch == 1 || (batch <= largest && <Cpu as Footprint>::footprint(&step.shape, batch) <= MOST_BYTES)
}

/// Seconds of the fastest of some runs.
fn fastest<E>(mut run: impl FnMut() -> Result<(), E>, span: f64) -> Result<f64, E> {
    // The first run finds cold memory.
    run()?;
    let begin = Instant::now();
    let mut least = f64::INFINITY;
    for _ in 0..RUNS {
        let start = Instant::now();
        run()?;
        least = least.min(start.elapsed().as_secs_f64());
        if begin.elapsed().as_secs_f64() > span {
            break;
        }
    }
    Ok(least)
}

/// The steps that are measured: of each kind and set one of a small and one of a large shape, and one between them if they are far
/// apart.
fn steps() -> Vec<Step> {
    let mut found: BTreeMap<(&str, &str), Vec<Step>> = BTreeMap::new();
    for &protocol in Protocol::ALL {
        for preset in secure_presets(protocol) {
            let is_default = SLOTS.iter().flatten().any(|&slot| protocol.page().default_set(slot) == preset);
            for form in [DbForm::Evaluation, DbForm::Symbols] {
                // Of a set that nothing takes if it is not asked for, a small table will do.
                for (bytes, slots) in TABLES.into_iter().zip(SLOTS).take(1 + usize::from(is_default)) {
                    let Some(table) = table(protocol, preset, form, bytes, &slots) else { continue };
                    for step in table.path() {
                        let set = step.shape.ring().map_or("", |ring| ring.name());
                        found.entry((step.shape.name(), set)).or_default().push(step);
                    }
                }
            }
        }
    }
    found.into_values().flat_map(apart).collect()
}

/// Of some steps of a kind the smallest, the largest, and the one that is nearest to the middle.
fn apart(mut steps: Vec<Step>) -> Vec<Step> {
    let size = |step: &Step| nominal_seconds(&step.shape, 1).ln();
    steps.sort_by(|a, b| size(a).total_cmp(&size(b)));
    let (first, last) = (steps[0], steps[steps.len() - 1]);
    // A hint of a few words has an algorithm of its own, which no table of some length meets.
    if matches!(first.shape, StepShape::LweHint { .. }) {
        return vec![last];
    }
    let from_middle = |step: &Step| (2.0 * size(step) - size(&first) - size(&last)).abs();
    let middle = steps.into_iter().min_by(|a, b| from_middle(a).total_cmp(&from_middle(b)));
    let mut found = vec![first];
    for step in middle.into_iter().chain([last]) {
        if size(&step) - size(&found[found.len() - 1]) > APART.ln() {
            found.push(step);
        }
    }
    found
}

/// A table by index whose files take at most so many bytes.
fn table(protocol: Protocol, preset: &str, form: DbForm, bytes: u64, slots: &[usize]) -> Option<TableParams> {
    let page = protocol.page();
    slots.iter().find_map(|&slot_bytes| {
        (0..16).find_map(|halved| {
            let count = ((bytes >> halved) as usize / slot_bytes).max(1);
            let slots = Slots { count, slot_bytes, by_key: false };
            let table = page.table(preset, page.shape(preset, slots, None).ok()?).ok()?.in_form(form).ok()?;
            let is_short = |step: &Step| nominal_seconds(&step.shape, 1) < LONGEST;
            (table.held_bytes() <= bytes && table.path().iter().all(is_short)).then_some(table)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_of_every_protocol_is_measured_at_two_sizes() {
        let steps = steps();
        let sizes = |name: &str| steps.iter().filter(|step| step.shape.name() == name).count();
        for &protocol in Protocol::ALL {
            for preset in secure_presets(protocol) {
                let table = table(protocol, preset, DbForm::Evaluation, TABLES[1], &SLOTS[1]).unwrap();
                for step in table.path() {
                    assert!(sizes(step.shape.name()) >= 1, "{protocol}, {preset}: {}", step.shape.name());
                }
            }
        }
        assert!(["lwe_fold", "pack_columns", "rlwe_fold", "expand"].iter().all(|name| sizes(name) >= 2));
    }
}
