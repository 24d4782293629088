//! One command a file.

#[cfg(feature = "ingest")]
pub(crate) mod admin;
#[cfg(feature = "ingest")]
pub(crate) mod apply;
mod bar;
#[cfg(feature = "ingest")]
pub(crate) mod build;
#[cfg(feature = "ingest")]
pub(crate) mod compact;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod environment;
pub(crate) mod gateway_key;
pub(crate) mod get;
mod gpus;
pub(crate) mod inspect;
#[cfg(feature = "ingest")]
mod interrupt;
mod key_file;
#[cfg(feature = "ingest")]
pub(crate) mod options;
#[cfg(feature = "ingest")]
pub(crate) mod plan;
pub(crate) mod presets;
#[cfg(feature = "ingest")]
pub(crate) mod push;
pub(crate) mod relay;
#[cfg(feature = "ingest")]
mod rows;
pub(crate) mod serve;
#[cfg(feature = "ingest")]
pub(crate) mod signing_key;
pub(crate) mod token;
mod trust;
#[cfg(feature = "ingest")]
mod wishes;

use std::{error::Error, num::NonZeroUsize, sync::Arc, thread};

use hush_cpu::Cpu;
use hush_engine::{BackendChoice, BackendError, Backends};

/// Threads to scan with: as asked, or one for every core.
pub(crate) fn threads(asked: Option<NonZeroUsize>) -> usize {
    asked.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
}

/// The backends to choose from, with so many threads of the CPU.
pub(crate) fn backends(choice: BackendChoice, threads: usize) -> Result<Backends, Box<dyn Error>> {
    Ok(Backends::choose(choice, Arc::new(Cpu::new(threads)?))?)
}

/// Says why a GPU or its driver is of no use. Where there is none, or none is asked for, there is nothing to say.
pub(crate) fn tell_unused_gpu(backends: &Backends) {
    if let Some(reason @ BackendError::Device(_)) = backends.unused_because() {
        say!("no GPU is used: {reason}");
    }
}
