//! Tests of the pool, on an emulated device.

use std::{sync::Barrier, thread};

use super::*;
use crate::device::emulated::{Emulation, Emulator};

const KIB: usize = 1 << 10;
/// The bytes of the device. If more than a quarter of them (256 KiB) is kept, the next allocation in the driver frees all of it.
const MEMORY: usize = 1 << 20;

fn pool(pooled: bool) -> Pool {
    let emulation = Emulation { pooled, ..Emulation::default() };
    Pool::new(Arc::new(Runtime::Emulator(Emulator::new(emulation, MEMORY))))
}

fn free(pool: &Pool) -> usize {
    pool.runtime.free_bytes().expect("the emulator is there")
}

#[test]
fn blocks_are_used_again() {
    let pool = pool(true);
    let (address, size) = pool.take(100 * KIB - 100).unwrap();
    assert_eq!((size, free(&pool)), (104 * KIB, MEMORY - 104 * KIB));
    assert_eq!((pool.bytes_taken(800, 1), pool.bytes_taken(1 << 40, 2)), (900, (1 << 40) + 2 * MAX_WASTE));
    pool.give_back(address, size);
    assert_eq!((pool.kept_bytes(), free(&pool)), (size, MEMORY - size), "it is kept");
    assert_eq!(pool.take(size).unwrap(), (address, size));
    assert_eq!(pool.kept_bytes(), 0);
    let (other, _) = pool.take(size).unwrap();
    assert_ne!(address, other);
    [address, other].into_iter().for_each(|address| pool.give_back(address, size));
    pool.release();
    assert_eq!((pool.kept_bytes(), free(&pool)), (0, MEMORY));
}

#[test]
fn what_is_kept_is_bounded() {
    let pool = pool(true);
    let keep = |sizes: &[usize]| {
        let blocks: Vec<_> = sizes.iter().map(|kib| pool.take(kib * KIB).unwrap()).collect();
        blocks.into_iter().for_each(|(address, size)| pool.give_back(address, size));
        pool.kept_bytes() / KIB
    };
    assert_eq!(keep(&[128, 128]), 256);
    assert_eq!(keep(&[64]), 320, "a quarter of the memory was kept, and no more");
    assert_eq!(keep(&[128, 64]), 320, "what is there is used");
    assert_eq!(keep(&[32]), 32, "before more is asked of the driver, all that is kept goes back");
    assert_eq!(free(&pool), MEMORY - 32 * KIB);
    assert_eq!(keep(&[512]), 544);
    assert_eq!(keep(&[96]), 96);
}

#[test]
fn what_is_kept_goes_when_memory_is_short() {
    let pool = pool(true);
    let keep = || {
        let blocks: Vec<_> = (0..4).map(|_| pool.take(64 * KIB).unwrap()).collect();
        blocks.into_iter().for_each(|(address, size)| pool.give_back(address, size));
        assert_eq!(pool.kept_bytes(), 256 * KIB);
    };
    keep();
    let (address, size) = pool.take(960 * KIB).unwrap();
    assert_eq!((size, pool.kept_bytes()), (960 * KIB, 0));
    let refused = pool.take(128 * KIB);
    assert_eq!(refused, Err(CudaError::OutOfMemory { wanted: 128 * KIB, free: 64 * KIB }));
    pool.give_back(address, size);
    keep();
    let mut attempts = 0;
    let mut wants = |bytes| {
        pool.with_room(|| {
            attempts += 1;
            if free(&pool) < bytes { Err(CudaError::NoMemoryFor { call: "it".into() }) } else { Ok(()) }
        })
    };
    wants(MEMORY).unwrap();
    assert_eq!(wants(MEMORY + 1), Err(CudaError::NoMemoryFor { call: "it".into() }));
    assert_eq!(attempts, 4, "twice each");
}

/// Checks two threads that need more memory than is free: the second thread gets kept memory that the first thread freed.
#[test]
fn two_threads_may_be_short_of_memory_at_once() {
    // A quarter of the memory is kept in many blocks, or more than a quarter.
    for kept in [256 * KIB, 384 * KIB].repeat(50) {
        let pool = pool(true);
        // 128 KiB are free, too little for one thread. Together with what is kept, this is just enough for both threads.
        pool.take(MEMORY - 128 * KIB - kept).unwrap();
        let blocks: Vec<_> = (0..kept / 256).map(|_| pool.take(256).unwrap()).collect();
        blocks.into_iter().for_each(|(address, size)| pool.give_back(address, size));
        let both = Barrier::new(2);
        let take = || {
            both.wait();
            pool.take((128 * KIB + kept) / 2).map(drop)
        };
        let outcomes = thread::scope(|scope| {
            [scope.spawn(take), scope.spawn(take)].map(|one| one.join().expect("no panic"))
        });
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    }
}

#[test]
fn without_a_pool_nothing_is_kept_or_rounded() {
    let pool = pool(false);
    let (address, size) = pool.take(1001).unwrap();
    assert_eq!((size, free(&pool), pool.bytes_taken(800, 1)), (1001, MEMORY - 1001, 800));
    pool.give_back(address, size);
    assert_eq!((pool.kept_bytes(), free(&pool)), (0, MEMORY));
}
