//! Tests on an emulated driver. The driver's streams run work only when a thread waits for it, so results without a wait are
//! missing. Device memory is memory of this process, so a test can see which work is done. Each test starts itself again in a
//! process that loads this driver.

#![allow(clippy::print_stderr)]

use std::{env, path::Path, process::Command};

use hush_math::modulus::Modulus;
use hush_ops::ntt_tiling::{NttTiledDb, NttTiling};

use crate::{
    device::{
        Buffer, CudaError, Device, Emulation, Launch, Side, UPLOAD_BYTES, driver::Gpu, runtime::Runtime,
    },
    fill_random,
    ring::{CudaNttDb, RlweFoldKernel, fold_rows},
};

/// The folder of the emulated driver's library. On another machine than that of the build, the folder may be missing.
const FOLDER: &str = env!("HUSH_EMULATED_DRIVER");
/// The variable with the memory of the emulated GPU in MiB (default 4 GiB). Here it also marks the process with the emulated
/// driver.
const MIB: &str = "HUSH_EMULATED_MIB";
/// The variable that makes all streams except the main one run their work as early as possible.
const HASTY: &str = "HUSH_EMULATED_HASTY";
/// The values of [`HASTY`] for a test: off, or off and on.
const LATE: [bool; 1] = [false];
const BOTH: [bool; 2] = [false, true];
/// The number of parts of uploads that wait for no work of the device: half on the device, half in pinned memory.
const AHEAD: usize = 16;

