//! The background work of a server: tasks that restart after a failure, and the time of the last look at the place of each table.

use std::{
    any::Any,
    collections::BTreeMap,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use futures_util::FutureExt;
use parking_lot::Mutex;
use prometheus_client::metrics::{counter::Counter, family::Family, gauge::Gauge};
use tokio::time::Instant;

use crate::metrics::{TableLabels, TaskLabels};

/// The pause before a task is started again after its first failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause before a task is started again.
const LAST_PAUSE: Duration = Duration::from_secs(30);
/// The running time after which a task has recovered from its last failure.
const STEADY: Duration = Duration::from_secs(60);
/// The age of the last look at its place beyond which a table is stale. Looks come every 200 ms, or every 10 s for a table that
/// is fetched.
const STALE: Duration = Duration::from_secs(60);

/// A kind of background task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Background {
    /// Accepts connections.
    Accept,
    /// Answers the queries that wait for a table.
    Scan,
    /// Removes expired evaluation keys, and notes the use of others.
    Keys,
    /// Drops replaced epochs.
    Epochs,
    /// Reads certificates, tokens and gateway keys again.
    Files,
    /// Checks whether the mapped files of tables were changed.
    Mapped,
    /// Loads tables, and reloads what is in their folders.
    Folders,
    /// Fetches tables that are elsewhere.
    Copies,
    /// Processes the tasks of the admin endpoints.
    Tasks,
    /// Folds changes into new bases.
    Compaction,
}

impl Background {
    const ALL: [Background; 10] = [
        Background::Accept,
        Background::Scan,
        Background::Keys,
        Background::Epochs,
        Background::Files,
        Background::Mapped,
        Background::Folders,
        Background::Copies,
        Background::Tasks,
        Background::Compaction,
    ];

    fn name(self) -> &'static str {
        match self {
            Background::Accept => "accept",
            Background::Scan => "scan",
            Background::Keys => "keys",
            Background::Epochs => "epochs",
            Background::Files => "files",
            Background::Mapped => "mapped",
            Background::Folders => "folders",
            Background::Copies => "copies",
            Background::Tasks => "tasks",
            Background::Compaction => "compaction",
        }
    }

    /// Returns whether queries cannot be answered without the task.
    fn is_vital(self) -> bool {
        matches!(self, Background::Accept | Background::Scan)
    }
}

/// The state of the background work of a server. Clones share it.
#[derive(Clone, Default)]
pub struct Upkeep(Arc<SharedUpkeep>);

#[derive(Default)]
struct SharedUpkeep {
    failures: Mutex<BTreeMap<Background, Failures>>,
    looks: Mutex<BTreeMap<String, Look>>,
    /// Whether the server looks at the places of tables by itself.
    is_watching: AtomicBool,
    restarts: Family<TaskLabels, Counter>,
    last_look: Family<TableLabels, Gauge<i64, AtomicI64>>,
    stale: Gauge<i64, AtomicI64>,
    reload_failures: Family<TableLabels, Counter>,
}

/// The failures of one task.
struct Failures {
    count: u64,
    last: Instant,
    /// Whether the task waits to be started again.
    is_down: bool,
}

/// The last look at the place of one table.
struct Look {
    at: Instant,
    /// Whether the content of the place cannot be served, so that the server still serves an older table.
    is_behind: bool,
}

impl Upkeep {
    /// Runs a task until it returns, and returns its value. A panic is counted and logged, and the task starts again after a
    /// pause.
    pub async fn keep<T, F: Future<Output = T>>(&self, task: Background, mut start: impl FnMut() -> F) -> T {
        let mut pause = FIRST_PAUSE;
        loop {
            let started = Instant::now();
            let run = async { start().await };
            let panic = match AssertUnwindSafe(run).catch_unwind().await {
                Ok(value) => return value,
                Err(panic) => panic,
            };
            tokio::time::sleep(self.failed(task, &*panic, started, &mut pause)).await;
            self.started(task);
        }
    }

    /// Runs a task on this thread, as [`Upkeep::keep`] does.
    pub fn keep_thread<T>(&self, task: Background, mut run: impl FnMut() -> T) -> T {
        let mut pause = FIRST_PAUSE;
        loop {
            let started = Instant::now();
            let panic = match catch_unwind(AssertUnwindSafe(&mut run)) {
                Ok(value) => return value,
                Err(panic) => panic,
            };
            thread::sleep(self.failed(task, &*panic, started, &mut pause));
            self.started(task);
        }
    }

