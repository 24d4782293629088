//! One command a file.

mod bar;
pub(crate) mod bench;
pub(crate) mod build;
pub(crate) mod doctor;
pub(crate) mod get;
pub(crate) mod inspect;
mod key_file;
pub(crate) mod serve;

use std::{num::NonZeroUsize, thread};

/// Threads to scan with: as asked, or one for every core.
pub(crate) fn threads(asked: Option<NonZeroUsize>) -> usize {
    asked.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
}
