//! The progress on standard error: a bar on a terminal, otherwise a line a stage.

use std::{
    io::{IsTerminal, stderr},
    time::Instant,
};

use hush_engine::Progress;
use hush_operator::Shown;
use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;

use crate::report;

/// A bar that shows the current stage, its rate and the time left.
pub(crate) struct Bar {
    terminal: bool,
    stage: Mutex<Option<BarStage>>,
}

struct BarStage {
    name: String,
    total: u64,
    unit: &'static str,
    start: Instant,
    /// The number of units that an earlier run did.
    resumed: u64,
    bar: ProgressBar,
}

impl Bar {
    pub(crate) fn new() -> Self {
        Self { terminal: stderr().is_terminal() && !report::are_lines_json(), stage: Mutex::new(None) }
    }

    /// Ends the last stage.
    pub(crate) fn finish(&self) {
        if let Some(stage) = self.stage.lock().take() {
            self.end(&stage);
        }
    }

    fn end(&self, stage: &BarStage) {
        let units = stage.bar.position() - stage.resumed;
        let seconds = stage.start.elapsed().as_secs_f64();
        stage.bar.finish_and_clear();
        if units > 0 || stage.resumed == 0 {
            say!("{:<10} {units} {} in {seconds:.1} s", stage.name, stage.unit);
        }
    }
}

impl Progress for Bar {
    fn start(&self, name: &str, total: u64, unit: &'static str) {
        self.finish();
        let bar = if self.terminal { ProgressBar::new(total) } else { ProgressBar::hidden() };
        let counts = match (unit, total) {
            ("bytes", 0) => "{bytes} {binary_bytes_per_sec}",
            ("bytes", _) => "{bar:30} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta} left",
            (_, 0) => "{human_pos} {per_sec}",
            _ => "{bar:30} {human_pos}/{human_len} {per_sec} {eta} left",
        };
        let style = ProgressStyle::with_template(&format!("{{prefix:10}} {counts}"));
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_prefix(name.to_owned());
        *self.stage.lock() =
            Some(BarStage { name: name.to_owned(), total, unit, start: Instant::now(), resumed: 0, bar });
    }

    fn advance(&self, units: u64) {
        if let Some(stage) = &*self.stage.lock() {
            stage.bar.inc(units);
        }
    }

    fn note(&self, line: &str) {
        match &*self.stage.lock() {
            Some(stage) => stage.bar.suspend(|| say!("{line}")),
            None => say!("{line}"),
        }
    }

    fn resume(&self, units: u64) {
        if let Some(stage) = &mut *self.stage.lock() {
            let line = format!("resuming: {units} of {} {} are done", stage.total, stage.unit);
            stage.bar.suspend(|| say!("{line}"));
            stage.resumed = units;
            stage.bar.set_position(units);
            // The tick shows the position first, so that the rate excludes it.
            stage.bar.tick();
            stage.bar.reset_eta();
        }
    }
}

impl Shown for Bar {
    fn finish(&self) {
        Self::finish(self);
    }
}
