//! `hushdb doctor`: what this machine has, and what of it is used.

use std::{error::Error, fs, thread};

use clap::Args;
use hush_cpu::Level;
use serde::Serialize;

use super::gpus::{Gpus, gpus};
use crate::report;

/// Tell what this machine has: CPU, memory, GPUs, and why a GPU is not used.
#[derive(Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    version: &'static str,
    cpu: Cpu,
    memory: Memory,
    gpu: Gpus,
}

#[derive(Serialize)]
struct Cpu {
    cores: usize,
    /// The best level of kernels that the machine has.
    level: String,
    /// The one that is used, or why there is none: `HUSH_CPU` may name another.
    used: Result<String, String>,
}

#[derive(Serialize)]
struct Memory {
    total_bytes: Option<u64>,
    available_bytes: Option<u64>,
    /// The kernel's setting for transparent huge pages: always, madvise or never.
    huge_pages: Option<String>,
}

pub(crate) fn run(args: &DoctorArgs) -> Result<(), Box<dyn Error>> {
    let report = Report { version: env!("CARGO_PKG_VERSION"), cpu: cpu(), memory: memory(), gpu: gpus() };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print(&report);
    }
    Ok(())
}

fn cpu() -> Cpu {
    Cpu {
        cores: thread::available_parallelism().map_or(1, usize::from),
        level: Level::detect().to_string(),
        used: Level::from_env().map(|level| level.to_string()).map_err(|error| error.to_string()),
    }
}

/// What Linux says; nothing where it says nothing.
fn memory() -> Memory {
    let memory = hush_engine::memory();
    let setting = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok();
    // The choice among all is in brackets.
    let chosen = |text: String| Some(text.split_once('[')?.1.split_once(']')?.0.to_owned());
    Memory {
        total_bytes: memory.map(|memory| memory.total),
        available_bytes: memory.map(|memory| memory.available),
        huge_pages: setting.and_then(chosen),
    }
}

fn print(report: &Report) {
    let unknown = || "unknown".to_owned();
    let size = |bytes: Option<u64>| bytes.map_or_else(unknown, report::bytes);
    let Report { version, cpu, memory, gpu } = report;
    println!("hushdb        {version}");
    println!("cores         {}", cpu.cores);
    match &cpu.used {
        Ok(used) if *used == cpu.level => println!("CPU kernels   {used}"),
        Ok(used) => println!("CPU kernels   {used}, as HUSH_CPU says; the machine has {}", cpu.level),
        Err(reason) => println!("CPU kernels   none: {reason}"),
    }
    println!("memory        {} of {} available", size(memory.available_bytes), size(memory.total_bytes));
    let advice = if memory.huge_pages.as_deref() == Some("never") {
        ": scans are slower without them (set /sys/kernel/mm/transparent_hugepage/enabled to madvise)"
    } else {
        ""
    };
    println!("huge pages    {}{advice}", memory.huge_pages.clone().unwrap_or_else(unknown));
    if let Some(driver) = &gpu.driver {
        println!("GPU driver    CUDA {driver}");
    }
    for (ordinal, device) in gpu.devices.iter().enumerate() {
        println!("GPU {ordinal}         {device}");
    }
    match &gpu.unused_because {
        Some(reason) => println!("backend auto  cpu: {reason}"),
        None => {
            let several = gpu.devices.iter().filter(|device| device.free_bytes.is_ok()).count() > 1;
            let parts = if several { ", or in parts into that of several" } else { "" };
            println!("backend auto  cuda, for tables that fit into the memory of a GPU{parts}");
        }
    }
}
