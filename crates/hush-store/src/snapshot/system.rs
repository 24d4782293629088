//! Calls to the system that Linux and macOS have in different forms. Each function says what it does where a system lacks the call.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    ops::Range,
    path::Path,
};

use memmap2::{Advice, Mmap, MmapMut};
use rustix::{
    fs::{CWD, FallocateFlags, RenameFlags, fallocate, renameat_with},
    io::{Errno, retry_on_intr},
};

/// Exchanges two names atomically.
///
/// # Errors
/// The system's error; some file systems cannot exchange names.
pub(super) fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?)
}

/// Makes a file at least `bytes` long and reserves its space on the disk, so that a write through a map cannot find the disk full.
///
/// # Errors
/// The system's error, such as a full disk.
pub(super) fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    match retry_on_intr(|| fallocate(file, FallocateFlags::empty(), 0, bytes.max(1))) {
        // The file system cannot reserve space: zeros take it.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => write_zeros(file, bytes),
        result => Ok(result?),
    }
}

/// Writes zeros behind the content of a file, until it is `bytes` long.
fn write_zeros(mut file: &File, bytes: u64) -> io::Result<()> {
    let length = file.seek(SeekFrom::End(0))?;
    io::copy(&mut io::repeat(0).take(bytes.saturating_sub(length)), &mut file)?;
    Ok(())
}

/// Returns whether a file system is mounted at `path`, if the system reports it.
#[cfg(target_os = "linux")]
pub(super) fn is_mount_root(path: &Path) -> Option<bool> {
    use rustix::fs::{AtFlags, StatxAttributes, StatxFlags, statx};

    // Kernels before 5.8 do not report it.
    let found = statx(CWD, path, AtFlags::empty(), StatxFlags::BASIC_STATS).ok()?;
    let is_known = found.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT);
    is_known.then(|| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn is_mount_root(_path: &Path) -> Option<bool> {
    None
}

/// Writes a range of a mapped file to the disk.
///
/// # Errors
/// The system's error. Other errors of the disk are reported only once.
#[cfg(target_os = "linux")]
pub(super) fn write_out(file: &File, _map: &MmapMut, range: Range<usize>) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    const ALL: libc::c_uint =
        libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    let [first, length] = [range.start, range.len()].map(|bytes| bytes as libc::off64_t);
    // SAFETY: plain system call on an open descriptor.
    if unsafe { libc::sync_file_range(file.as_raw_fd(), first, length, ALL) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    // If the system lacks the call, the later sync writes everything.
    let lacks_it = matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL | libc::ESPIPE));
    if lacks_it { Ok(()) } else { Err(error) }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn write_out(_file: &File, map: &MmapMut, range: Range<usize>) -> io::Result<()> {
    map.flush_range(range.start, range.len())
}

/// Reads a range of a mapped file into the system's cache.
///
/// # Errors
/// The system's error: on Linux `EFAULT` if a page of the file is missing.
pub(super) fn populate(map: &Mmap, range: Range<usize>) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    match map.advise_range(Advice::PopulateRead, range.start, range.len()) {
        // Kernels before 5.14 do not know the advice.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
        result => return result,
    }
    // The advice changes nothing but speed, so that its failure does not matter.
    let _ = map.advise_range(Advice::WillNeed, range.start, range.len());
    let bytes = map[range].iter().step_by(4096);
    std::hint::black_box(bytes.fold(0, |sum: u8, byte| sum ^ byte));
    Ok(())
}

/// Advises the system's cache that a range of a file will be read, or need not be kept. Only Linux takes the advice.
#[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
pub(super) fn advise_cache(file: &File, range: Range<usize>, is_wanted: bool) {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{Advice, fadvise};
        let advice = if is_wanted { Advice::WillNeed } else { Advice::DontNeed };
        // Its failure changes nothing but speed.
        let _ = fadvise(file, range.start as u64, std::num::NonZeroU64::new(range.len() as u64), advice);
    }
}

/// Advises huge pages for a range of a map. Only Linux takes the advice.
#[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
pub(super) fn advise_huge(map: &MmapMut, range: Range<usize>) {
    // Its failure changes nothing but speed.
    #[cfg(target_os = "linux")]
    let _ = map.advise_range(Advice::HugePage, range.start, range.len());
}

/// Returns where the error number of this thread is.
pub(super) fn error_number() -> *mut libc::c_int {
    // SAFETY: plain calls, which return the address of a variable of the thread.
    #[cfg(target_os = "linux")]
    return unsafe { libc::__errno_location() };
    // SAFETY: as above.
    #[cfg(not(target_os = "linux"))]
    return unsafe { libc::__error() };
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn reserved_space_keeps_the_content() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("file");
        let mut expected = b"content".to_vec();
        expected.resize(100_000, 0);
        for extend in [reserve, write_zeros] {
            fs::write(&path, "content").unwrap();
            let file = File::options().read(true).write(true).open(&path).unwrap();
            extend(&file, 100_000).unwrap();
            extend(&file, 5).unwrap();
            assert_eq!(fs::read(&path).unwrap(), expected);
        }
        assert!(reserve(&File::options().write(true).open(&path).unwrap(), u64::MAX).is_err());
    }

    #[test]
    fn exchanged_names_have_each_others_content() {
        let scratch = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| scratch.path().join(name));
        fs::write(&a, "a").unwrap();
        fs::write(&b, "b").unwrap();
        exchange(&a, &b).unwrap();
        assert_eq!([fs::read(&a).unwrap(), fs::read(&b).unwrap()], [b"b", b"a"]);
        assert!(exchange(&a, &scratch.path().join("none")).is_err());
    }

    #[test]
    fn the_root_of_a_file_system_is_known() {
        let scratch = tempfile::tempdir().unwrap();
        assert_ne!(is_mount_root(scratch.path()), Some(true));
        assert_ne!(is_mount_root(Path::new("/proc")), Some(false));
    }
}
