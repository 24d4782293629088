//! A row of a benchmark: a measurement, or the reason why it is missing.

use serde::Serialize;

/// A measurement: its name, its subject, its figures. Rates are decimal GB/s.
#[derive(Clone, Default, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) protocol: Option<String>,
    /// The bytes of the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) table_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) threads: Option<usize>,
    /// The number of queries at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) batch: Option<usize>,
    /// The bytes that are read or written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seconds: Option<f64>,
    /// `bytes / seconds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gbps: Option<f64>,
    /// The best read bandwidth of the same buffer in the same run, in GB/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stream_gbps: Option<f64>,
    /// The seconds that the work takes at the rates of the GPU, which were measured in this run: those of its longest part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) floor_seconds: Option<f64>,
    /// The name of the longest part: memory, tensor, cores or copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bound: Option<&'static str>,
    /// The time of the bound over `seconds`: of the floor, or of reading `bytes` at `stream_gbps`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) share: Option<f64>,
    /// `gbps * batch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) effective_gbps: Option<f64>,
    /// The byte operations (2 a multiply-add, 4 bytes a query word) in 10^12 a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tops: Option<f64>,
    /// The share of the level's arithmetic peak, measured in the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peak_share: Option<f64>,
    /// The number of forward transforms that take one thread as long, measured in the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transforms: Option<f64>,
    /// The time of a query in a batch over the time of a query alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) query_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) queries_per_second: Option<f64>,
    /// The seconds over the time in which the table alone is read once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) streams: Option<f64>,
    /// The seconds over the sum of the answer's steps, each measured by itself for the same batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) steps_ratio: Option<f64>,
    #[serde(flatten)]
    pub(crate) transform: Option<Transform>,
    #[serde(flatten)]
    pub(crate) rate: Option<Rate>,
    /// The numbers of queries from which on another kernel is faster.
    #[cfg(any(feature = "cuda", feature = "emulator"))]
    #[serde(flatten)]
    pub(crate) thresholds: Option<hush_cuda::Thresholds>,
    /// The seconds that the planner estimates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) planned_seconds: Option<f64>,
    /// The facts of the table, in the row that follows its build.
    #[serde(flatten)]
    pub(crate) facts: Option<SubjectFacts>,
    /// The machine and the command, in the first row.
    #[serde(flatten)]
    pub(crate) run: Option<Run>,
    /// The reason why there is no figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) skipped: Option<String>,
}

/// The facts of a table: its shape, and the bytes that are stored and sent.
#[derive(Clone, Serialize)]
pub(crate) struct SubjectFacts {
    pub(crate) preset: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) filter: Option<&'static str>,
    pub(crate) records: usize,
    pub(crate) value_bytes: usize,
    /// The number of columns (D0).
    pub(crate) columns: usize,
    /// The number of slots: the columns of all blocks.
    pub(crate) slots: usize,
    /// The number of slots with the same row and entry, such as those of one plaintext.
    pub(crate) lanes: usize,
    /// The bytes that answers scan.
    pub(crate) encoded_bytes: u64,
    /// The bytes of all files.
    pub(crate) file_bytes: u64,
    pub(crate) query_bytes: usize,
    pub(crate) answer_bytes: usize,
    pub(crate) key_bytes: usize,
    pub(crate) hint_bytes: u64,
}

/// The machine and the command of a run.
#[derive(Clone, Serialize)]
pub(crate) struct Run {
    pub(crate) command: String,
    /// The name of the CPU.
    pub(crate) machine: String,
    pub(crate) cores: usize,
    /// The level of instructions.
    pub(crate) level: &'static str,
    /// The time, in seconds since 1970.
    pub(crate) unix_seconds: u64,
    pub(crate) version: &'static str,
}

/// The transform of one polynomial.
#[derive(Clone, Serialize)]
pub(crate) struct Transform {
    pub(crate) level: &'static str,
    pub(crate) degree: usize,
    pub(crate) modulus: u32,
    pub(crate) nanoseconds: f64,
    pub(crate) ns_per_butterfly: f64,
    /// The time of the portable code over this time.
    pub(crate) speedup: f64,
    /// 10^9 512-bit multiply-adds of 52 bits a second, measured in the same run.
    pub(crate) ifma_gops: Option<f64>,
}

