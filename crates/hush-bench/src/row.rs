//! A row of a benchmark: one JSON object, or one line of a table.

use serde::Serialize;

/// One measurement. Rates are decimal GB/s.
#[derive(Clone, Default, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) protocol: Option<String>,
    pub(crate) threads: usize,
    pub(crate) batch: usize,
    /// Bytes that are read or written.
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
    pub(crate) gbps: f64,
    /// Best read bandwidth of the same buffer in the same run.
    pub(crate) stream_gbps: Option<f64>,
    /// `gbps / stream_gbps`.
    pub(crate) share: Option<f64>,
    /// `gbps * batch`.
    pub(crate) effective_gbps: f64,
    /// Byte operations (2 a multiply-add, 4 bytes a query word) in 10^12 a second.
    pub(crate) tops: Option<f64>,
    /// Share of the level's arithmetic peak, measured in the same run.
    pub(crate) peak_share: Option<f64>,
    /// Forward transforms that take one thread as long, measured in the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transforms: Option<f64>,
    /// Time of a query in a batch over that of one by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) query_share: Option<f64>,
    /// Of a whole answer.
    #[serde(flatten)]
    pub(crate) answer: Option<Answer>,
}

/// What a row of a whole answer says beside its time.
#[derive(Clone, Serialize)]
pub(crate) struct Answer {
    pub(crate) queries_per_second: f64,
    /// Seconds over those in which the database is read once at the stream's bandwidth.
    pub(crate) streams: f64,
    /// Seconds over the sum of the answer's steps, each measured by itself for the same batch.
    pub(crate) steps_ratio: f64,
}

impl Row {
    /// A row for `bytes` in `seconds`.
    pub(crate) fn new(
        name: impl Into<String>,
        threads: usize,
        batch: usize,
        bytes: u64,
        seconds: f64,
    ) -> Self {
        let gbps = bytes as f64 / seconds / 1e9;
        Self {
            name: name.into(),
            threads,
            batch,
            bytes,
            seconds,
            gbps,
            effective_gbps: gbps * batch as f64,
            ..Self::default()
        }
    }

    pub(crate) fn stream(mut self, stream_gbps: f64) -> Self {
        self.stream_gbps = Some(stream_gbps);
        self.share = Some(self.gbps / stream_gbps);
        self
    }

    /// Adds the arithmetic rate of a scan against `peak_tops`.
    pub(crate) fn arithmetic(mut self, peak_tops: f64) -> Self {
        let tops = self.effective_gbps * 8.0 / 1e3;
        self.tops = Some(tops);
        self.peak_share = Some(tops / peak_tops);
        self
    }

    /// Adds the time in forward transforms of `seconds` each.
    pub(crate) fn transforms(mut self, seconds: f64) -> Self {
        self.transforms = Some(self.seconds / seconds);
        self
    }

    /// Adds the time of a query over `alone`, the seconds of one by itself.
    pub(crate) fn query_share(mut self, alone: f64) -> Self {
        self.query_share = Some(self.seconds / self.batch as f64 / alone);
        self
    }

    /// Makes this the row of whole answers from a database that is read at `stream_gbps`, whose steps take `steps` seconds.
    pub(crate) fn answer(self, stream_gbps: f64, steps: f64) -> Self {
        let mut row = self.stream(stream_gbps);
        row.answer = Some(Answer {
            queries_per_second: row.batch as f64 / row.seconds,
            streams: stream_gbps / row.gbps,
            steps_ratio: row.seconds / steps,
        });
        row
    }

    /// What only some rows have, in words.
    fn remarks(&self) -> String {
        let mut words = Vec::new();
        words.extend(self.transforms.map(|count| format!("{count:.0} NTTs")));
        words.extend(self.query_share.map(|share| format!("a query {:.0}% of B = 1", 100.0 * share)));
        if let Some(answer) = &self.answer {
            let each = 1e3 / answer.queries_per_second;
            words.push(format!("{each:.1} ms a query, {:.1} queries/s", answer.queries_per_second));
            words.push(format!("{:.2}x stream, {:.2}x steps", answer.streams, answer.steps_ratio));
        }
        words.join(", ")
    }

    pub(crate) fn protocol(mut self, protocol: impl ToString) -> Self {
        self.protocol = Some(protocol.to_string());
        self
    }
}

/// Prints rows as they come.
pub(crate) struct Table {
    json: bool,
    started: bool,
}

impl Table {
    pub(crate) fn new(json: bool) -> Self {
        Self { json, started: false }
    }

    pub(crate) fn push(&mut self, row: &Row) {
        if self.json {
            println!("{}", serde_json::to_string(row).expect("a row is plain data"));
            return;
        }
        if !self.started {
            self.started = true;
            println!(
                "{:<34} {:>11} {:>3} {:>3} {:>9} {:>9} {:>7} {:>6} {:>9} {:>6} {:>6}",
                "what", "proto", "thr", "B", "MiB", "ms", "GB/s", "stream", "GB/s x B", "TOPS", "peak"
            );
        }
        let percent = |x: Option<f64>| x.map_or("-".into(), |x| format!("{:.0}%", 100.0 * x));
        let line = format!(
            "{:<34} {:>11} {:>3} {:>3} {:>9.1} {:>9.2} {:>7.2} {:>6} {:>9.1} {:>6} {:>6}  {}",
            row.name,
            row.protocol.as_deref().unwrap_or("-"),
            row.threads,
            row.batch,
            row.bytes as f64 / f64::from(1 << 20),
            row.seconds * 1e3,
            row.gbps,
            percent(row.share),
            row.effective_gbps,
            row.tops.map_or("-".into(), |x| format!("{x:.2}")),
            percent(row.peak_share),
            row.remarks()
        );
        println!("{}", line.trim_end());
    }

    /// A remark between rows, for people.
    pub(crate) fn note(&self, text: &str) {
        eprintln!("{text}");
    }
}
