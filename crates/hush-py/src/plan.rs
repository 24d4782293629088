//! The tables that records could have.

use std::{path::PathBuf, sync::Arc};

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use hush_engine::{Cancel, planner::Linkable};
use hushdb::embed::{self, Planned};
use pyo3::prelude::*;

use crate::{
    arrow::ArrowStream,
    build::{Told, input, parsed},
    error::Kind,
    interrupt::interruptible,
};

/// What was planned.
#[pyclass(frozen)]
pub(crate) struct Plan(Planned);

/// Plans for records, or for what the options describe. `options` are those of `hushdb plan` in JSON.
#[pyfunction]
#[pyo3(signature = (data, options, on_progress=None))]
pub(crate) fn plan(
    py: Python<'_>,
    data: Option<Bound<'_, PyAny>>,
    options: &str,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Plan> {
    let input = data.as_ref().map(input).transpose()?;
    let options = parsed(py, options)?;
    let cancel = Cancel::new();
    let told = Told { on_progress, cancel: cancel.clone() };
    let plan = move || embed::plan(&options, input, &told).map_err(|error| error.to_string());
    let planned = interruptible(py, plan, || cancel.cancel())?;
    planned.map(Plan).map_err(|error| Kind::Option.raised(py, error))
}

#[pymethods]
impl Plan {
    /// The tables, the best first; `all` are also those that others are better than in everything.
    fn stream(&self, py: Python<'_>, all: bool) -> PyResult<ArrowStream> {
        let offers = self.0.shown(all);
        let texts = |of: &dyn Fn(&_) -> String| {
            Arc::new(offers.iter().map(|o| Some(of(o))).collect::<StringArray>()) as ArrayRef
        };
        let counts = |of: &dyn Fn(&_) -> u64| {
            Arc::new(offers.iter().map(|o| Some(of(o) as i64)).collect::<Int64Array>()) as ArrayRef
        };
        let numbers = |of: &dyn Fn(&_) -> f64| {
            Arc::new(offers.iter().map(|o| Some(of(o))).collect::<Float64Array>()) as ArrayRef
        };
        let flags = |of: &dyn Fn(&_) -> bool| {
            Arc::new(offers.iter().map(|o| Some(of(o))).collect::<BooleanArray>()) as ArrayRef
        };
        let chosen = self.0.chosen();
        let batch = RecordBatch::try_from_iter([
            ("chosen", flags(&|offer| Some(offer) == chosen)),
            ("protocol", texts(&|offer| offer.protocol.name().to_owned())),
            ("parameter_set", texts(&|offer| offer.preset.to_owned())),
            ("columns", counts(&|offer| offer.geometry.columns as u64)),
            ("blocks", counts(&|offer| offer.geometry.blocks as u64)),
            ("tiers", counts(&|offer| offer.tiers.len() as u64)),
            ("bytes_up", counts(&|offer| offer.bytes_up)),
            ("bytes_down", counts(&|offer| offer.bytes_down)),
            ("setup_bytes_up", counts(&|offer| offer.setup_bytes_up)),
            ("setup_bytes_down", counts(&|offer| offer.setup_bytes_down)),
            ("server_bytes", counts(&|offer| offer.server_bytes)),
            ("seconds", numbers(&|offer| offer.seconds)),
            ("queries_per_second", numbers(&|offer| offer.queries_per_second)),
            ("security_bits", numbers(&|offer| offer.security_bits)),
            ("failure_log2", numbers(&|offer| offer.failure_log2)),
            ("linkable", flags(&|offer| offer.linkable == Linkable::Lookups)),
            ("options", texts(&|offer| offer.options())),
        ]);
        batch.map(ArrowStream::of).map_err(|error| Kind::Hush.raised(py, error))
    }

    /// As `hushdb plan` prints them.
    fn text(&self, all: bool) -> String {
        self.0.text(all)
    }

    /// Draws them to a file: `.svg` or `.png`.
    fn draw(&self, py: Python<'_>, path: PathBuf, all: bool) -> PyResult<()> {
        let drawn = py.detach(|| self.0.draw(&path, all).map_err(|error| error.to_string()));
        drawn.map_err(|error| Kind::Option.raised(py, error))
    }
}
