//! Files of random bytes, as long as those of a table that was never built. One stretch of memory is mapped again and again, so
//! that a file takes no more than that.

use std::{error::Error, io, ptr, sync::Arc};

use hush_he::entities::PublicSeed;
use hush_math::csprng::Csprng;
use hush_ops::{path::Content, tiling::DbBytes};
use hush_protocol::{
    client::Given,
    facts::{Facts, FileSpec},
};

/// The bytes that are mapped again and again.
const STRETCH: usize = 64 << 20;

/// Returns random files for those of `specs` that a backend reads. Words of polynomials are below the least prime. Fails if
/// memory cannot be mapped.
pub(super) fn random(specs: &[FileSpec]) -> Result<Vec<(&'static str, DbBytes)>, Box<dyn Error>> {
    let read = specs.iter().filter(|spec| spec.content.is_held());
    read.map(|spec: &FileSpec| -> Result<_, Box<dyn Error>> {
        let is_bytes = matches!(spec.content, Content::Bytes(_) | Content::Symbols { .. });
        let words = if is_bytes { u32::MAX } else { LEAST_PRIME };
        Ok((spec.name, Arc::new(Repeated::new(spec.content.bytes() as usize, words)?) as DbBytes))
    })
    .collect()
}

/// The seed of public values.
pub(super) const SEED: PublicSeed = PublicSeed([1; 32]);

/// A lower bound of the primes of all parameter sets.
const LEAST_PRIME: u32 = 1 << 25;

/// Returns the values that a client of such a table is given, except keys: a hint of zeros, and a whitening if there is one.
pub(super) fn given(facts: &Facts) -> Given {
    let hint = (facts.hint_bytes > 0).then(|| Arc::new(vec![0u8; facts.hint_bytes as usize]) as Arc<_>);
    Given { hint, whitening: facts.is_whitened.then_some([1; 32]), ..Given::new(SEED) }
}

/// A stretch of memory that is mapped again and again, to `len` bytes.
struct Repeated {
    start: *mut libc::c_void,
    len: usize,
}

// SAFETY: the memory is only read.
unsafe impl Send for Repeated {}
// SAFETY: as above.
unsafe impl Sync for Repeated {}

impl Repeated {
    /// Maps `len` bytes, of random words below `most`.
    fn new(len: usize, most: u32) -> io::Result<Self> {
        let stretch = STRETCH.min(len.next_multiple_of(1 << 16)).max(1 << 16);
        let mut words = vec![0u32; stretch / size_of::<u32>()];
        Csprng::insecure_from_seed(1).fill_u32(&mut words);
        words.iter_mut().for_each(|word| *word %= most);
        let file = tempfile::tempfile()?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        io::Write::write_all(&mut &file, &bytes)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_NORESERVE;
        let mapped = len.next_multiple_of(stretch);
        // SAFETY: a new range of addresses, which nothing reads before it is filled.
        let start = unsafe {
            libc::mmap(ptr::null_mut(), mapped, libc::PROT_NONE, flags | libc::MAP_ANONYMOUS, -1, 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let repeated = Self { start, len };
        for offset in (0..mapped).step_by(stretch) {
            let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
            // SAFETY: the place is inside of the range above.
            let at = unsafe {
                libc::mmap(
                    start.add(offset),
                    stretch,
                    libc::PROT_READ,
                    libc::MAP_SHARED | libc::MAP_FIXED,
                    fd,
                    0,
                )
            };
            if at == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(repeated)
    }
}

impl AsRef<[u8]> for Repeated {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the range is mapped to be read as long as this lives.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.len) }
    }
}

impl Drop for Repeated {
    fn drop(&mut self) {
        let stretch = STRETCH.min(self.len.next_multiple_of(1 << 16)).max(1 << 16);
        // SAFETY: the range belongs to `self`, and no slice of it is left.
        unsafe { libc::munmap(self.start, self.len.next_multiple_of(stretch)) };
    }
}
