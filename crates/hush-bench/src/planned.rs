//! `hush-bench plan`: the planner's times of answers, against the measured ones.

use std::{error::Error, sync::Arc};

use hush_build::planner::Machine;
use hush_cpu::Cpu;
use hush_engine::{BackendChoice, Backends, Silent};
use hush_protocol::Protocol;

use super::{
    Args,
    report::{Column, Report, fixed, percent, whole},
    row::Row,
    served::Served,
    subject::Subject,
    timing::quantile,
};

/// The divisors of the requested size: there is a table of each quotient.
const SHARES: [usize; 2] = [16, 4];
/// The batches that are measured, up to the largest of a server.
const BATCHES: [usize; 3] = [1, 4, 16];
/// The bytes of a record, and of a short one for protocols for which that is too long.
const RECORD_BYTES: [usize; 2] = [1024, 32];
/// The longest answer that is measured, in seconds.
const PATIENCE: f64 = 4.0;

/// The columns of a row.
pub(super) const COLUMNS: &[Column] = &[
    ("proto", 12, |row| row.protocol.clone()),
    ("thr", 3, |row| whole(row.threads)),
    ("B", 3, |row| whole(row.batch)),
    ("MiB", 7, |row| fixed(row.bytes.map(|bytes| bytes as f64 / f64::from(1 << 20)), 0)),
    ("ms", 9, |row| fixed(row.seconds.map(|seconds| 1e3 * seconds), 2)),
    ("planned", 9, |row| fixed(row.planned_seconds.map(|seconds| 1e3 * seconds), 2)),
    ("error", 6, |row| percent(row.planned_error())),
];

pub(super) fn run(args: &Args, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let machines = args
        .thread_counts()
        .into_iter()
        .map(|threads| -> Result<_, Box<dyn Error>> {
            let cpu = Arc::new(Cpu::new(threads)?);
            let machine = Machine::measure(&cpu, &Silent)?;
            Ok((cpu, machine))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let backends = super::backends(BackendChoice::Cpu, super::threads(None))?;
    let mut errors = Vec::new();
    for &protocol in Protocol::ALL {
        for size in SHARES.map(|share| args.size / share) {
            let scratch = tempfile::tempdir()?;
            let row = Row::named("answer").of(protocol);
            let dir = scratch.path().join("table");
            let mut built = None;
            let mut refused = String::new();
            for subject in RECORD_BYTES.map(|length| Subject::by_index(protocol, size, length)) {
                match subject.build(&dir, &backends) {
                    Ok((header, _)) => {
                        built = Some((header, subject));
                        break;
                    }
                    Err(error) => refused = error.to_string(),
                }
            }
            let Some((header, subject)) = built else {
                report.skip(&row, &refused);
                continue;
            };
            let served = Served::new(subject, dir, &header)?;
            let most = served.most();
            for (cpu, machine) in &machines {
                let (engine, _) = served.open(&Backends::cpu_only(cpu.clone()))?;
                for batch in BATCHES.into_iter().filter(|&batch| batch <= most) {
                    let planned = machine.answer_seconds(&served.params, batch);
                    let row = row.clone().batch(batch);
                    if planned > PATIENCE {
                        report.skip(&row, format!("planned: {planned:.0} s"));
                        continue;
                    }
                    let seconds = served.answer_seconds(&*engine, batch)?;
                    let row =
                        Row { planned_seconds: Some(planned), ..row.pass(cpu.threads(), size, seconds) };
                    errors.extend(row.planned_error());
                    report.push(&row);
                }
            }
        }
    }
    report.note(&format!(
        "{} pairs: median error {:.0}%, worst {:.0}%",
        errors.len(),
        100.0 * quantile(errors.clone(), 0.5),
        100.0 * quantile(errors.clone(), 1.0)
    ));
    Ok(())
}
