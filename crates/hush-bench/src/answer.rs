//! `hush-bench answer`: tables as the caller describes them: the build, the work of a client, and whole answers. On request, every
//! step of an answer by itself, the table in parts, and look-ups over loopback HTTP.

use std::{error::Error, sync::Arc};

use hush_cpu::Cpu;
use hush_engine::BackendChoice;

use super::{Args, backends, http, report::Report, served::Served, threads};

pub(super) fn run(args: &Args, report: &mut Report) -> Result<(), Box<dyn Error>> {
    for subject in args.subjects()? {
        let scratch = tempfile::tempdir()?;
        let dir = scratch.path().join("table");
        let all = backends(args.backend, threads(None))?;
        let header = subject.build_and_report(&dir, &all, report)?;
        let served = Served::new(subject, dir, &header)?;
        let most = served.most();
        report.note(&format!("a server answers at most {most} queries at once"));
        let batches: Vec<_> = args.batches().iter().copied().filter(|&batch| batch <= most).collect();
        for threads in args.thread_counts() {
            let backends = backends(args.backend, threads)?.with_memory(args.memory);
            // Steps are measured on the CPU alone: `gpu-steps` has those of a GPU.
            let sums = match args.backend {
                BackendChoice::Cpu if args.steps => {
                    served.steps(&Arc::new(Cpu::new(threads)?), &batches, report)?
                }
                _ => Vec::new(),
            };
            let sum = |batch| sums.iter().find(|(measured, _)| *measured == batch).map(|(_, sum)| *sum);
            let measured: Vec<_> = batches.iter().map(|&batch| (batch, sum(batch))).collect();
            let (engine, seconds) = served.open(&backends)?;
            report.push(&served.row("ready").pass(threads, header.payload_bytes as usize, seconds));
            if threads == args.thread_counts()[0] {
                served.client(&*engine, report)?;
            }
            served.answers(&*engine, threads, &measured, report)?;
        }
        if let Some(weights) = &args.parts {
            served.parts(weights, report)?;
        }
        if args.http {
            if served.params.facts().keys.is_some() {
                return Err(
                    "look-ups over HTTP are measured without evaluation keys: leave --http out".into()
                );
            }
            let (engine, _) = served.open(&all)?;
            for (name, seconds) in http::measure(engine, &served.lookups(64)?.queries)? {
                report.push(&served.row(&name).pass(threads(None), header.payload_bytes as usize, seconds));
            }
        }
    }
    Ok(())
}
