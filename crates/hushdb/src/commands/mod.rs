//! The commands, and what they share. The folder has more than fifteen files, since each command is a file.

pub(crate) mod admin;
pub(crate) mod apply;
mod bar;
pub(crate) mod build;
pub(crate) mod compact;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod environment;
pub(crate) mod gateway_key;
pub(crate) mod get;
mod gpus;
pub(crate) mod inspect;
mod interrupt;
mod key_file;
pub(crate) mod options;
pub(crate) mod plan;
pub(crate) mod presets;
pub(crate) mod proxy;
pub(crate) mod push;
pub(crate) mod relay;
pub(crate) mod rollback;
mod rows;
pub(crate) mod serve;
pub(crate) mod signing_key;
pub(crate) mod token;
mod trust;
pub(crate) mod version;
mod wishes;

use std::{error::Error, num::NonZeroUsize, sync::Arc, thread};

use hush_cpu::Cpu;
use hush_engine::{BackendChoice, BackendError, Backends};

/// Returns the number of threads to scan with: the given number, or one for every core.
pub(crate) fn threads(asked: Option<NonZeroUsize>) -> usize {
    asked.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
}

/// Returns the backends to choose from, with this number of CPU threads.
pub(crate) fn backends(choice: BackendChoice, threads: usize) -> Result<Backends, Box<dyn Error>> {
    Ok(Backends::choose(choice, Arc::new(Cpu::new(threads)?))?)
}

/// Reports why a GPU or its driver cannot be used. Without a GPU, or if none is requested, nothing is reported.
pub(crate) fn tell_unused_gpu(backends: &Backends) {
    if let Some(reason @ BackendError::Device(_)) = backends.unused_because() {
        say!("no GPU is used: {reason}");
    }
}
