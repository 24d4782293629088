//! The calibration of this machine: measures each kind of step of every protocol, at some sizes and batches.

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

/// The maximum resident bytes of the tables whose steps are measured. Two fit into caches, of which many servers have 32 MiB, and
/// one does not.
const TABLES: [u64; 3] = [8 << 20, 24 << 20, 96 << 20];
/// The least ratio of two measured sizes of a step: closer sizes tell little.
const APART: f64 = 2.5;
/// The candidates for the bytes of a table's slots, in order: the first that the protocol takes is used.
const SLOTS: [[usize; 3]; 3] = [[256, 64, 1], [1024, 256, 1], [4096, 256, 1]];
/// The batches that are measured for a step that scans, and for one that does not.
const OF_SCANS: &[usize] = &[1, 2, 4, 16, 64];
const OF_OTHERS: &[usize] = &[1, 8];
/// The rounds in which short steps are measured. Another program that slows the machine for a while does not affect both.
const ROUNDS: usize = 2;
/// The maximum seconds of a short step.
const SHORT: f64 = 0.02;
/// The runs of a step in a round, unless they take too long. The fastest counts.
const RUNS: usize = 3;
/// The approximate seconds of all runs of a step that scans, and of one that does not.
const SPAN_OF_SCANS: f64 = 0.04;
const SPAN_OF_OTHERS: f64 = 0.015;
/// The maximum seconds of a measured run. A batch that is expected to take longer is not measured.
const LONGEST: f64 = 0.15;
/// The maximum nominal seconds of a step in the tables that are chosen, and the maximum bytes of memory of a measured batch.
const NOMINAL_LONGEST: f64 = 0.3;
const MOST_BYTES: usize = 256 << 20;

impl Machine {
    /// Measures this machine with the threads of `cpu`. It takes some 16 seconds.
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
                        // Each query takes about as long as in the previous batch.
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
        let mut timings = Vec::with_capacity(shortest.len());
        for ((place, batch), seconds) in shortest {
            let shape = &steps[place].shape;
            timings.push(Timing {
                step: shape.name().into(),
                set: shape.ring().map_or("", |ring| ring.name()).into(),
                size: nominal_seconds(shape, 1),
                batch,
                ratio: seconds / nominal_seconds(shape, batch),
            });
        }
        let name = hush_engine::cpu_model();
        let level = cpu.level().to_string();
        let times = Times::Measured(timings);
        Ok(Self { version: Self::VERSION, name, level, threads: cpu.threads(), times })
    }
}

/// Returns the batches that are measured for a step, and the seconds of all runs. A step that scans has more batches, because all
/// queries of a batch share the scan.
fn effort(shape: &StepShape) -> (&'static [usize], f64) {
    if shape.scans() { (OF_SCANS, SPAN_OF_SCANS) } else { (OF_OTHERS, SPAN_OF_OTHERS) }
}

/// Returns whether a batch tells more than smaller ones, and fits the memory.
fn is_told_by(step: &Step, batch: usize) -> bool {
    let largest = if step.one_by_one { 1 } else { <Cpu as Footprint>::largest_batch(&step.shape) };
    batch == 1 || (batch <= largest && <Cpu as Footprint>::footprint(&step.shape, batch) <= MOST_BYTES)
}

/// Returns the seconds of the fastest of some runs.
fn fastest<E>(mut run: impl FnMut() -> Result<(), E>, span: f64) -> Result<f64, E> {
    // The first run warms the memory and is not timed.
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

/// Returns the steps that are measured: some sizes of each kind and set.
fn steps() -> Vec<Step> {
    let mut found: BTreeMap<(&str, &str), Vec<Step>> = BTreeMap::new();
    for &protocol in Protocol::ALL {
        for preset in secure_presets(protocol) {
            let is_default = SLOTS.iter().flatten().any(|&slot| protocol.page().default_set(slot) == preset);
            for form in [DbForm::Evaluation, DbForm::Symbols] {
                // A set that is no default of any size is measured with a small table alone.
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

/// Returns the largest of some steps of a kind, and smaller ones that differ by [`APART`] at least.
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

/// Returns a table by index with at most `bytes` resident bytes; `None` if every candidate is invalid or has too long a step.
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
                // A set that exists for comparison may have a step that takes too long at any size.
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
