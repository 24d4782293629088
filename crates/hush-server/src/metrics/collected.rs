//! Metrics that are read when somebody asks for them: of the tables, of the program, and of its process.

use std::{
    fmt,
    fs::File,
    sync::OnceLock,
    time::{SystemTime, UNIX_EPOCH},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge, info::Info},
};
use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System, get_current_pid};

use super::list::help;
use crate::tables::{TableSlot, Tables};

/// Returns the BLAKE3 hash of the running program, in hex, even if another program has replaced it on disk. Returns `None` if the
/// program cannot be read. The first call reads the whole file.
pub(crate) fn program() -> Option<&'static str> {
    static HASH: OnceLock<Option<String>> = OnceLock::new();
    HASH.get_or_init(|| {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(File::open("/proc/self/exe").ok()?).ok()?;
        Some(hasher.finalize().to_hex().to_string())
    })
    .as_deref()
}

/// The metrics of the tables of a server, and of its build.
pub(crate) struct OfTables(pub(crate) Tables);

impl fmt::Debug for OfTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OfTables")
    }
}

impl Collector for OfTables {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let tables = self.0.all();
        let mut ready = describe(&mut encoder, "hush_table_ready", MetricType::Gauge)?;
        for (name, slot) in &tables {
            let is_ready = matches!(slot, TableSlot::Resident(table) if table.engine.lost().is_none());
            let labels = [("table", &**name)];
            ConstGauge::new(i64::from(is_ready)).encode(ready.encode_family(&labels)?)?;
        }
        let resident: Vec<_> = tables
            .iter()
            .filter_map(|(name, slot)| match slot {
                TableSlot::Resident(table) => Some((&**name, table)),
                TableSlot::Loading | TableSlot::Failed(_) => None,
            })
            .collect();
        let mut degraded = describe(&mut encoder, "hush_table_degraded", MetricType::Gauge)?;
        for (name, table) in &resident {
            let is_degraded = table.engine.degraded().is_some();
            let labels = [("table", *name)];
            ConstGauge::new(i64::from(is_degraded)).encode(degraded.encode_family(&labels)?)?;
        }
        let mut epoch = describe(&mut encoder, "hush_table_epoch_info", MetricType::Gauge)?;
        for (name, table) in &resident {
            let hash = hex::encode(table.served().epoch);
            let labels = [("table", *name), ("epoch", &hash)];
            ConstGauge::new(1i64).encode(epoch.encode_family(&labels)?)?;
        }
        let mut since = describe(&mut encoder, "hush_table_epoch_timestamp_seconds", MetricType::Gauge)?;
        for (name, table) in &resident {
            let labels = [("table", *name)];
            ConstGauge::new(seconds(table.since)).encode(since.encode_family(&labels)?)?;
        }
        let mut epochs = describe(&mut encoder, "hush_table_epochs", MetricType::Gauge)?;
        for (name, _) in &resident {
            let replaced = self.0.slot(name).map_or(0, |(_, replaced)| replaced.len());
            let labels = [("table", *name)];
            ConstGauge::new(1 + replaced as i64).encode(epochs.encode_family(&labels)?)?;
        }
        let build = Info::new([("version", env!("CARGO_PKG_VERSION")), ("program", program().unwrap_or(""))]);
        build.encode(describe(&mut encoder, "hush_build", MetricType::Info)?)
    }
}

/// Writes the name, the kind and the help text of a metric.
fn describe<'a>(
    encoder: &'a mut DescriptorEncoder<'_>,
    name: &'static str,
    kind: MetricType,
) -> Result<MetricEncoder<'a>, fmt::Error> {
    encoder.encode_descriptor(name, help(name), None, kind)
}

fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// The metrics of the server's process, under the names that Prometheus' own clients give.
#[derive(Debug)]
pub(crate) struct OfProcess;

impl Collector for OfProcess {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let Ok(own) = get_current_pid() else { return Ok(()) };
        let mut system = System::new();
        let wanted = ProcessRefreshKind::nothing().with_cpu().with_memory().without_tasks();
        system.refresh_processes_specifics(ProcessesToUpdate::Some(&[own]), true, wanted);
        let Some(process) = system.process(own) else { return Ok(()) };
        let files = process.open_files().map(|files| files as u64);
        let limit = process.open_files_limit().map(|files| files as u64);
        let gauges = [
            ("process_resident_memory_bytes", Some(process.memory())),
            ("process_start_time_seconds", Some(process.start_time())),
            ("process_open_fds", files),
            ("process_max_fds", limit),
        ];
        for (name, value) in gauges {
            if let Some(value) = value {
                ConstGauge::new(value).encode(describe(&mut encoder, name, MetricType::Gauge)?)?;
            }
        }
        let seconds = process.accumulated_cpu_time() as f64 / 1000.0;
        let counter = describe(&mut encoder, "process_cpu_seconds", MetricType::Counter)?;
        ConstCounter::new(seconds).encode(counter)
    }
}
