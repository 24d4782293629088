//! Tests on the driver's side: a process that finds an emulated driver, which does all work as late as a driver may.

#![allow(clippy::print_stderr)]

use std::{env, iter, path::Path, process::Command};

use hush_cuda::{
    device::{Arg, CudaError, Device, Launch, PeerCopy},
    fill_random,
};

/// The folder of the emulated driver's library. Programs are carried elsewhere without it.
const FOLDER: &str = env!("HUSH_EMULATED_DRIVER");
/// How many GPUs it has, if not one.
const GPUS: &str = "HUSH_EMULATED_GPUS";
/// How much memory each has in MiB, if not 4 GiB.
const MIB: &str = "HUSH_EMULATED_MIB";
/// Has all streams of a GPU but the main one do their work as early as they may; otherwise it is done late, too.
const HASTY: &str = "HUSH_EMULATED_HASTY";
/// The tests that run on it: memory, copies and launches, steps in two streams, and whole answers of every protocol;
/// with small sets, since it only emulates.
const TESTS: [&str; 5] = ["device::", BESIDE, "answers::", "--skip", "in_use"];
/// The test of the step in two streams.
const BESIDE: &str = "rlwe_fold::chunks_beside_others";

#[test]
fn an_emulated_driver_does_the_same() {
    same(&TESTS, "0", 16);
}

#[test]
fn an_emulated_driver_with_hasty_streams_does_the_same() {
    same(&["device::", BESIDE], "1", 12);
}

/// Runs tests again on two GPUs of the emulated driver, where there is one: so many at least.
fn same(tests: &[&str], hasty: &str, least: usize) {
    if !Path::new(FOLDER).exists() {
        eprintln!("skipped: there is no {FOLDER}");
        return;
    }
    let program = env::current_exe().expect("it runs");
    let run = Command::new(program)
        .args(tests)
        .env("LD_LIBRARY_PATH", FOLDER)
        .env("HUSH_REQUIRE_CUDA", "1")
        .env(GPUS, "2")
        .env(HASTY, hasty)
        .output()
        .expect("it runs again");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    let passed = said.matches(" ... ok").count();
    assert!(passed >= least, "{passed} tests passed: {said}");
}

/// Runs a test of this file again by itself, where there is such a driver.
fn again(test: &str, variable: &str, value: &str) {
    if !Path::new(FOLDER).exists() {
        eprintln!("skipped: there is no {FOLDER}");
        return;
    }
    let mut program = Command::new(env::current_exe().expect("it runs"));
    program.args(["--exact", test]).env("LD_LIBRARY_PATH", FOLDER).env(variable, value);
    let run = program.output().expect("it runs again");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && said.contains("1 passed"), "{said}");
}

/// A kernel with an address in the memory of another GPU, which nothing here can tell from a number: the driver can, and the GPU is
/// lost, for good, but not the other one.
#[test]
fn an_emulated_gpu_fails_alone() {
    if env::var_os(GPUS).is_some() {
        fail_one_of_two();
    } else {
        again("driver::an_emulated_gpu_fails_alone", GPUS, "2");
    }
}

/// Kernels are there when the GPU is open: a batch needs no memory for those that it is the first to launch.
#[test]
fn a_full_gpu_launches_any_kernel() {
    if env::var_os(MIB).is_some() {
        launch_on_a_full_gpu();
    } else {
        again("driver::a_full_gpu_launches_any_kernel", MIB, "64");
    }
}

fn launch_on_a_full_gpu() {
    let device = Device::open(0).expect("there is one");
    let words = device.zeroed::<u32>(64).expect("there is room");
    let mut taken = Vec::new();
    for bytes in (8..26).rev().map(|log| 1 << log) {
        taken.extend(iter::from_fn(|| device.alloc::<u8>(bytes).ok()));
    }
    fill_random(&device, &words.slice(..), 7, 0).expect("it asks for no memory");
    assert_ne!(device.download(&words.slice(..)).expect("it is there"), [0; 64]);
}

fn fail_one_of_two() {
    let [one, other] = [0, 1].map(|ordinal| Device::open(ordinal).expect("there are two"));
    assert!(matches!(Device::open(2), Err(CudaError::NoDevice { count: 2, .. })));
    let [here, there] = [&one, &other].map(|device| device.upload(&[1u32; 64]).expect("there is room"));
    let address = Arg::Long(there.slice(..).address());
    let args = [address, 64u64.into(), 7u32.into(), 0u32.into()];
    // SAFETY: as of `fill_random`, but for whose memory it is.
    unsafe { one.launch_kernel("fill_random", Launch::new(1, 32), &args) }.expect("it is queued");
    let failed = one.download(&here.slice(..));
    let Err(CudaError::Lost { reason }) = &failed else { panic!("{failed:?}") };
    assert!(reason.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{reason}");
    assert_eq!(other.download(&there.slice(..)).as_deref(), Ok(&[1; 64][..]));
    let copy = PeerCopy { from: (&one, here.slice(..)), to: (&other, there.slice(..)) };
    let copied = Device::exchange(&[copy]);
    assert!(matches!(copied, Err(CudaError::Lost { .. })), "{copied:?}");
    assert_eq!(other.lost(), None);
}
