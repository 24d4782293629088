//! The same on the driver's side: a process that finds an emulated driver, which does all work as late as a driver may.

use std::{env, path::Path, process::Command};

use hush_cuda::device::{Arg, CudaError, Device, Launch, PeerCopy};

/// The folder of the emulated driver's library. Programs are carried elsewhere without it.
const FOLDER: &str = env!("HUSH_EMULATED_DRIVER");
/// How many GPUs it has, if not one.
const GPUS: &str = "HUSH_EMULATED_GPUS";
/// What runs on it: memory, copies and launches, and whole answers of every protocol; with small sets, since it only emulates.
const TESTS: [&str; 4] = ["device::", "answers::", "--skip", "in_use"];

#[test]
fn an_emulated_driver_does_the_same() {
    if !Path::new(FOLDER).exists() {
        eprintln!("skipped: there is no {FOLDER}");
        return;
    }
    let program = env::current_exe().expect("it runs");
    let run = Command::new(program)
        .args(TESTS)
        .env("LD_LIBRARY_PATH", FOLDER)
        .env("HUSH_REQUIRE_CUDA", "1")
        .env(GPUS, "2")
        .output()
        .expect("it runs again");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    let passed = said.matches(" ... ok").count();
    assert!(passed >= 15, "{passed} tests passed: {said}");
}

/// How the next test calls itself.
const FAILS: &str = "driver::an_emulated_gpu_fails_alone";

/// A kernel with an address in the memory of another GPU, which nothing here can tell from a number: the driver can, and the GPU is
/// lost, for good, but not the other one.
#[test]
fn an_emulated_gpu_fails_alone() {
    if env::var_os(GPUS).is_some() {
        return fail_one_of_two();
    }
    if !Path::new(FOLDER).exists() {
        eprintln!("skipped: there is no {FOLDER}");
        return;
    }
    let mut program = Command::new(env::current_exe().expect("it runs"));
    program.args(["--exact", FAILS]).env("LD_LIBRARY_PATH", FOLDER).env(GPUS, "2");
    let run = program.output().expect("it runs again");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && said.contains("1 passed"), "{said}");
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
