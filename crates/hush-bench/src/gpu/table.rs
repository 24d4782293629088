//! The rows of a benchmark on a GPU, as they come: one JSON object each, or one line of a table.

use std::error::Error;

use serde::Serialize;

use super::row::{Rate, Row, Skipped, What};

/// Prints rows, and keeps the first error of those that could not be measured: a benchmark goes on after it, and fails in the end.
pub(super) struct Table {
    json: bool,
    started: bool,
    error: Option<Box<dyn Error>>,
}

impl Table {
    pub(super) fn new(json: bool) -> Self {
        Self { json, started: false, error: None }
    }

    /// What was measured; or nothing, after a row that says why.
    pub(super) fn keep<T>(&mut self, what: &What, measured: Result<T, Box<dyn Error>>) -> Option<T> {
        let error = match measured {
            Ok(measured) => return Some(measured),
            Err(error) => error,
        };
        self.skip(what, error.to_string());
        self.error.get_or_insert(error);
        None
    }

    /// The end of the benchmark.
    ///
    /// # Errors
    /// The first that was met.
    pub(super) fn finish(self) -> Result<(), Box<dyn Error>> {
        self.error.map_or(Ok(()), Err)
    }

    pub(super) fn rate(&mut self, rate: &Rate) {
        if !self.print_json(rate) {
            println!("{:<44} {:>12.4e} {}", rate.name, rate.rate, rate.unit);
        }
    }

    pub(super) fn push(&mut self, row: &Row) {
        if self.print_json(row) {
            return;
        }
        self.head();
        println!(
            "{} {:>10.3} {:>10.3} {:>6} {:>5.0}% {:>8} {:>10}",
            columns(&row.what),
            1e3 * row.seconds,
            1e3 * row.floor_seconds,
            row.bound,
            100.0 * row.share,
            or_dash(row.streams.map(|streams| format!("{streams:.2}x"))),
            or_dash(row.queries_per_second.map(|rate| format!("{rate:.0}"))),
        );
    }

    /// A row for what is not measured, and why; that is no error.
    pub(super) fn skip(&mut self, what: &What, why: String) {
        let row = Skipped { what, skipped: why };
        if !self.print_json(&row) {
            self.head();
            println!("{} skipped: {}", columns(what), row.skipped);
        }
    }

    /// Whether rows are JSON; then it is printed.
    fn print_json(&self, row: &impl Serialize) -> bool {
        if self.json {
            println!("{}", serde_json::to_string(row).expect("plain data"));
        }
        self.json
    }

    fn head(&mut self) {
        if !std::mem::replace(&mut self.started, true) {
            println!(
                "{:<30} {:>11} {:>8} {:>4} {:>10} {:>10} {:>6} {:>6} {:>8} {:>10}",
                "what", "protocol", "GiB", "B", "ms", "floor ms", "bound", "share", "streams", "queries/s"
            );
        }
    }
}

/// The first columns of a row.
fn columns(what: &What) -> String {
    let (protocol, batch) = (what.protocol.as_deref().unwrap_or("-"), what.batch);
    let gib = what.table_bytes.map(|bytes| format!("{:.2}", bytes as f64 / f64::from(1 << 30)));
    format!(
        "{:<30} {protocol:>11} {:>8} {:>4}",
        what.name,
        or_dash(gib),
        or_dash(batch.map(|batch| batch.to_string()))
    )
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_is_returned_in_the_end() {
        let what = What::named("a").batch(2);
        for json in [false, true] {
            let mut table = Table::new(json);
            assert_eq!(table.keep(&what, Ok(1)), Some(1));
            table.skip(&what, "no room".into());
            assert_eq!(table.keep::<()>(&what, Err("first".into())), None);
            assert_eq!(table.keep(&what, Ok(2)), Some(2));
            assert_eq!(table.keep::<()>(&what, Err("second".into())), None);
            assert_eq!(table.finish().unwrap_err().to_string(), "first");
        }
        let mut table = Table::new(true);
        table.skip(&what, "no room".into());
        assert!(table.finish().is_ok());
    }

    #[test]
    fn rows_say_what_they_are_about() {
        let what = What::named("answer").table(3 << 29);
        assert_eq!(columns(&what), format!("{:<30} {:>11} {:>8} {:>4}", "answer", "-", "1.50", "-"));
        let skipped = Skipped { what: &what.batch(8), skipped: "why".into() };
        let expected = r#"{"name":"answer","table_bytes":1610612736,"batch":8,"skipped":"why"}"#;
        assert_eq!(serde_json::to_string(&skipped).unwrap(), expected);
    }
}
