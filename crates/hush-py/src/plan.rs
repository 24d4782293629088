//! The tables that records could have.

use std::{path::PathBuf, sync::Arc};

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use hush_build::planner::{Linkable, SendWindow};
use hushdb::embed::{self, Planned};
use pyo3::prelude::*;

use crate::{
    arrow::ArrowStream,
    build::{input, parsed},
    error::{Code, raised},
    interrupt::{Cancel, interruptible},
    progress::Told,
};

type Row = (bool, &'static str, &'static str, [u64; 5], f64, f64, f64);

/// The result of planning.
#[pyclass(frozen)]
pub(crate) struct Plan(Planned);

/// Plans for records, or for what the options describe. `options` are those of `hushdb plan` in JSON.
#[pyfunction]
#[pyo3(signature = (data, options, on_progress=None, cancel=None))]
pub(crate) fn plan(
    py: Python<'_>,
    data: Option<Bound<'_, PyAny>>,
    options: &str,
    on_progress: Option<Py<PyAny>>,
    cancel: Option<&Bound<'_, Cancel>>,
) -> PyResult<Plan> {
    let input = data.as_ref().map(input).transpose()?;
    let options = parsed(py, options)?;
    let cancel = Cancel::of(cancel);
    let told = Told::new(on_progress, &cancel);
    let plan = move || {
        let planned = embed::plan(&options, input, &told).map_err(|error| error.to_string());
        told.finish();
        planned
    };
    let planned = interruptible(py, &cancel, plan)?;
    planned.map(Plan).map_err(|error| raised(py, Code::Options, error))
}

#[pymethods]
impl Plan {
    /// Returns the tables, the best first; `all` are also those that others are better than in everything.
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
        let network = self.0.network();
        let batch = RecordBatch::try_from_iter([
            ("chosen", flags(&|offer| Some(offer) == chosen)),
            ("protocol", texts(&|offer| offer.protocol.name().to_owned())),
            ("preset", texts(&|offer| offer.preset.to_owned())),
            ("columns", counts(&|offer| offer.geometry.columns as u64)),
            ("blocks", counts(&|offer| offer.geometry.blocks as u64)),
            ("tiers", counts(&|offer| offer.tiers.len() as u64)),
            ("bytes_up", counts(&|offer| offer.bytes_up)),
            ("bytes_down", counts(&|offer| offer.bytes_down)),
            ("setup_bytes_up", counts(&|offer| offer.setup_bytes_up)),
            ("setup_bytes_down", counts(&|offer| offer.setup_bytes_down)),
            ("server_bytes", counts(&|offer| offer.server_bytes)),
            ("seconds", numbers(&|offer| offer.seconds)),
            ("flights", counts(&|offer| network.look_up_flights(offer).into())),
            ("first_look_up_seconds", numbers(&|offer| network.first_look_up_seconds(offer))),
            ("look_up_seconds", numbers(&|offer| network.look_up_seconds(offer, SendWindow::Cold))),
            ("warm_look_up_seconds", numbers(&|offer| network.look_up_seconds(offer, SendWindow::Warm))),
            ("queries_per_second", numbers(&|offer| offer.queries_per_second)),
            ("security_bits", numbers(&|offer| offer.security_bits)),
            ("failure_log2", numbers(&|offer| offer.failure_log2)),
            ("linkable", flags(&|offer| offer.linkable == Linkable::Lookups)),
            ("options", texts(&embed::command_line)),
        ]);
        batch.map(ArrowStream::of).map_err(|error| raised(py, Code::ClientFailed, error))
    }

    /// Returns the tables for people: whether it is chosen, protocol, parameter set, bytes (up, down, once up, once down, of a
    /// server), seconds, queries a second, bits of security.
    fn rows(&self) -> Vec<Row> {
        let chosen = self.0.chosen();
        let mut rows = Vec::new();
        for offer in self.0.shown(false).iter() {
            let bytes = [
                offer.bytes_up,
                offer.bytes_down,
                offer.setup_bytes_up,
                offer.setup_bytes_down,
                offer.server_bytes,
            ];
            let protocol = offer.protocol.name();
            let preset = offer.preset;
            let rates = (offer.seconds, offer.queries_per_second, offer.security_bits);
            rows.push((Some(offer) == chosen, protocol, preset, bytes, rates.0, rates.1, rates.2));
        }
        rows
    }

    /// Returns the offers as `hushdb plan` prints them.
    fn text(&self, all: bool) -> String {
        self.0.text(all)
    }

    /// Draws them to a file: `.svg` or `.png`.
    fn draw(&self, py: Python<'_>, path: PathBuf, all: bool) -> PyResult<()> {
        let drawn = py.detach(|| self.0.draw(&path, all).map_err(|error| error.to_string()));
        drawn.map_err(|error| raised(py, Code::Options, error))
    }
}
