//! Commands as functions, for programs that HushDB is a part of: options are those of the command line, by the same names.

use std::{error::Error, path::Path};

use hush_engine::{JobRequest, Progress};
use hush_store::ingest::Input;
use serde_json::{Map, Value};

pub use crate::commands::plan::Planned;
use crate::commands::{
    build::{self, BuildArgs},
    options::arguments,
    plan::{self, PlanArgs},
};

/// What stands for an input that is given otherwise.
const GIVEN: &str = "-";

/// What `hushdb build` would make of `input` in the folder `out`. With a goal or a budget, this machine may have to be measured.
///
/// # Errors
/// What the command itself would say of its options.
pub fn build(
    options: &Map<String, Value>,
    input: Input,
    out: &Path,
    progress: &dyn Progress,
) -> Result<JobRequest, Box<dyn Error>> {
    let args: BuildArgs = arguments(options, &[("out", out)], &[GIVEN.into()])?;
    Ok(JobRequest { input, ..build::prepared(args, progress)? })
}

/// The tables that `hushdb plan` would list: for the records of `input`, or for those that the options describe.
///
/// # Errors
/// If an input cannot be read, or the options are none.
pub fn plan(
    options: &Map<String, Value>,
    input: Option<Input>,
    progress: &dyn Progress,
) -> Result<Planned, Box<dyn Error>> {
    let places: Vec<_> = input.iter().map(|_| GIVEN.into()).collect();
    let args: PlanArgs = arguments(options, &[], &places)?;
    plan::planned(args, input, progress)
}
