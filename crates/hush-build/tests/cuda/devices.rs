//! Emulated devices, tables for them, and what is told.

use std::sync::Arc;

use hush_cpu::Cpu;
use hush_cuda::device::{Device, Emulation};
use hush_engine::{BackendChoice, Backends};
use hush_protocol::Protocol;

use crate::tables::{self, Folder, Wanted};

/// A protocol, and the bytes of its records: several lanes, planes and entries where there are such.
pub(crate) const TABLES: [(Protocol, usize); 11] = [
    (Protocol::Frodo, 20),
    (Protocol::Simple, 300),
    (Protocol::Double, 3),
    (Protocol::ColpackS, 300),
    (Protocol::Colpack, 300),
    (Protocol::ExppackS, 100),
    (Protocol::ExppackD, 3),
    (Protocol::DoublePack, 100),
    (Protocol::Hybrid, 300),
    (Protocol::Onion, 100),
    (Protocol::Tfhe, 20),
];
pub(crate) const MIB: usize = 1 << 20;

pub(crate) fn cpu() -> Arc<Cpu> {
    Arc::new(Cpu::new(2).unwrap())
}

pub(crate) fn on_cpu() -> Backends {
    tables::on_cpu(2)
}

/// Returns an emulated GPU with so much memory.
pub(crate) fn on_gpu(choice: BackendChoice, memory: usize) -> Backends {
    Backends::with_devices(choice, cpu(), [device(false, memory)])
}

/// Returns an emulated device with so much memory, which is rounded up and kept for later or not.
pub(crate) fn device(pooled: bool, memory: usize) -> Device {
    Device::emulated_with_memory(Emulation { pooled, ..Emulation::default() }, memory)
}

/// Returns a table of 75 records of so many bytes.
pub(crate) fn wanted((protocol, bytes): (Protocol, usize)) -> Wanted {
    Wanted::by_index(protocol, 75, bytes, 10)
}

/// Returns a folder with that table.
pub(crate) fn built(table: (Protocol, usize)) -> Folder {
    Folder::with_table(&on_cpu(), wanted(table))
}
