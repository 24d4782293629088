//! Metrics that are read when somebody asks for them: of the tables, of the program, and of its process.

use std::{
    fmt,
    fs::File,
    sync::OnceLock,
    time::{SystemTime, UNIX_EPOCH},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge, info::Info},
};
use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System, get_current_pid};

use crate::tables::{TableSlot, Tables};

/// Returns the BLAKE3 hash of the program that runs in hex, also where another one has taken its place on disk.
/// The first call reads the whole file.
pub(crate) fn program() -> Option<&'static str> {
    static HASH: OnceLock<Option<String>> = OnceLock::new();
    let hash = || {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(File::open("/proc/self/exe").ok()?).ok()?;
        Some(hasher.finalize().to_hex().to_string())
    };
    HASH.get_or_init(hash).as_deref()
}

/// The tables of a server, and its build.
pub(crate) struct OfTables(pub(crate) Tables);

impl fmt::Debug for OfTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OfTables")
    }
}

impl Collector for OfTables {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let tables = self.0.all();
        let mut ready =
            encoder.encode_descriptor("table_ready", "Whether a table answers", None, MetricType::Gauge)?;
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
        let help = "The epoch of a table that is served";
        let mut epoch = encoder.encode_descriptor("table_epoch_info", help, None, MetricType::Gauge)?;
        for (name, table) in &resident {
            let hash = hex::encode(table.served().epoch);
            let labels = [("table", *name), ("epoch", &hash)];
            ConstGauge::new(1i64).encode(epoch.encode_family(&labels)?)?;
        }
        let help = "When the served epoch of a table was taken up";
        let mut since =
            encoder.encode_descriptor("table_epoch_timestamp_seconds", help, None, MetricType::Gauge)?;
        for (name, table) in &resident {
            let labels = [("table", *name)];
            ConstGauge::new(seconds(table.since)).encode(since.encode_family(&labels)?)?;
        }
        let help = "Epochs of a table in memory, replaced ones that still answer included";
        let mut epochs = encoder.encode_descriptor("table_epochs", help, None, MetricType::Gauge)?;
        for (name, _) in &resident {
            let replaced = self.0.slot(name).map_or(0, |(_, replaced)| replaced.len());
            let labels = [("table", *name)];
            ConstGauge::new(1 + replaced as i64).encode(epochs.encode_family(&labels)?)?;
        }
        let build = Info::new([("version", env!("CARGO_PKG_VERSION")), ("program", program().unwrap_or(""))]);
        build.encode(encoder.encode_descriptor("build", "The program", None, MetricType::Info)?)
    }
}

fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// The process of the server. Names are those that Prometheus' own clients give.
#[derive(Debug)]
pub(crate) struct OfProcess;

impl Collector for OfProcess {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let Ok(own) = get_current_pid() else { return Ok(()) };
        let mut system = System::new();
        let wanted = ProcessRefreshKind::nothing().with_cpu().with_memory().without_tasks();
        system.refresh_processes_specifics(ProcessesToUpdate::Some(&[own]), true, wanted);
        let Some(process) = system.process(own) else { return Ok(()) };
        let gauges = [
            ("process_resident_memory_bytes", "Resident memory", Some(process.memory())),
            ("process_start_time_seconds", "When the process started", Some(process.start_time())),
            ("process_open_fds", "Open files", process.open_files().map(|files| files as u64)),
            (
                "process_max_fds",
                "The limit of open files",
                process.open_files_limit().map(|files| files as u64),
            ),
        ];
        for (name, help, value) in gauges {
            if let Some(value) = value {
                let gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
                ConstGauge::new(value).encode(gauge)?;
            }
        }
        let seconds = process.accumulated_cpu_time() as f64 / 1000.0;
        let counter =
            encoder.encode_descriptor("process_cpu_seconds", "CPU time", None, MetricType::Counter)?;
        ConstCounter::new(seconds).encode(counter)
    }
}
