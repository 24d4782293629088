//! The same on the driver's side: a process that finds an emulated driver, which does all work as late as a driver may.

use std::{path::Path, process::Command};

/// The folder of the emulated driver's library. Programs are carried elsewhere without it.
const FOLDER: &str = env!("HUSH_EMULATED_DRIVER");
/// What runs on it: memory, copies and launches, and whole answers of every protocol; with small sets, since it only emulates.
const TESTS: [&str; 4] = ["device::", "answers::", "--skip", "in_use"];

#[test]
fn an_emulated_driver_does_the_same() {
    if !Path::new(FOLDER).exists() {
        eprintln!("skipped: there is no {FOLDER}");
        return;
    }
    let program = std::env::current_exe().expect("it runs");
    let run = Command::new(program)
        .args(TESTS)
        .env("LD_LIBRARY_PATH", FOLDER)
        .env("HUSH_REQUIRE_CUDA", "1")
        .output()
        .expect("it runs again");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    let passed = said.matches(" ... ok").count();
    assert!(passed >= 15, "{passed} tests passed: {said}");
}
