//! A row of a benchmark: what was measured, or why it was not.

use serde::Serialize;

/// A measurement: its name, its subject, its figures. Rates are decimal GB/s.
#[derive(Clone, Default, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) protocol: Option<String>,
    /// Bytes of the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) table_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) threads: Option<usize>,
    /// Queries at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) batch: Option<usize>,
    /// Bytes that are read or written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seconds: Option<f64>,
    /// `bytes / seconds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gbps: Option<f64>,
    /// Best read bandwidth of the same buffer in the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stream_gbps: Option<f64>,
    /// Seconds that the work takes at the rates of a GPU that were measured in this run: the longest of its parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) floor_seconds: Option<f64>,
    /// Which part that is: memory, tensor, cores or copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bound: Option<&'static str>,
    /// The time of the bound over `seconds`: of the floor, or of reading `bytes` at `stream_gbps`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) share: Option<f64>,
    /// `gbps * batch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) effective_gbps: Option<f64>,
    /// Byte operations (2 a multiply-add, 4 bytes a query word) in 10^12 a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tops: Option<f64>,
    /// Share of the level's arithmetic peak, measured in the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peak_share: Option<f64>,
    /// Forward transforms that take one thread as long, measured in the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transforms: Option<f64>,
    /// Time of a query in a batch over that of one by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) query_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) queries_per_second: Option<f64>,
    /// Seconds over those in which the table alone is read once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) streams: Option<f64>,
    /// Seconds over the sum of the answer's steps, each measured by itself for the same batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) steps_ratio: Option<f64>,
    #[serde(flatten)]
    pub(crate) transform: Option<Transform>,
    #[serde(flatten)]
    pub(crate) rate: Option<Rate>,
    /// From how many queries on another kernel is the faster.
    #[cfg(any(feature = "cuda", feature = "emulator"))]
    #[serde(flatten)]
    pub(crate) thresholds: Option<hush_cuda::Thresholds>,
    /// Seconds that the planner says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) planned_seconds: Option<f64>,
    /// Why there is no figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) skipped: Option<String>,
}

/// The transform of one polynomial.
#[derive(Clone, Serialize)]
pub(crate) struct Transform {
    pub(crate) level: &'static str,
    pub(crate) degree: usize,
    pub(crate) modulus: u32,
    pub(crate) nanoseconds: f64,
    pub(crate) ns_per_butterfly: f64,
    /// Time of the portable code over this time.
    pub(crate) speedup: f64,
    /// 10^9 512-bit multiply-adds of 52 bits a second, measured in the same run.
    pub(crate) ifma_gops: Option<f64>,
}

/// A rate that bounds others.
#[derive(Clone, Serialize)]
pub(crate) struct Rate {
    /// `unit` a second.
    pub(crate) rate: f64,
    pub(crate) unit: &'static str,
}

impl Row {
    /// Something by its name.
    pub(crate) fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// By how much the planner is off: the larger of both times over the smaller, less one.
    pub(crate) fn planned_error(&self) -> Option<f64> {
        let planned = self.planned_seconds?;
        let seconds = self.seconds?;
        Some(planned.max(seconds) / planned.min(seconds) - 1.0)
    }

    /// Returns the row under another name.
    pub(crate) fn renamed(&self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self.clone() }
    }

    /// Says in which protocol it is done, or with which parameter set.
    pub(crate) fn of(self, protocol: impl ToString) -> Self {
        Self { protocol: Some(protocol.to_string()), ..self }
    }

    /// Says of how long a table it is.
    #[cfg(any(feature = "cuda", feature = "emulator"))]
    pub(crate) fn table(self, bytes: usize) -> Self {
        Self { table_bytes: Some(bytes as u64), ..self }
    }

    /// Says for how many queries at once.
    pub(crate) fn batch(self, batch: usize) -> Self {
        Self { batch: Some(batch), ..self }
    }

    /// Adds the time of so many threads for a pass over `bytes`.
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

    /// Adds the share of the bandwidth of reading.
    pub(crate) fn stream(self, gbps: f64) -> Self {
        Self { stream_gbps: Some(gbps), share: self.gbps.map(|own| own / gbps), ..self }
    }

    /// Adds the arithmetic rate of a scan against `peak_tops`.
    pub(crate) fn arithmetic(self, peak_tops: f64) -> Self {
        let tops = self.effective_gbps.map(|gbps| gbps * 8.0 / 1e3);
        Self { tops, peak_share: tops.map(|tops| tops / peak_tops), ..self }
    }

    /// Adds the time in forward transforms of `seconds` each.
    pub(crate) fn transforms(self, seconds: f64) -> Self {
        Self { transforms: self.seconds.map(|own| own / seconds), ..self }
    }

    /// Adds the time of a query over `alone`, the seconds of one by itself.
    pub(crate) fn query_share(self, alone: f64) -> Self {
        let each = self.seconds.zip(self.batch).map(|(seconds, batch)| seconds / batch as f64);
        Self { query_share: each.map(|each| each / alone), ..self }
    }

    /// Adds how many queries are answered a second.
    pub(crate) fn queries(self) -> Self {
        let rate = self.seconds.zip(self.batch).map(|(seconds, batch)| batch as f64 / seconds);
        Self { queries_per_second: rate, ..self }
    }

    /// Makes this the row of whole answers, a pass over a table that is read at `gbps`, whose steps take `steps` seconds.
    pub(crate) fn answer(self, gbps: f64, steps: f64) -> Self {
        let row = self.stream(gbps).queries();
        let streams = row.gbps.map(|own| gbps / own);
        let ratio = row.seconds.map(|own| own / steps);
        Self { streams, steps_ratio: ratio, ..row }
    }
}
