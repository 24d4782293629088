//! Properties of this machine: memory, and free space on its disks.

use std::{fs, path::Path};

/// Bytes of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// All memory.
    pub total: u64,
    /// The memory that is available without swapping.
    pub available: u64,
}

/// Returns the memory of this machine, or of the container that this process is in; `None` if the system does not say.
pub fn memory() -> Option<Memory> {
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    let memory = Memory { total: system.total_memory(), available: system.available_memory() };
    let memory = match system.cgroup_limits() {
        Some(limits) if limits.total_memory > 0 => Memory {
            total: memory.total.min(limits.total_memory),
            // The free memory is no measure: pages of files count as used there.
            available: memory.available.min(limits.total_memory.saturating_sub(limits.rss)),
        },
        _ => memory,
    };
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let memory = limits(&groups, Path::new("/sys/fs/cgroup")).fold(memory, Memory::least);
    (memory.total > 0).then_some(memory)
}

impl Memory {
    fn least(self, other: Self) -> Self {
        Self { total: self.total.min(other.total), available: self.available.min(other.available) }
    }
}

/// Returns the limits of the control groups (version 2) that a process with these `groups` is in, and the memory left in each.
/// `root` is their mount point.
fn limits(groups: &str, root: &Path) -> impl Iterator<Item = Memory> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).map(|path| root.join(path));
    let ancestors: Vec<_> = own.iter().flat_map(|own| own.ancestors().map(Path::to_owned)).collect();
    let root = root.to_owned();
    ancestors.into_iter().take_while(move |group| group.starts_with(&root)).filter_map(|group| {
        let total: u64 = fs::read_to_string(group.join("memory.max")).ok()?.trim().parse().ok()?;
        let stat = fs::read_to_string(group.join("memory.stat")).ok()?;
        // Only anonymous memory counts: pages of files make room for others.
        let used: u64 = stat.lines().find_map(|line| line.strip_prefix("anon "))?.parse().ok()?;
        Some(Memory { total, available: total.saturating_sub(used) })
    })
}

/// Returns the model of the CPU, as the system names it; "unknown" if it does not say.
pub fn cpu_model() -> String {
    let mut system = sysinfo::System::new();
    system.refresh_cpu_all();
    let name = system.cpus().first().map_or("", |cpu| cpu.brand()).trim().to_owned();
    if name.is_empty() { "unknown".into() } else { name }
}

/// Returns the bytes that may be written to the disk of `folder`; `None` if the system does not report them.
pub fn free_disk(folder: &std::path::Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(disk.f_bavail * disk.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_groups_limit_memory() {
        let root = tempfile::tempdir().unwrap();
        let unit = root.path().join("system.slice/hushdb.service");
        fs::create_dir_all(&unit).unwrap();
        for (group, max, anon) in [
            (unit.as_path(), "3000", 1000),
            (unit.parent().unwrap(), "max", 1500),
            (root.path(), "9000", 8000),
        ] {
            fs::write(group.join("memory.max"), format!("{max}\n")).unwrap();
            fs::write(group.join("memory.stat"), format!("file 7\nanon {anon}\nanon_thp 5\n")).unwrap();
        }
        let of = |groups: &str| limits(groups, root.path()).collect::<Vec<_>>();
        let unit = Memory { total: 3000, available: 2000 };
        let all = Memory { total: 9000, available: 1000 };
        assert_eq!(of("0::/system.slice/hushdb.service\n"), [unit, all]);
        assert_eq!(unit.least(all), Memory { total: 3000, available: 1000 });
        assert_eq!(of("1:name=systemd:/\n0::/\n"), [all]);
        assert_eq!(of("1:memory:/docker\n"), []);
    }

    #[test]
    fn this_machine_has_memory_and_a_disk() {
        let memory = memory().expect("Linux says");
        assert!(0 < memory.available && memory.available <= memory.total, "{memory:?}");
        assert!(free_disk(&std::env::temp_dir()).is_some_and(|free| free > 0));
    }
}
