//! The health of parts that are elsewhere, as the head of their table sees it.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicI64},
    time::Duration,
};

use hush_protocol::Name;
use parking_lot::Mutex;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};
use tokio::time::Instant;

use crate::metrics::list;

/// The parts of the tables of a server, with the state of their replicas. Clones share it.
#[derive(Clone, Default)]
pub struct Parts(Arc<SharedParts>);

struct SharedParts {
    tables: Mutex<BTreeMap<Name, WatchedTable>>,
    up: Family<PartLabels, Gauge<i64, AtomicI64>>,
    replicas: Family<PartLabels, Gauge<i64, AtomicI64>>,
    restarts: Family<PartLabels, Counter>,
    seconds: Family<PartLabels, Histogram>,
}

impl Default for SharedParts {
    fn default() -> SharedParts {
        SharedParts {
            tables: Mutex::default(),
            up: Family::default(),
            replicas: Family::default(),
            restarts: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.001, 2.0, 15))),
        }
    }
}

/// The parts of one table.
struct WatchedTable {
    grace: Duration,
    /// The time at which a replica of each part was last seen alive.
    alive: Vec<Instant>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PartLabels {
    table: String,
    part: usize,
}

/// A part without a live replica.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PartDown {
    pub(crate) table: Name,
    pub(crate) part: usize,
    pub(crate) since: Duration,
}

impl Parts {
    /// Expects `count` parts of a table from now on. The server is not ready once a part has had no live replica for longer than
    /// `grace`, even if only because nobody has looked.
    pub fn expect(&self, table: &Name, count: usize, grace: Duration) {
        self.forget(table);
        let watched = WatchedTable { grace, alive: vec![Instant::now(); count] };
        for part in 0..count {
            let labels = labels(table, part);
            drop(self.0.up.get_or_create(&labels));
            drop(self.0.replicas.get_or_create(&labels));
            drop(self.0.restarts.get_or_create(&labels));
        }
        self.0.tables.lock().insert(table.clone(), watched);
    }

    /// Notes how many replicas of a part are alive and have the served epoch, and how many processes have replaced others since
    /// the last look. Ignores parts that are not expected.
    pub fn seen(&self, table: &Name, part: usize, live: usize, restarts: u64) {
        let mut tables = self.0.tables.lock();
        let Some(alive) = tables.get_mut(table).and_then(|watched| watched.alive.get_mut(part)) else {
            return;
        };
        if live > 0 {
            *alive = Instant::now();
        }
        let labels = labels(table, part);
        self.0.up.get_or_create(&labels).set(i64::from(live > 0));
        self.0.replicas.get_or_create(&labels).set(live as i64);
        self.0.restarts.get_or_create(&labels).inc_by(restarts);
    }

    /// Notes the time from the hand-out of a batch to the reply of a part.
    pub fn replied(&self, table: &Name, part: usize, elapsed: Duration) {
        self.0.seconds.get_or_create(&labels(table, part)).observe(elapsed.as_secs_f64());
    }

    /// Returns the part that has been without a live replica for longest, if that is longer than its grace.
    pub(crate) fn down(&self) -> Option<PartDown> {
        let tables = self.0.tables.lock();
        let all = tables.iter().flat_map(|(table, watched)| {
            let parts = watched.alive.iter().enumerate().map(|(part, alive)| (part, alive.elapsed()));
            parts.filter(|(_, since)| *since > watched.grace).map(move |(part, since)| (table, part, since))
        });
        // A part that nobody has looked at is not up either.
        let down = all.inspect(|(table, part, _)| {
            self.0.up.get_or_create(&labels(table, *part)).set(0);
        });
        let (table, part, since) = down.max_by_key(|(_, _, since)| *since)?;
        Some(PartDown { table: table.clone(), part, since })
    }

    /// Forgets the parts of a table.
    pub(crate) fn forget(&self, table: &str) {
        let mut tables = self.0.tables.lock();
        let Some((name, watched)) = tables.remove_entry(table) else { return };
        for part in 0..watched.alive.len() {
            let labels = labels(&name, part);
            self.0.up.remove(&labels);
            self.0.replicas.remove(&labels);
            self.0.restarts.remove(&labels);
            self.0.seconds.remove(&labels);
        }
    }

    /// Registers the metrics of parts.
    pub(crate) fn register(&self, registry: &mut Registry) {
        list::register(registry, "hush_part_up", self.0.up.clone());
        list::register(registry, "hush_part_replicas", self.0.replicas.clone());
        list::register(registry, "hush_part_restarts", self.0.restarts.clone());
        list::register(registry, "hush_part_seconds", self.0.seconds.clone());
    }
}

fn labels(table: &Name, part: usize) -> PartLabels {
    PartLabels { table: table.to_string(), part }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text;

    use super::*;

    const GRACE: Duration = Duration::from_secs(10);

    fn lines(parts: &Parts) -> Vec<String> {
        let mut registry = Registry::default();
        let mut encoded = String::new();
        parts.register(&mut registry);
        text::encode(&mut encoded, &registry).unwrap();
        encoded.lines().filter(|line| line.contains("part=")).map(str::to_owned).collect()
    }

    #[test]
    fn a_part_is_down_after_its_grace() {
        let (parts, table): (_, Name) = (Parts::default(), "people".parse().unwrap());
        // Parts that are not expected are ignored.
        parts.seen(&table, 0, 1, 0);
        assert_eq!((parts.down(), lines(&parts)), (None, vec![]));
        parts.expect(&table, 2, GRACE);
        assert_eq!(parts.down(), None);
        let long_ago = Instant::now().checked_sub(2 * GRACE).unwrap();
        parts.0.tables.lock().get_mut(&table).unwrap().alive = vec![long_ago; 2];
        parts.seen(&table, 0, 2, 1);
        let down = parts.down().unwrap();
        assert_eq!((&*down.table, down.part, down.since.as_secs()), ("people", 1, 20));
        let said = lines(&parts);
        for line in [
            r#"hush_part_up{table="people",part="0"} 1"#,
            r#"hush_part_up{table="people",part="1"} 0"#,
            r#"hush_part_replicas{table="people",part="0"} 2"#,
            r#"hush_part_restarts_total{table="people",part="0"} 1"#,
        ] {
            assert!(said.iter().any(|own| own == line), "{line} is not in {said:?}");
        }
        parts.seen(&table, 1, 1, 0);
        assert_eq!(parts.down(), None);
        parts.replied(&table, 1, Duration::from_millis(3));
        assert!(lines(&parts).iter().any(|line| line.starts_with("hush_part_seconds_count")));
        parts.forget(&table);
        assert_eq!((parts.down(), lines(&parts)), (None, vec![]));
    }
}
