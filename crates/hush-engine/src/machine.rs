//! What this machine has: memory, and room on its disks.

/// Bytes of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// All there is.
    pub total: u64,
    /// What can be had without swapping.
    pub available: u64,
}

/// The memory of this machine, or of the container that this process is in; `None` if the system does not say.
pub fn memory() -> Option<Memory> {
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    let memory = Memory { total: system.total_memory(), available: system.available_memory() };
    let memory = match system.cgroup_limits() {
        Some(limits) if limits.total_memory > 0 => Memory {
            total: memory.total.min(limits.total_memory),
            // Not what is free: pages of files count as used there.
            available: memory.available.min(limits.total_memory.saturating_sub(limits.rss)),
        },
        _ => memory,
    };
    (memory.total > 0).then_some(memory)
}

/// The model of the CPU, as the system calls it; "unknown" if it does not say.
#[cfg(feature = "ingest")]
pub fn cpu_model() -> String {
    let mut system = sysinfo::System::new();
    system.refresh_cpu_all();
    let name = system.cpus().first().map_or("", |cpu| cpu.brand()).trim().to_owned();
    if name.is_empty() { "unknown".into() } else { name }
}

/// Bytes that may be written to the disk of `folder`; `None` if the system does not say.
#[cfg(feature = "ingest")]
pub(crate) fn free_disk(folder: &std::path::Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(disk.f_bavail * disk.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_memory_and_a_disk() {
        let memory = memory().expect("Linux says");
        assert!(0 < memory.available && memory.available <= memory.total, "{memory:?}");
        #[cfg(feature = "ingest")]
        assert!(free_disk(&std::env::temp_dir()).is_some_and(|free| free > 0));
    }
}
