//! HushDB in Python: what `hushdb._native` has, in terms of Python. What people use is in `python/hushdb`.

mod arrow;
mod build;
mod client;
mod error;
mod interrupt;
mod local;
mod lookup;
mod part;
mod plan;
mod progress;
mod serve;
mod snapshot;
mod typed;
mod watch;

use std::process::ExitCode;

use pyo3::prelude::*;

/// Runs a command line of the program `hushdb`. Returns its exit status.
#[pyfunction]
fn run(py: Python<'_>, line: Vec<std::ffi::OsString>) -> u8 {
    let code = py.detach(|| hushdb::main(line));
    (0..=u8::MAX).find(|&status| ExitCode::from(status) == code).unwrap_or(u8::MAX)
}

#[pymodule]
#[pyo3(name = "_native")]
mod native {
    use hush_protocol::wording;
    use pyo3::prelude::*;

    use super::error;
    #[pymodule_export]
    use super::run;
    #[pymodule_export]
    use super::{
        arrow::ArrowStream,
        build::{build, work},
        client::{Client, RemoteTable},
        interrupt::Cancel,
        local::LocalTable,
        part::{Part, Source},
        plan::{Plan, plan},
        serve::{Server, table_name},
        snapshot::{Snapshot, apply, compact, inspect, push, rollback},
    };

    /// Texts of the libraries are in words of Python from now on.
    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        wording::speak(error::named);
        Ok(())
    }

    /// The version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
