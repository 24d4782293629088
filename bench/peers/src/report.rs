//! The output: a table for people, or JSON lines.

use hush_peers_common::{Error, Row};

use crate::ours;

/// The printer of rows.
pub(crate) struct Report {
    is_json: bool,
    has_header: bool,
}

impl Report {
    /// Creates a printer of JSON lines, or of a table.
    pub(crate) fn new(is_json: bool) -> Self {
        Self { is_json, has_header: false }
    }

    /// Prints the rows of a group: measurements of the same records.
    pub(crate) fn print(&mut self, rows: &[Row]) -> Result<(), Error> {
        if self.is_json {
            for row in rows {
                println!("{}", serde_json::to_string(row)?);
            }
            return Ok(());
        }
        if !self.has_header {
            print_line(
                ["name", "what", "setup s", "query", "answer", "(scan", "pack)", "decode", "x ours"],
                ["up", "down", "offline", "keys"],
            );
            self.has_header = true;
        }
        let own = rows.iter().filter(|row| ours::is_ours(row)).map(|row| row.answer_ms);
        let own = own.min_by(f64::total_cmp);
        if let Some(row) = rows.first() {
            println!("-- {} records of {} bytes; times in ms, one thread", row.records, row.record_bytes);
        }
        for row in rows {
            print_row(row, own);
        }
        Ok(())
    }
}

/// Prints a row, with the ratio of its answer to `own`, the fastest answer of HushDB in the group.
fn print_row(row: &Row, own: Option<f64>) {
    let part = |milliseconds: Option<f64>| milliseconds.map_or_else(String::new, |part| format!("{part:.2}"));
    let ratio = own.map_or_else(String::new, |own| format!("{:.2}", row.answer_ms / own));
    let times = [
        &format!("{} {}", row.peer, row.version),
        &row.what,
        &format!("{:.1}", row.setup_seconds),
        &format!("{:.2}", row.query_ms),
        &format!("{:.2}", row.answer_ms),
        &part(row.scan_ms),
        &part(row.pack_ms),
        &format!("{:.2}", row.decode_ms),
        &ratio,
    ];
    let bytes =
        [row.up_bytes, row.down_bytes, row.offline_bytes, row.key_bytes].map(|bytes| bytes.to_string());
    print_line(times.map(String::as_str), bytes.each_ref().map(String::as_str));
}

/// Prints a line of the table: the cells of names and times, and those of bytes.
fn print_line(times: [&str; 9], bytes: [&str; 4]) {
    let [name, what, setup, query, answer, scan, pack, decode, ratio] = times;
    let [up, down, offline, keys] = bytes;
    println!(
        "{name:<22} {what:<56} {setup:>8} {query:>8} {answer:>9} {scan:>8} {pack:>8} {decode:>8} {ratio:>7} \
         {up:>9} {down:>9} {offline:>10} {keys:>9}"
    );
}
