//! The settings of the process: its memory dumps, and its limit of open files.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Protects the memory, which holds secrets and other people's queries: a crash leaves no memory image, and no other process of the
/// same user may read it.
pub(crate) fn keep_memory_private() {
    // A system that supports neither needs neither.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    // On Linux the limit does not hold where a program collects the images.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Returns the current and the greatest limit on the files, connections included, that this process may open. `None`: unlimited.
pub(crate) fn open_files_limits() -> [Option<u64>; 2] {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    [current, maximum]
}

/// Raises the limit of open files to the greatest that is allowed. Returns the limit.
pub(crate) fn raise_open_files() -> usize {
    let [_, maximum] = open_files_limits();
    // If the system refuses, the limit stays as it is.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    open_files_limits()[0].and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

/// Returns the number of open files of this process; 0 if the system does not report it.
pub(crate) fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

#[cfg(test)]
mod tests {
    use rustix::process::{DumpableBehavior, dumpable_behavior};

    use super::*;

    #[test]
    fn a_crash_leaves_no_image() {
        keep_memory_private();
        assert_eq!(getrlimit(Resource::Core).current, Some(0));
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }

    #[test]
    fn as_many_files_as_are_allowed_may_be_open() {
        let [_, maximum] = open_files_limits();
        let before = open_files();
        assert_eq!(Some(raise_open_files() as u64), maximum.or(Some(u64::MAX)));
        assert_eq!(open_files_limits()[0], maximum);
        let _file = fs::File::open("/dev/null").unwrap();
        assert!(before > 3 && open_files() > 3);
    }
}