/// A rate that bounds measurements.
#[derive(Clone, Serialize)]
pub(crate) struct Rate {
    /// The number of `unit`s a second.
    pub(crate) rate: f64,
    pub(crate) unit: &'static str,
}

impl Row {
    /// Creates a row with a name and no figures.
    pub(crate) fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Returns the relative error of the planner: the larger of both times over the smaller, less one. Returns `None` if either
    /// is missing.
    pub(crate) fn planned_error(&self) -> Option<f64> {
        let planned = self.planned_seconds?;
        let seconds = self.seconds?;
        Some(planned.max(seconds) / planned.min(seconds) - 1.0)
    }

    /// Returns the row under another name.
    pub(crate) fn renamed(&self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self.clone() }
    }

    /// Sets the protocol, or the parameter set.
    pub(crate) fn of(self, protocol: impl ToString) -> Self {
        Self { protocol: Some(protocol.to_string()), ..self }
    }

    /// Sets the bytes of the table.
    #[cfg(any(feature = "cuda", feature = "emulator"))]
    pub(crate) fn table(self, bytes: usize) -> Self {
        Self { table_bytes: Some(bytes as u64), ..self }
    }

    /// Sets the number of queries at once.
    pub(crate) fn batch(self, batch: usize) -> Self {
        Self { batch: Some(batch), ..self }
    }

    /// Adds the time of a pass of `threads` threads over `bytes`, and its bandwidth.
    pub(crate) fn pass(self, threads: usize, bytes: usize, seconds: f64) -> Self {
        let gbps = bytes as f64 / seconds / 1e9;
        let batch = self.batch.unwrap_or(1);
        Self {
            threads: Some(threads),
            batch: Some(batch),
            bytes: Some(bytes as u64),
            seconds: Some(seconds),
            gbps: Some(gbps),
            effective_gbps: Some(gbps * batch as f64),
            ..self
        }
    }

    /// Adds the share of `gbps`, the bandwidth of reading.
    pub(crate) fn stream(self, gbps: f64) -> Self {
        Self { stream_gbps: Some(gbps), share: self.gbps.map(|own| own / gbps), ..self }
    }

    /// Adds the arithmetic rate of a scan, and its share of `peak_tops`.
    pub(crate) fn arithmetic(self, peak_tops: f64) -> Self {
        let tops = self.effective_gbps.map(|gbps| gbps * 8.0 / 1e3);
        Self { tops, peak_share: tops.map(|tops| tops / peak_tops), ..self }
    }

    /// Adds the time as a number of forward transforms of `seconds` each.
    pub(crate) fn transforms(self, seconds: f64) -> Self {
        Self { transforms: self.seconds.map(|own| own / seconds), ..self }
    }

    /// Adds the time of a query over `alone`, the seconds of a query alone.
    pub(crate) fn query_share(self, alone: f64) -> Self {
        let each = self.seconds.zip(self.batch).map(|(seconds, batch)| seconds / batch as f64);
        Self { query_share: each.map(|each| each / alone), ..self }
    }

    /// Adds the number of queries that are answered a second.
    pub(crate) fn queries(self) -> Self {
        let rate = self.seconds.zip(self.batch).map(|(seconds, batch)| batch as f64 / seconds);
        Self { queries_per_second: rate, ..self }
    }

    /// Makes this the row of whole answers: a pass over a table that is read at `gbps`, whose steps take `steps` seconds if they
    /// were measured.
    pub(crate) fn answer(self, gbps: f64, steps: Option<f64>) -> Self {
        let row = self.stream(gbps).queries();
        let streams = row.gbps.map(|own| gbps / own);
        let ratio = row.seconds.zip(steps).map(|(own, steps)| own / steps);
        Self { streams, steps_ratio: ratio, ..row }
    }
}