    /// Runs one piece of a task's work, and returns its value. A panic is counted and logged, and returns `None`: the caller goes
    /// on with the next piece.
    pub fn attempt<T>(&self, task: Background, run: impl FnOnce() -> T) -> Option<T> {
        let started = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(run));
        let panic = match outcome {
            Ok(value) => return Some(value),
            Err(panic) => panic,
        };
        self.failed(task, &*panic, started, &mut FIRST_PAUSE.clone());
        self.started(task);
        None
    }

    /// Counts and logs a failure. Returns the pause before the next start, and doubles `pause`, up to [`LAST_PAUSE`].
    fn failed(&self, task: Background, panic: &dyn Any, started: Instant, pause: &mut Duration) -> Duration {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let reason = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
        tracing::error!(task = task.name(), reason, "a background task failed, and is being restarted");
        self.0.restarts.get_or_create(&TaskLabels { task: task.name() }).inc();
        let last = Instant::now();
        let mut failures = self.0.failures.lock();
        let own = failures.entry(task).or_insert(Failures { count: 0, last, is_down: true });
        *own = Failures { count: own.count + 1, last, is_down: true };
        if started.elapsed() >= STEADY {
            *pause = FIRST_PAUSE;
        }
        std::mem::replace(pause, (*pause * 2).min(LAST_PAUSE))
    }

    /// Marks a task as running again.
    fn started(&self, task: Background) {
        self.0.failures.lock().entry(task).and_modify(|failures| failures.is_down = false);
    }

    /// Declares that the server looks at the places of tables by itself from now on. A table whose place is not looked at is then
    /// stale.
    pub fn watch(&self) {
        self.0.is_watching.store(true, Ordering::Relaxed);
    }

    /// Notes a look at the place of a table, or progress of the work that a look has started.
    pub fn looked(&self, table: &str) {
        self.note(table, |_| {});
    }

    /// Notes whether the content of a table's place is served. Counts a failure if it is not.
    pub fn took_up(&self, table: &str, is_served: bool) {
        self.note(table, |look| look.is_behind = !is_served);
        if !is_served {
            self.0.reload_failures.get_or_create(&TableLabels::new(table)).inc();
        }
    }

    /// Forgets a table.
    pub(crate) fn forget(&self, table: &str) {
        self.0.looks.lock().remove(table);
        self.0.last_look.remove(&TableLabels::new(table));
        self.0.reload_failures.remove(&TableLabels::new(table));
    }

    /// Sets the time of the last look at a table to now, and applies `change`.
    fn note(&self, table: &str, change: impl FnOnce(&mut Look)) {
        let at = Instant::now();
        let mut looks = self.0.looks.lock();
        let look = looks.entry(table.to_owned()).or_insert(Look { at, is_behind: false });
        look.at = at;
        change(look);
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let labels = TableLabels::new(table);
        self.0.last_look.get_or_create(&labels).set(seconds as i64);
        // The counter exists from 0 on, so that Prometheus sees the first failure as an increase.
        drop(self.0.reload_failures.get_or_create(&labels));
    }

    /// Returns the name of a vital task that waits to be started again, if there is one. Without it the server does not answer.
    pub(crate) fn down(&self) -> Option<&'static str> {
        let failures = self.0.failures.lock();
        let mut down = failures.iter().filter(|(task, failures)| task.is_vital() && failures.is_down);
        down.next().map(|(task, _)| task.name())
    }

    /// Returns a line for each thing that is wrong although the server answers. Sets the gauge of stale tables.
    pub(crate) fn degraded(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (task, failures) in self.0.failures.lock().iter() {
            let since = failures.last.elapsed();
            if failures.is_down || since < STEADY {
                let name = task.name();
                let count = failures.count;
                let ago = since.as_secs();
                lines.push(format!(
                    "the task {name} has failed {count} times since the start, the last time {ago} s ago"
                ));
            }
        }
        let is_watching = self.0.is_watching.load(Ordering::Relaxed);
        let looks = self.0.looks.lock();
        let tables = looks.iter().filter_map(|(table, look)| match look.at.elapsed() {
            age if is_watching && age > STALE => {
                Some(format!("the place of table {table} was last looked at {} s ago", age.as_secs()))
            }
            _ if look.is_behind => Some(format!(
                "table {table} is not up to date: what is in its place cannot be fetched or served"
            )),
            _ => None,
        });
        let tables: Vec<String> = tables.collect();
        self.0.stale.set(tables.len() as i64);
        lines.extend(tables);
        lines
    }

    /// Returns the counters of failures after which a task was started again, one for each task.
    pub(crate) fn restarts(&self) -> &Family<TaskLabels, Counter> {
        for task in Background::ALL {
            drop(self.0.restarts.get_or_create(&TaskLabels { task: task.name() }));
        }
        &self.0.restarts
    }

    /// Returns the gauges of the last look at each table, in seconds since 1970.
    pub(crate) fn last_look(&self) -> &Family<TableLabels, Gauge<i64, AtomicI64>> {
        &self.0.last_look
    }

    /// Returns the counters of contents of a table's place that could not be served.
    pub(crate) fn reload_failures(&self) -> &Family<TableLabels, Counter> {
        &self.0.reload_failures
    }

    /// Returns the gauge of stale tables, as of the last call of [`Upkeep::degraded`].
    pub(crate) fn stale_tables(&self) -> &Gauge<i64, AtomicI64> {
        &self.0.stale
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn restarts(upkeep: &Upkeep, task: Background) -> u64 {
        upkeep.0.restarts.get_or_create(&TaskLabels { task: task.name() }).get()
    }

    #[tokio::test]
    async fn a_task_that_fails_is_started_again() {
        let upkeep = Upkeep::default();
        let runs = AtomicUsize::new(0);
        assert_eq!((upkeep.down(), upkeep.degraded()), (None, vec![]));
        let run = || {
            let run = runs.fetch_add(1, Ordering::Relaxed);
            let upkeep = &upkeep;
            async move {
                // The task is running again.
                assert_eq!(upkeep.down(), None);
                assert!(run == 2, "run {run}");
                run
            }
        };
        assert_eq!(upkeep.keep(Background::Accept, run).await, 2);
        assert_eq!(restarts(&upkeep, Background::Accept), 2);
        let [line] = &upkeep.degraded()[..] else { panic!("one task failed") };
        assert!(line.starts_with("the task accept has failed 2 times since the start"), "{line}");
    }

    #[test]
    fn a_thread_goes_on_and_work_is_counted() {
        let upkeep = Upkeep::default();
        let runs = AtomicUsize::new(0);
        upkeep.keep_thread(Background::Tasks, || assert!(runs.fetch_add(1, Ordering::Relaxed) == 1, "first"));
        assert_eq!((runs.into_inner(), restarts(&upkeep, Background::Tasks)), (2, 1));
        assert_eq!(upkeep.attempt(Background::Compaction, || 5), Some(5));
        assert_eq!(upkeep.attempt(Background::Compaction, || panic!("asked to panic")), None::<()>);
        assert_eq!(restarts(&upkeep, Background::Compaction), 1);
        assert_eq!(upkeep.degraded().len(), 2);
    }

    #[test]
    fn pauses_grow_until_a_task_is_steady() {
        let upkeep = Upkeep::default();
        let mut pause = FIRST_PAUSE;
        let now = Instant::now();
        let pauses: Vec<_> = (0..12).map(|_| upkeep.failed(Background::Scan, &"", now, &mut pause)).collect();
        assert_eq!((pauses[0], pauses[1], pauses[11]), (FIRST_PAUSE, 2 * FIRST_PAUSE, LAST_PAUSE));
        assert_eq!(upkeep.down(), Some("scan"));
        upkeep.started(Background::Scan);
        assert_eq!(upkeep.down(), None);
        let long_ago = now.checked_sub(STEADY).unwrap();
        assert_eq!(upkeep.failed(Background::Keys, &"", long_ago, &mut pause), FIRST_PAUSE);
        // Look-ups go on without the task of keys.
        assert_eq!(upkeep.down(), None);
    }

    #[test]
    fn tables_are_stale_when_nobody_looks() {
        let upkeep = Upkeep::default();
        upkeep.looked("people");
        let long_ago = Instant::now().checked_sub(2 * STALE).unwrap();
        upkeep.0.looks.lock().get_mut("people").unwrap().at = long_ago;
        // Without `watch`, nobody has to look.
        assert_eq!(upkeep.degraded(), Vec::<String>::new());
        upkeep.watch();
        assert_eq!(upkeep.degraded(), ["the place of table people was last looked at 120 s ago"]);
        assert_eq!(upkeep.0.stale.get(), 1);
        upkeep.took_up("people", false);
        assert_eq!(
            upkeep.degraded(),
            ["table people is not up to date: what is in its place cannot be fetched or served"]
        );
        // Another look at the same content changes nothing.
        upkeep.looked("people");
        assert_eq!(upkeep.degraded().len(), 1);
        upkeep.took_up("people", true);
        assert_eq!((upkeep.degraded().len(), upkeep.0.stale.get()), (0, 0));
        upkeep.took_up("people", false);
        upkeep.forget("people");
        assert_eq!(upkeep.degraded(), Vec::<String>::new());
    }
}
