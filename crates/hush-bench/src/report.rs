//! The rows of a benchmark, as they come: one JSON object each, or one line of a table.

use std::{
    error::Error,
    io::{Write, stderr, stdout},
};

use super::row::{Row, SubjectFacts};

/// A column of a table: its head, its width, and the function that formats its cell.
pub(crate) type Column = (&'static str, usize, fn(&Row) -> Option<String>);

/// The columns of benchmarks on a CPU, beside a row's name and [`remarks`].
pub(crate) const ON_CPU: &[Column] = &[
    ("proto", 11, |row| row.protocol.clone()),
    ("thr", 3, |row| whole(row.threads)),
    ("B", 3, |row| whole(row.batch)),
    ("MiB", 9, |row| fixed(row.bytes.map(|bytes| bytes as f64 / f64::from(1 << 20)), 1)),
    ("ms", 9, |row| fixed(row.seconds.map(|seconds| 1e3 * seconds), 2)),
    ("GB/s", 7, |row| fixed(row.gbps, 2)),
    ("stream", 6, |row| percent(row.share)),
    ("GB/s x B", 9, |row| fixed(row.effective_gbps, 1)),
    ("TOPS", 6, |row| fixed(row.tops, 2)),
    ("peak", 6, |row| percent(row.peak_share)),
];

/// Formats a count.
pub(crate) fn whole(count: Option<usize>) -> Option<String> {
    count.map(|count| count.to_string())
}

/// Formats a number with `digits` digits behind the point.
pub(crate) fn fixed(number: Option<f64>, digits: usize) -> Option<String> {
    number.map(|number| format!("{number:.digits$}"))
}

/// Formats a share in percent.
pub(crate) fn percent(share: Option<f64>) -> Option<String> {
    share.map(|share| format!("{:.0}%", 100.0 * share))
}

/// Writes a line to standard output, and ignores errors: a reader that has seen enough does not end a benchmark.
fn print(line: &str) {
    let _ = writeln!(stdout(), "{line}");
}

/// Writes a line to standard error, and ignores errors.
pub(crate) fn say(line: &str) {
    let _ = writeln!(stderr(), "{line}");
}

/// The output of a benchmark. The report prints rows, and keeps the first error of a measurement: a benchmark goes on after an
/// error, and fails in the end.
pub(crate) struct Report {
    columns: &'static [Column],
    json: bool,
    started: bool,
    error: Option<Box<dyn Error>>,
}

impl Report {
    /// Creates a report without rows: JSON objects if `json`, a table of `columns` otherwise.
    pub(crate) fn new(columns: &'static [Column], json: bool) -> Self {
        Self { columns, json, started: false, error: None }
    }

    /// Prints a row.
    pub(crate) fn push(&mut self, row: &Row) {
        if self.json {
            print(&serde_json::to_string(row).expect("a row is plain data"));
            return;
        }
        if !std::mem::replace(&mut self.started, true) {
            print(&self.line("what", |(head, ..)| Some((*head).to_owned()), ""));
        }
        print(&self.line(&row.name, |(.., cell)| cell(row), &remarks(row)));
    }

    /// Returns a line of the table, with `name` first, a cell for each column, and `remarks` last.
    fn line(&self, name: &str, cell: impl Fn(&Column) -> Option<String>, remarks: &str) -> String {
        let mut line = format!("{name:<34}");
        for column in self.columns {
            let width = column.1;
            let cell = cell(column).unwrap_or_else(|| "-".into());
            line += &format!(" {cell:>width$}");
        }
        format!("{line}  {remarks}").trim_end().to_owned()
    }

    /// Prints a remark between rows, for people.
    pub(crate) fn note(&self, text: &str) {
        say(text);
    }

    /// Prints a row for what is not measured, with the reason. Skipping is no error.
    pub(crate) fn skip(&mut self, row: &Row, why: impl Into<String>) {
        self.push(&Row { skipped: Some(why.into()), ..row.clone() });
    }

    /// Returns a measurement. After an error, prints a row with the reason, keeps the error, and returns `None`.
    #[cfg(any(feature = "cuda", feature = "emulator"))]
    pub(crate) fn keep<T>(&mut self, row: &Row, measured: Result<T, Box<dyn Error>>) -> Option<T> {
        let error = match measured {
            Ok(measured) => return Some(measured),
            Err(error) => error,
        };
        self.skip(row, error.to_string());
        self.error.get_or_insert(error);
        None
    }

    /// Ends the benchmark.
    ///
    /// # Errors
    /// The first error that was kept.
    pub(crate) fn finish(self) -> Result<(), Box<dyn Error>> {
        self.error.map_or(Ok(()), Err)
    }
}

/// Returns the facts that only some rows have, in words.
fn remarks(row: &Row) -> String {
    let mut words = Vec::new();
    words.extend(row.skipped.as_ref().map(|why| format!("skipped: {why}")));
    #[cfg(any(feature = "cuda", feature = "emulator"))]
    words.extend(
        row.thresholds.map(|of| format!("mma from {} queries, wgmma from {}", of.mma_from, of.hopper_from)),
    );
    words.extend(row.transforms.map(|count| format!("{count:.0} NTTs")));
    words.extend(row.query_share.map(|share| format!("a query {:.0}% of B = 1", 100.0 * share)));
    if let (Some(rate), Some(streams)) = (row.queries_per_second, row.streams) {
        words.push(format!("{:.1} ms a query, {rate:.1} queries/s", 1e3 / rate));
        words.push(format!("{streams:.2}x stream"));
    }
    words.extend(row.steps_ratio.map(|ratio| format!("{ratio:.2}x steps")));
    words.extend(row.facts.as_ref().map(table));
    words.extend(
        row.run
            .as_ref()
            .map(|run| format!("{}, {} cores, {}: {}", run.machine, run.cores, run.level, run.command)),
    );
    words.join(", ")
}

/// Returns the facts of a table, in words.
fn table(facts: &SubjectFacts) -> String {
    let payload = (facts.records * facts.value_bytes) as f64;
    format!(
        "{}: {} records of {} B, D0 = {}, {:.4} slots a record; encoded {:.4}x values, all files {:.3}x; query {} B, answer {} B, \
         keys {} B, hint {} B",
        facts.preset,
        facts.records,
        facts.value_bytes,
        facts.columns,
        facts.slots as f64 / facts.records as f64,
        facts.encoded_bytes as f64 / payload,
        facts.file_bytes as f64 / payload,
        facts.query_bytes,
        facts.answer_bytes,
        facts.key_bytes,
        facts.hint_bytes,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(any(feature = "cuda", feature = "emulator"))]
    #[test]
    fn the_first_error_is_returned_in_the_end() {
        let row = Row::named("a").batch(2);
        for json in [false, true] {
            let mut report = Report::new(ON_CPU, json);
            assert_eq!(report.keep(&row, Ok(1)), Some(1));
            report.skip(&row, "no room");
            assert_eq!(report.keep::<()>(&row, Err("first".into())), None);
            assert_eq!(report.keep(&row, Ok(2)), Some(2));
            assert_eq!(report.keep::<()>(&row, Err("second".into())), None);
            assert_eq!(report.finish().unwrap_err().to_string(), "first");
        }
        let mut report = Report::new(ON_CPU, true);
        report.skip(&row, "no room");
        assert!(report.finish().is_ok());
    }

    #[test]
    fn rows_say_what_they_are_about() {
        let what = Row { table_bytes: Some(3 << 29), ..Row::named("answer").batch(8) };
        let skipped = Row { skipped: Some("why".into()), ..what };
        let expected = r#"{"name":"answer","table_bytes":1610612736,"batch":8,"skipped":"why"}"#;
        assert_eq!(serde_json::to_string(&skipped).unwrap(), expected);
        assert_eq!(remarks(&skipped), "skipped: why");
        let row =
            Row::named("fold").of("simple").batch(4).pass(2, 3 << 20, 0.001).answer(6.291_456, Some(0.002));
        let report = Report::new(&ON_CPU[..6], false);
        let line = report.line(&row.name, |(.., cell)| cell(&row), &remarks(&row));
        let front = format!("{:<34} {:>11}   2   4       3.0      1.00    3.15", "fold", "simple");
        let behind = "0.2 ms a query, 4000.0 queries/s, 2.00x stream, 0.50x steps";
        assert_eq!(line, format!("{front}  {behind}"));
    }
}
