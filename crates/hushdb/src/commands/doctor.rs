//! `hushdb doctor`: what this machine has, and what of it is used.

use std::{error::Error, fs, thread};

use clap::Args;
use hush_cpu::Level;
use serde::Serialize;

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

#[derive(Serialize)]
struct Gpus {
    /// Version of CUDA that the driver has.
    driver: Option<String>,
    devices: Vec<Gpu>,
    /// Why no GPU is used, if so.
    unused_because: Option<String>,
}

#[derive(Serialize)]
struct Gpu {
    name: String,
    capability: String,
    multiprocessors: u32,
    memory_bytes: usize,
    /// Bytes that are free, or why the GPU is not used.
    free_bytes: Result<usize, String>,
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

#[cfg(any(feature = "cuda", feature = "emulator"))]
fn gpus() -> Gpus {
    use hush_cuda::device::{Device, DeviceInfo};
    let used = hush_engine::open_devices();
    let describe = |info: &DeviceInfo, device: Result<&Device, String>| Gpu {
        name: info.name.clone(),
        capability: format!("{}.{}", info.capability.0, info.capability.1),
        multiprocessors: info.multiprocessors,
        memory_bytes: info.memory_bytes,
        free_bytes: device.and_then(|device| device.free_bytes().map_err(|error| error.to_string())),
    };
    let listed = Device::list().unwrap_or_default();
    // The emulator, which no driver lists.
    let others = used.iter().flatten().filter(|device| !listed.contains(device.info()));
    let mut devices: Vec<_> = others.map(|device| describe(device.info(), Ok(device))).collect();
    for (ordinal, info) in listed.iter().enumerate() {
        let device = Device::open(ordinal).map_err(|error| error.to_string());
        devices.push(describe(info, device.as_ref().map_err(String::clone)));
    }
    Gpus {
        driver: Device::driver_version().ok().map(|(major, minor)| format!("{major}.{minor}")),
        devices,
        unused_because: used.err().map(|error| error.to_string()),
    }
}

#[cfg(not(any(feature = "cuda", feature = "emulator")))]
fn gpus() -> Gpus {
    let reason = hush_engine::BackendError::NotBuilt.to_string();
    Gpus { driver: None, devices: Vec::new(), unused_because: Some(reason) }
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
        let memory = match &device.free_bytes {
            Ok(free) => format!(
                "{} of {} free",
                report::bytes(*free as u64),
                report::bytes(device.memory_bytes as u64)
            ),
            Err(reason) => format!("not used: {reason}"),
        };
        println!(
            "GPU {ordinal}         {}, compute capability {}, {} multiprocessors, {memory}",
            device.name, device.capability, device.multiprocessors
        );
    }
    match &gpu.unused_because {
        Some(reason) => println!("backend auto  cpu: {reason}"),
        None => println!("backend auto  cuda, for tables that fit into the memory of a GPU"),
    }
}