/// Runs `test`, whose name is `name`, on an emulated GPU of `mib` MiB, once for each value of [`HASTY`] in `hasty`.
fn on_emulated_driver(name: &str, mib: usize, hasty: &[bool], test: impl FnOnce()) {
    if env::var_os(MIB).is_some() {
        return test();
    }
    if !Path::new(FOLDER).exists() {
        eprintln!("skipped: there is no {FOLDER}");
        return;
    }
    for &hasty in hasty {
        let mut program = Command::new(env::current_exe().expect("it runs"));
        program.args(["--exact", &format!("device::stream::tests::{name}")]);
        program
            .env("LD_LIBRARY_PATH", FOLDER)
            .env(MIB, mib.to_string())
            .env(HASTY, u8::from(hasty).to_string());
        let run = program.output().expect("it runs again");
        let [said, errors] = [&run.stdout, &run.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        assert!(run.status.success() && said.contains("1 passed"), "hasty: {hasty}. {said}{errors}");
    }
}

fn open() -> Device {
    Device::open(0).expect("there is an emulated one")
}

fn gpu(device: &Device) -> &Gpu {
    match *device.runtime {
        Runtime::Gpu(ref gpu) => gpu,
        Runtime::Emulator(_) => panic!("it was opened by a driver"),
    }
}

/// Returns the first words of a buffer as they are now, even if work on them is queued.
fn now<const N: usize>(buffer: &Buffer<u32>) -> [u32; N] {
    assert!(buffer.len() >= N);
    // SAFETY: memory of an emulated GPU is memory of this process, and work on it runs only while this thread waits.
    unsafe { (buffer.slice(..).address() as *const [u32; N]).read() }
}

/// Returns a buffer of zeros for which a kernel that writes to it is queued.
fn queued(device: &Device) -> Buffer<u32> {
    let buffer = device.zeroed::<u32>(64).expect("there is room");
    device.synchronize().expect("it is cleared");
    queue(device, &buffer);
    buffer
}

/// Queues a kernel that writes nonzero words to a buffer.
fn queue(device: &Device, buffer: &Buffer<u32>) {
    fill_random(device, &buffer.slice(..), 7, 0).expect("it is queued");
    assert_eq!(now(buffer), [0; 64], "nobody has waited for it");
}

/// Returns the words of `count` parts of an upload, all different.
fn parts(count: usize) -> Vec<u32> {
    (0..(count * UPLOAD_BYTES / 4) as u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect()
}

#[test]
fn uploads_wait_for_no_kernel() {
    on_emulated_driver("uploads_wait_for_no_kernel", 256, &LATE, || {
        let device = open();
        let filled = queued(&device);
        let host = parts(AHEAD);
        let uploaded = device.upload(&host).expect("there is room");
        assert_eq!(now(&filled), [0; 64], "the link is not behind the kernel");
        // The next part does wait: its slot is free only after the kernel.
        let small = device.upload(&host[..UPLOAD_BYTES / 4]).expect("there is room");
        assert_ne!(now(&filled), [0; 64], "the slots are bounded");
        assert!(device.download(&uploaded.slice(..)).expect("it is there") == host);
        assert!(device.download(&small.slice(..)).expect("it is there") == host[..UPLOAD_BYTES / 4]);
    });
}

/// Checks that each slot is used three times while the device is busy with earlier work.
#[test]
fn places_of_uploads_are_used_again_when_they_are_free() {
    on_emulated_driver("places_of_uploads_are_used_again_when_they_are_free", 256, &BOTH, || {
        let device = open();
        let host = parts(AHEAD + AHEAD / 2 + 1);
        let uploaded = device.upload(&host).expect("there is room");
        assert!(device.download(&uploaded.slice(..)).expect("it is there") == host);
        // Work runs in order: the copy sees the upload, not the kernel before it or the one after it.
        let words = device.zeroed::<u32>(UPLOAD_BYTES / 4).expect("there is room");
        fill_random(&device, &words.slice(..), 7, 0).expect("it is queued");
        device.upload_into(&host[..words.len()], &words.slice(..)).expect("the lengths are equal");
        let copy = device.alloc::<u32>(words.len()).expect("there is room");
        device.copy(&words.slice(..), &copy.slice(..)).expect("the lengths are equal");
        fill_random(&device, &words.slice(..), 8, 0).expect("it is queued");
        assert!(device.download(&copy.slice(..)).expect("it is there") == host[..words.len()]);
    });
}

#[test]
fn downloads_wait_for_no_later_kernel() {
    on_emulated_driver("downloads_wait_for_no_later_kernel", 256, &BOTH, || {
        let device = open();
        let host = parts(5);
        let [from, filled] = [host.len(), 64].map(|len| device.zeroed::<u32>(len).expect("there is room"));
        device.upload_into(&host, &from.slice(..)).expect("the lengths are equal");
        let mut taken = Vec::new();
        let mut take = |part: &[u8]| {
            if taken.is_empty() {
                // Queues work as another thread might.
                queue(&device, &filled);
            }
            taken.extend(part.chunks(4).map(|word| u32::from_ne_bytes(word.try_into().expect("four bytes"))));
        };
        gpu(&device).download(from.slice(..).address(), 4 * host.len(), &mut take).expect("it is there");
        assert!(taken == host);
        assert_eq!(now(&filled), [0; 64], "nobody has waited for it");
        assert_ne!(device.download(&filled.slice(..)).expect("it is there"), [0; 64]);
    });
}

/// Checks that a failed download leaves nothing queued, because its memory has another owner next.
#[test]
fn a_download_that_fails_leaves_nothing_queued() {
    on_emulated_driver("a_download_that_fails_leaves_nothing_queued", 256, &LATE, || {
        let device = open();
        let from = device.upload(&parts(1)).expect("there is room");
        let beyond = 4 * from.len() + 2 * UPLOAD_BYTES;
        let failed =
            gpu(&device).download(from.slice(..).address(), beyond, &mut |_| panic!("it fails first"));
        assert!(matches!(failed, Err(CudaError::Driver { .. })), "{failed:?}");
        drop(from);
        device.release_unused();
        device.synchronize().expect("nothing reads memory that is gone");
        assert_eq!(device.download(&device.upload(&[7u32; 9]).unwrap().slice(..)), Ok(vec![7; 9]));
    });
}

/// Checks that closing a GPU, or a failure to open one, frees its slots: 16 MiB of the GPU's 24 MiB.
#[test]
fn what_a_gpu_takes_is_given_back() {
    on_emulated_driver("what_a_gpu_takes_is_given_back", 24, &LATE, || {
        for _ in 0..3 {
            let device = open();
            device.upload(&parts(3)).expect("there is room");
            let free = device.free_bytes().expect("it is there");
            assert!((4 << 20..8 << 20).contains(&free), "{free}");
        }
        let device = open();
        for _ in 0..3 {
            let refused = Device::open(0).map(drop);
            assert!(
                matches!(refused, Err(CudaError::OutOfMemory { wanted, .. }) if wanted == 16 << 20),
                "{refused:?}"
            );
        }
        let words = device.upload(&parts(1)).expect("there is room");
        assert!(device.download(&words.slice(..)).expect("it is as before") == parts(1));
    });
}

/// Checks a GPU whose memory holds the slots and nothing else.
#[test]
fn a_gpu_without_room_for_kernels_keeps_nothing() {
    on_emulated_driver("a_gpu_without_room_for_kernels_keeps_nothing", 16, &LATE, || {
        for _ in 0..3 {
            let refused = Device::open(0).map(drop);
            assert!(matches!(refused, Err(CudaError::NoMemoryFor { .. })), "{refused:?}");
        }
    });
}

/// The number of words that a kernel copies.
const COPIED: usize = 256;

/// Queues a kernel in a branch, which copies words.
fn copy_beside(side: &mut Side<'_>, from: &Buffer<u32>, to: &Buffer<u32>) {
    side.launch("conform_load_stream_16", Launch::new(1, 64), &[to.into(), from.into()])
        .expect("it is queued");
}

/// Copies in the device's order, and returns the copy.
fn copied(device: &Device, from: &Buffer<u32>) -> Vec<u32> {
    let to = device.alloc::<u32>(COPIED).expect("there is room");
    device.copy(&from.slice(..), &to.slice(..)).expect("the lengths are equal");
    device.download(&to.slice(..)).expect("it is there")
}

/// Runs `test` in the emulator, which has one order, and on the emulated driver.
fn branches(name: &str, test: impl Fn(&Device)) {
    test(&Device::emulated(Emulation::default()));
    on_emulated_driver(name, 256, &BOTH, || test(&open()));
}

fn check_branch(device: &Device) {
    let [first, second] = [1u32, 2].map(|word| vec![word; COPIED]);
    let from = device.upload(&first).expect("there is room");
    let to = device.zeroed::<u32>(COPIED).expect("there is room");
    let mut side = device.fork().expect("it is there");
    copy_beside(&mut side, &from, &to);
    side.join().expect("it is there");
    assert_eq!(copied(device, &to), first, "both orders waited");
    // The second round overwrites the words between the copies.
    device.upload_into(&second, &from.slice(..)).expect("the lengths are equal");
    side.fork().expect("it is there");
    copy_beside(&mut side, &from, &to);
    side.join().expect("it is there");
    device.upload_into(&first, &from.slice(..)).expect("the lengths are equal");
    assert_eq!(copied(device, &to), second, "both orders waited again");
}

#[test]
fn a_branch_begins_at_a_fork_and_ends_at_a_join() {
    branches("a_branch_begins_at_a_fork_and_ends_at_a_join", check_branch);
}

/// Checks a step that ends early with an error: its buffers have another owner next.
fn check_early_end(device: &Device) {
    let from = device.upload(&[1u32; COPIED]).expect("there is room");
    let to = device.zeroed::<u32>(COPIED).expect("there is room");
    let step = || {
        let mut side = device.fork()?;
        copy_beside(&mut side, &from, &to);
        side.launch("no_such_kernel", Launch::new(1, 1), &[])
    };
    assert_eq!(step(), Err(CudaError::NoKernel("no_such_kernel")));
    drop(from);
    let next = device.upload(&[2u32; COPIED]).expect("there is room");
    assert_eq!(copied(device, &to), [1; COPIED], "the branch was joined");
    assert_eq!(copied(device, &next), [2; COPIED]);
}

#[test]
fn a_branch_that_ends_early_is_joined() {
    branches("a_branch_that_ends_early_is_joined", check_early_end);
}

#[test]
fn a_branch_is_beside_the_main_order() {
    on_emulated_driver("a_branch_is_beside_the_main_order", 256, &BOTH, || {
        let device = open();
        let [from, to] = [1u32, 2].map(|word| device.upload(&[word; COPIED]).expect("there is room"));
        device.synchronize().expect("it is there");
        let mut side = device.fork().expect("it is there");
        let filled = queued(&device);
        copy_beside(&mut side, &from, &to);
        gpu(&device).finish_side().expect("it is there");
        assert_eq!(
            (now(&to), now(&filled)),
            ([1; 64], [0; 64]),
            "the kernel of the main order is not waited for"
        );
        drop(side);
        assert_eq!(copied(&device, &to), [1; COPIED]);
    });
}

#[test]
fn a_branch_has_memory_of_its_device_alone() {
    let [own, other] = [0, 1].map(|_| Device::emulated(Emulation::default()));
    let words = other.zeroed::<u32>(COPIED).expect("there is room");
    let mut side = own.fork().expect("it is there");
    let refused = side.launch("conform_load_stream_16", Launch::new(1, 64), &[(&words).into(); 2]);
    assert!(matches!(refused, Err(CudaError::OtherDevice { .. })), "{refused:?}");
}

/// Checks that after the branch all results are written except those of the last chunk of points, whose product is still queued.
#[test]
fn a_fold_turns_points_over_in_a_branch() {
    on_emulated_driver("a_fold_turns_points_over_in_a_branch", 256, &LATE, || {
        let device = open();
        let rows = 5;
        let columns = 64;
        let points = 128;
        let tiling = NttTiling::new(points, 1, rows, columns).expect("whole groups");
        let ones = NttTiledDb::from_polys(tiling, &vec![1; rows * columns * points]);
        let db = CudaNttDb::upload(&device, &ones).expect("there is room");
        let selectors = device.upload(&vec![1u32; 2 * rows * points]).expect("there is room");
        let moduli = [Modulus::new(2_147_483_647)];
        let kernel = Some(RlweFoldKernel::Hopper);
        let folded = fold_rows(&device, &moduli, &db, &[&selectors], kernel).expect("the shapes fit");
        assert!(!now::<128>(&folded[0]).contains(&5), "nobody has waited for it");
        gpu(&device).finish_side().expect("it is there");
        let words = now::<128>(&folded[0]);
        assert!(words[..96] == [5; 96] && !words[96..].contains(&5), "{words:?}");
        let all = device.download(&folded[0].slice(..)).expect("it is there");
        assert!(all.iter().all(|&word| word == 5));
    });
}
