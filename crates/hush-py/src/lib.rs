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
mod serve;

use pyo3::prelude::*;

#[pymodule]
#[pyo3(name = "_native")]
mod native {
    #[pymodule_export]
    use super::{
        arrow::ArrowStream,
        build::{build, work},
        client::{Client, RemoteTable},
        local::LocalTable,
        part::{Part, Source},
        plan::{Plan, plan},
        serve::{Server, table_name},
    };

    /// The version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
