//! Copies within the host's memory by several threads. One thread copies 8 GB/s, while the link to a GPU carries 50.

use std::{num::NonZeroUsize, sync::OnceLock, thread};

use rayon::{ThreadPool, ThreadPoolBuilder, prelude::*};

/// The largest number of threads: enough for the link.
const THREADS: usize = 8;
/// The bytes that a thread copies at a time.
const PIECE: usize = 256 << 10;

/// A pool of threads that only copy, and so never wait for a lock that their caller holds.
static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();

/// Copies all of `from` to `to`, which has the same length.
pub(in crate::device) fn copy(to: &mut [u8], from: &[u8]) {
    // A thread of another pool would run other work of that pool while it waits, which may need the same lock.
    let alone = from.len() <= PIECE || rayon::current_thread_index().is_some();
    match if alone { None } else { POOL.get_or_init(pool).as_ref() } {
        None => to.copy_from_slice(from),
        Some(pool) => pool.install(|| {
            let pieces = to.par_chunks_mut(PIECE).zip(from.par_chunks(PIECE));
            pieces.for_each(|(to, from)| to.copy_from_slice(from));
        }),
    }
}

/// Creates the pool. Returns `None` if there is one core, or if the system refuses to start threads.
fn pool() -> Option<ThreadPool> {
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(THREADS);
    if threads == 1 {
        return None;
    }
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|index| format!("hush-copy-{index}"))
        .build()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_copied() {
        for len in [0, 1, PIECE, PIECE + 1, 5 * PIECE + 7] {
            let from: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            let copied = || {
                let mut to = vec![0; len];
                copy(&mut to, &from);
                to
            };
            assert!(copied() == from, "{len}");
            // Within another pool, its threads copy without this pool.
            assert!(
                ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(copied) == from,
                "{len}"
            );
        }
    }
}
