//! The command `hushdb doctor`: a report on this machine, and on what of it HushDB uses.

use std::{error::Error, fs, thread};

use clap::Args;
use hush_cpu::Level;
use serde::Serialize;

use super::gpus::{Gpus, gpus};
use crate::{process::open_files_limits, report};

/// The number of open files with which a server of some tables has room for 1024 connections and for tasks.
const ENOUGH_FILES: u64 = 2048;

/// Print what this machine has: CPU, memory, GPUs, and why a GPU is not used.
#[derive(Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct DoctorReport {
    version: &'static str,
    cpu: CpuReport,
    memory: MemoryReport,
    open_files: OpenFiles,
    gpu: Gpus,
}

#[derive(Serialize)]
struct CpuReport {
    cores: usize,
    /// The best level of kernels that the machine supports.
    level: String,
    /// The level in use, or why there is none. `HUSH_CPU` can choose another level.
    used: Result<String, String>,
}

#[derive(Serialize)]
struct MemoryReport {
    total_bytes: Option<u64>,
    available_bytes: Option<u64>,
    /// The kernel's setting for transparent huge pages: always, madvise or never.
    huge_pages: Option<String>,
}

/// The limits on the files, connections included, that a process may have open. `None`, null in JSON, is unlimited.
#[derive(Serialize)]
struct OpenFiles {
    soft: Option<u64>,
    /// The limit to which `serve` raises the soft one.
    hard: Option<u64>,
}

pub(crate) fn run(args: &DoctorArgs) -> Result<(), Box<dyn Error>> {
    let report = DoctorReport {
        version: env!("CARGO_PKG_VERSION"),
        cpu: cpu(),
        memory: memory(),
        open_files: open_files(),
        gpu: gpus(),
    };
    let text = if args.json { serde_json::to_string_pretty(&report)? + "\n" } else { lines(&report) };
    Ok(report::print(&text)?)
}

fn cpu() -> CpuReport {
    CpuReport {
        cores: thread::available_parallelism().map_or(1, usize::from),
        level: Level::detect().to_string(),
        used: Level::from_env().map(|level| level.to_string()).map_err(|error| error.to_string()),
    }
}

/// Returns the memory as Linux reports it. Facts that Linux does not report are left out.
fn memory() -> MemoryReport {
    let memory = hush_engine::memory();
    let setting = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok();
    // The file lists all choices, with the current one in brackets.
    MemoryReport {
        total_bytes: memory.map(|memory| memory.total),
        available_bytes: memory.map(|memory| memory.available),
        huge_pages: setting
            .and_then(|text: String| Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())),
    }
}

fn open_files() -> OpenFiles {
    let [soft, hard] = open_files_limits();
    OpenFiles { soft, hard }
}

/// Formats the report, a line for each fact.
fn lines(report: &DoctorReport) -> String {
    let mut text = String::new();
    let mut line = |name: &str, fact: String| text += &format!("{name:<13} {fact}\n");
    let unknown = || "unknown".to_owned();
    let size = |bytes: Option<u64>| bytes.map_or_else(unknown, report::bytes);
    let DoctorReport { version, cpu, memory, open_files, gpu } = report;
    line("hushdb", version.to_string());
    line("cores", cpu.cores.to_string());
    let kernels = match &cpu.used {
        Ok(used) if *used == cpu.level => used.clone(),
        Ok(used) => format!("{used}, as HUSH_CPU says; the machine has {}", cpu.level),
        Err(reason) => format!("none: {reason}"),
    };
    line("CPU kernels", kernels);
    line("memory", format!("{} of {} available", size(memory.available_bytes), size(memory.total_bytes)));
    let advice = if memory.huge_pages.as_deref() == Some("never") {
        ": scans are slower without them (set /sys/kernel/mm/transparent_hugepage/enabled to madvise)"
    } else {
        ""
    };
    line("huge pages", memory.huge_pages.clone().unwrap_or_else(unknown) + advice);
    let limit = |limit: Option<u64>| limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
    let advice = match open_files.hard {
        Some(hard) if hard < ENOUGH_FILES => {
            ": a server has fewer connections (ulimit -Hn, LimitNOFILE= of systemd raise it)"
        }
        _ => "",
    };
    let [soft, hard] = [limit(open_files.soft), limit(open_files.hard)];
    line("open files", format!("{soft}, which serve raises to {hard}{advice}"));
    if let Some(driver) = &gpu.driver {
        line("GPU driver", format!("CUDA {driver}"));
    }
    for (ordinal, device) in gpu.devices.iter().enumerate() {
        line(&format!("GPU {ordinal}"), device.to_string());
    }
    let auto = match &gpu.unused_because {
        Some(reason) => format!("cpu: {reason}"),
        None => {
            let several = gpu.devices.iter().filter(|device| device.free_bytes.is_ok()).count() > 1;
            if several {
                let spread = "a copy of each table that leaves room on every GPU, else a share if that shortens a batch, else one GPU";
                line("spread auto", spread.into());
            }
            let parts = if several { ", or in parts into that of several" } else { "" };
            format!("cuda, for tables that fit into the memory of a GPU{parts}")
        }
    };
    line("backend auto", auto);
    text
}
