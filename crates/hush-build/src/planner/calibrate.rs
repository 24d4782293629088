//! The calibration of this machine: each kind of step of every protocol, at some sizes and batches.

use std::{collections::BTreeMap, error::Error, time::Instant};

use hush_cpu::Cpu;
use hush_engine::Progress;
use hush_ops::{
    path::{Footprint, Step},
    steps::{StepShape, sample::Operands},
};
use hush_protocol::{
    Protocol,
    any_page::{Slots, TableParams},
    facts::DbForm,
};

use super::{Machine, Times, Timing, machine::nominal_seconds, offers::secure_presets, operands::Random};

/// Bytes of all files of the tables whose steps are measured: two that fit into caches, of which many servers have 32 MiB, and one
/// that does not.
const TABLES: [u64; 3] = [8 << 20, 24 << 20, 96 << 20];
/// Shapes tell little that are not so many times as large.
const APART: f64 = 2.5;
/// Bytes of their slots: the first that the protocol takes.
const SLOTS: [[usize; 3]; 3] = [[256, 64, 1], [1024, 256, 1], [4096, 256, 1]];
/// Batches that are measured of a step that scans, and of one that does not.
const OF_SCANS: &[usize] = &[1, 2, 4, 16, 64];
const OF_OTHERS: &[usize] = &[1, 8];
/// The rounds in which short steps are measured: others who slow a machine for a while do not meet a step twice.
const ROUNDS: usize = 2;
/// Seconds of what is short.
const SHORT: f64 = 0.02;
/// Runs of a round of which the fastest counts, unless they take too long.
const RUNS: usize = 3;
/// Seconds of all runs of a step, about: of one that scans, and of another.
const SPAN_OF_SCANS: f64 = 0.04;
const SPAN_OF_OTHERS: f64 = 0.015;
/// The limits of a measurement: steps that would take more seconds, or more bytes of memory, are not measured.
const LONGEST: f64 = 0.15;
/// The limit in nominal seconds, by which tables are chosen.
const NOMINAL_LONGEST: f64 = 0.3;
const MOST_BYTES: usize = 256 << 20;

impl Machine {
    /// Measures this machine with the threads of `cpu`: some 16 seconds.
    ///
    /// # Errors
    /// If a step fails, or is cancelled.
    pub fn measure(cpu: &Cpu, progress: &dyn Progress) -> Result<Self, Box<dyn Error>> {
        let steps = steps();
        progress.start("measure", (ROUNDS * steps.len()) as u64, "steps");
        let random = Random::default();
        let mut shortest = BTreeMap::new();
        for _ in 0..ROUNDS {
            for (place, step) in steps.iter().enumerate() {
                let (batches, span) = effort(&step.shape);
                let mut a_query = 0.0;
                for &batch in batches.iter().filter(|&&batch| is_told_by(step, batch)) {
                    let (expected, most) = match shortest.get(&(place, batch)) {
                        Some(&known) => (known, SHORT),
                        // It takes as long for each query as the batch before, about.
                        None => (batch as f64 * a_query, LONGEST),
                    };
                    if expected > most {
                        break;
                    }
                    let seconds = fastest(random.step(cpu, &step.shape, batch)?, span)?;
                    let least = shortest.entry((place, batch)).or_insert(f64::INFINITY);
                    *least = seconds.min(*least);
                    a_query = *least / batch as f64;
                }
                progress.advance(1);
                progress.check()?;
            }
        }
        let timing = |((place, batch), seconds): ((usize, usize), f64)| {
            let shape = &steps[place].shape;
            Timing {
                step: shape.name().into(),
                set: shape.ring().map_or("", |ring| ring.name()).into(),
                size: nominal_seconds(shape, 1),
                batch,
                ratio: seconds / nominal_seconds(shape, batch),
            }
        };
        let timings = shortest.into_iter().map(timing).collect();
        let name = hush_engine::cpu_model();
        let level = cpu.level().to_string();
        let times = Times::Measured(timings);
        Ok(Self { version: Self::VERSION, name, level, threads: cpu.threads(), times })
    }
}

/// Returns the batches that are measured of a step, as what all queries of a batch share makes a difference; and seconds of all
/// runs.
fn effort(shape: &StepShape) -> (&'static [usize], f64) {
    if shape.scans() { (OF_SCANS, SPAN_OF_SCANS) } else { (OF_OTHERS, SPAN_OF_OTHERS) }
}

/// Returns whether a batch tells more than smaller ones do, and there is room for it.
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

/// Returns the steps that are measured: of each kind and set those of some sizes.
fn steps() -> Vec<Step> {
    let mut found: BTreeMap<(&str, &str), Vec<Step>> = BTreeMap::new();
    for &protocol in Protocol::ALL {
        for preset in secure_presets(protocol) {
            let is_default = SLOTS.iter().flatten().any(|&slot| protocol.page().default_set(slot) == preset);
            for form in [DbForm::Evaluation, DbForm::Symbols] {
                // Of a set that nothing takes if it is not asked for, a small table will do.
                let tables = if is_default { TABLES.len() } else { 1 };
                for (bytes, slots) in TABLES.into_iter().zip(SLOTS).take(tables) {
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

/// Returns the largest of some steps of a kind, and all smaller ones that are far apart.
fn apart(mut steps: Vec<Step>) -> Vec<Step> {
    let size = |step: &Step| nominal_seconds(&step.shape, 1);
    steps.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let mut found: Vec<Step> = Vec::new();
    for step in steps {
        if found.last().is_none_or(|last| size(last) > APART * size(&step)) {
            found.push(step);
        }
    }
    found
}

/// Returns a table by index whose files take at most so many bytes.
fn table(protocol: Protocol, preset: &str, form: DbForm, bytes: u64, slots: &[usize]) -> Option<TableParams> {
    let page = protocol.page();
    slots.iter().find_map(|&slot_bytes| {
        (0..16).find_map(|halved| {
            let count = ((bytes >> halved) as usize / slot_bytes).max(1);
            let slots = Slots { count, slot_bytes, by_key: false };
            let table = page.table(preset, page.shape(preset, slots, None).ok()?).ok()?.in_form(form).ok()?;
            (table.held_bytes() <= bytes
                && table.path().iter().all(|step: &Step| nominal_seconds(&step.shape, 1) < NOMINAL_LONGEST))
            .then_some(table)
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
                // Of sets for comparison, steps may take too long at any size.
                let Some(table) = table(protocol, preset, DbForm::Evaluation, TABLES[2], &SLOTS[2]) else {
                    continue;
                };
                for step in table.path() {
                    assert!(sizes(step.shape.name()) >= 1, "{protocol}, {preset}: {}", step.shape.name());
                }
            }
        }
        assert!(["lwe_fold", "pack_columns", "rlwe_fold", "expand"].iter().all(|name| sizes(name) >= 2));
    }
}
