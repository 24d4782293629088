//! Fetches inputs at URLs to the local disk before they are opened.

use std::path::Path;

use hush_engine::{Bytes, Progress};
use hush_ingest::{Fetch, IngestOptions, Input};

use crate::job_error::JobError;

/// Returns an input that can be opened. A remote input is fetched to a file in `dir`, which is deleted with the last copy of
/// the returned input. The size is printed before the fetch starts.
///
/// # Errors
/// [`JobError::Ingest`] if the input cannot be fetched or the disk is full, and an error if `progress` is cancelled.
pub fn fetched(
    input: &Input,
    ingest: &IngestOptions,
    dir: &Path,
    progress: &dyn Progress,
) -> Result<Input, JobError> {
    if let Input::Several(several) = input {
        let inputs = several.inputs().iter().map(|input| fetched(input, ingest, dir, progress));
        return Ok(Input::of_all(inputs.collect::<Result<_, _>>()?));
    }
    let Some(mut fetch) = Fetch::begin(input, ingest, dir)? else { return Ok(input.clone()) };
    let mut is_told = false;
    let mut last = 0;
    loop {
        progress.check()?;
        let goes_on = fetch.step()?;
        if fetch.has_begun() && !is_told {
            let size = fetch.size().map(|size| Bytes(size as usize).to_string());
            let size = size.unwrap_or_else(|| "an unknown number of bytes".into());
            progress.note(&format!("{}: {size} to fetch", input.path().display()));
            progress.start("fetch", fetch.size().unwrap_or(0), "bytes");
            is_told = true;
        }
        progress.advance(fetch.here().saturating_sub(last));
        last = last.max(fetch.here());
        if !goes_on {
            return Ok(fetch.finish());
        }
    }
}
