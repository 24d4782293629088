//! Several devices, of each of which a table is all: it is on the first one that has room, and the keys of its clients with it.

#![allow(clippy::print_stdout)]

use std::{
    env,
    process::{Command, Output},
    sync::Arc,
};

use hush_cuda::device::Device;
use hush_engine::{
    BackendChoice, BackendError, Backends, CUDA_VARIABLE, ClientKeys, Engine, EngineError, KeySpec,
    OpenError, open, open_devices,
};
use hush_protocol::Protocol;
use hush_store::snapshot::Verify;

use crate::{
    devices::{MIB, TABLES, built, cpu, device, on_cpu},
    memory::least_memory,
    tables::{Folder, Told, Wanted, files},
};

fn on(number: usize) -> hush_engine::Device {
    hush_engine::Device::Gpu(number)
}

/// Devices with so much memory each.
fn devices(memory: [usize; 2]) -> [Device; 2] {
    memory.map(|memory| device(false, memory))
}

#[test]
fn a_table_goes_to_the_first_device_that_has_room() {
    for table in TABLES {
        let folder = built(table);
        let on_cpu = folder.open(&on_cpu()).unwrap();
        for choice in [BackendChoice::Auto, BackendChoice::Cuda] {
            let gpus = Backends::with_devices(choice, cpu(), devices([MIB / 64, 256 * MIB])).for_clients(1);
            let told = Told::default();
            let engine = open(&folder.table(), Verify::Header, &gpus, &told).unwrap();
            assert_eq!(engine.served().placement.to_string(), "cuda:1", "{table:?}");
            let notes = told.notes.into_inner().unwrap();
            assert!(notes.iter().all(|note| !note.contains("on the CPU")), "{notes:?}");
            folder.ask([&*engine, &*on_cpu], 3);
        }
        let none = devices([MIB / 64, MIB / 32]);
        let refused = folder.open(&Backends::with_devices(BackendChoice::Cuda, cpu(), none.clone())).err();
        assert!(matches!(refused, Some(OpenError::Memory(_))), "{refused:?}");
        let engine = folder.open(&Backends::with_devices(BackendChoice::Auto, cpu(), none)).unwrap();
        assert_eq!(engine.served().placement.to_string(), "cpu", "{table:?}");
    }
}

/// Pieces of what comes of a hint are computed on all devices that have room, whichever takes the next one.
#[test]
fn builds_are_shared_by_devices() {
    for (protocol, bytes) in [
        (Protocol::Colpack, 300),
        (Protocol::Simple, 300),
        (Protocol::ExppackS, 300),
        (Protocol::ExppackD, 60),
    ] {
        let folder = Folder::with_table(&on_cpu(), Wanted::by_index(protocol, 40, bytes, 1));
        let three = [256 * MIB, MIB / 64, 256 * MIB].map(|memory| device(false, memory));
        let gpus = Backends::with_devices(BackendChoice::Cuda, cpu(), three.clone());
        let table = folder.build("shared", &gpus, &Told::default()).unwrap();
        assert!(files(&folder.table()) == files(&table), "{protocol}: the files");
        let uploaded = three.map(|device| device.uploaded_bytes());
        assert!(uploaded[0] > 0 && uploaded[1] == 0 && uploaded[2] > 0, "{protocol}: {uploaded:?}");
    }
}

#[test]
fn tables_fill_one_device_after_the_other() {
    let folder = built((Protocol::Simple, 300));
    let (memory, _) = least_memory(&folder, false, 1, 1);
    let gpus = Backends::with_devices(BackendChoice::Auto, cpu(), devices([3 * memory; 2]));
    let mut tables: Vec<Arc<dyn Engine>> = Vec::new();
    while tables.last().is_none_or(|table| table.served().placement.to_string() != "cpu") {
        tables.push(folder.open(&gpus).unwrap());
    }
    let places: Vec<_> = tables.iter().map(|table| table.served().placement.to_string()).collect();
    let count = |place: &str| places.iter().filter(|other| **other == place).count();
    let (first, second) = (count("cuda"), count("cuda:1"));
    assert!(first >= 2 && first == second && places[..2 * first].is_sorted(), "{places:?}");
    for table in &tables {
        folder.ask([&**table, &*tables[0]], 1);
    }
    // The room of one that is closed is the next one's, whichever device it is on.
    drop(tables.remove(0));
    assert_eq!(folder.open(&gpus).unwrap().served().placement.to_string(), "cuda");
}

/// Returns a table twice: on the first device, where there is no room for another, and on the second.
fn on_each(folder: &Folder) -> ([Arc<dyn Engine>; 2], [Device; 2], Backends) {
    let (memory, _) = least_memory(folder, false, 1, 1);
    let devices = devices([memory, 256 * MIB]);
    let gpus = Backends::with_devices(BackendChoice::Auto, cpu(), devices.clone()).for_clients(1);
    let engines = [(); 2].map(|()| folder.open(&gpus).unwrap());
    let places = [0, 1].map(|table| engines[table].served().placement.to_string());
    assert_eq!(places, ["cuda", "cuda:1"], "{:?}", folder.wanted);
    (engines, devices, gpus)
}

#[test]
fn keys_are_of_the_place_that_opened_them() {
    for table in TABLES {
        let folder = built(table);
        let ([first, second], devices, _) = on_each(&folder);
        let on_cpu = folder.open(&on_cpu()).unwrap();
        folder.ask([&*first, &*on_cpu], 1);
        folder.ask([&*second, &*on_cpu], 3);
        let Some(spec) = &first.served().keys else {
            assert_eq!(second.served().keys, None);
            continue;
        };
        assert_eq!(spec.devices[..], [on(0)]);
        let there = KeySpec { devices: Arc::new([on(1)]), ..spec.clone() };
        assert!(second.served().keys.as_ref() == Some(&there) && *spec != there);

        let asked = folder.some(&*first, 2);
        let free = |device: usize| devices[device].free_bytes().unwrap();
        let before = [free(0), free(1)];
        let keys: [ClientKeys; 2] = [&first, &second].map(|engine| asked.keys(&**engine).unwrap().unwrap());
        assert_eq!([&keys[0].devices[..], &keys[1].devices[..]], [[on(0)], [on(1)]]);
        let taken = [before[0] - free(0), before[1] - free(1)];
        assert!(taken[0] > 0 && taken[0] == taken[1], "{taken:?} bytes of one upload, on each device");

        let elsewhere = asked.keys(&*on_cpu).unwrap().unwrap();
        let [here, there] = keys;
        for (engine, own, others) in [(&first, &here, &there), (&second, &there, &here)] {
            for others in [others, &elsewhere] {
                for (index, keys) in [(0, [others, own]), (1, [own, others])] {
                    let keys = keys.map(|keys| Some(keys.clone()));
                    let refused = engine.answer(&asked.queries, &keys).unwrap_err();
                    assert!(matches!(refused, EngineError::Query { index: at, .. } if at == index));
                }
            }
            let only = &asked.queries[..1];
            let answer = engine.answer(only, &[Some(own.clone())]).unwrap();
            assert!(answer == on_cpu.answer(only, &[Some(elsewhere.clone())]).unwrap(), "{table:?}");
        }
    }
}

#[test]
fn a_lost_device_leaves_the_other_alone() {
    let folder = built((Protocol::Hybrid, 300));
    let ([first, second], devices, gpus) = on_each(&folder);
    let asked = folder.some(&*second, 2);
    devices[0].emulate_loss();
    assert!(matches!(folder.some(&*first, 1).answers(&*first), Err(EngineError::Lost { .. })));
    assert_eq!((first.lost().is_some(), second.lost()), (true, None));
    asked.check(&asked.answers(&*second).unwrap());
    let next = folder.open(&gpus).unwrap();
    assert_eq!((next.served().placement.to_string(), next.lost()), ("cuda:1".into(), None));
    asked.check(&asked.answers(&*next).unwrap());
}

/// How this test calls itself.
const VALUES: &str = "several::the_variable_says_how_many_are_emulated";

#[test]
fn the_variable_says_how_many_are_emulated() {
    if env::var_os(CUDA_VARIABLE).is_some() {
        match open_devices() {
            Ok(devices) => println!("{} devices: {}", devices.len(), devices[0].info().name),
            Err(error @ BackendError::Variable(_)) => println!("{error}"),
            Err(error) => panic!("{error}"),
        }
        return;
    }
    for (value, expected) in [
        ("emulator", "1 devices: emulator"),
        ("emulator:1", "1 devices: emulator"),
        ("emulator:2", "2 devices: emulator"),
        ("emulator:8", "8 devices: emulator"),
        ("emulator:3:64", "3 devices: emulator"),
        ("emulator:3:0", "HUSH_CUDA is 'emulator:3:0', which"),
        ("emulator:3:1:1", "HUSH_CUDA is 'emulator:3:1:1', which"),
        ("emulator:0", "HUSH_CUDA is 'emulator:0', which"),
        ("emulator:9", "HUSH_CUDA is 'emulator:9', which"),
        ("emulator:", "HUSH_CUDA is 'emulator:', which"),
        ("toaster:2", "HUSH_CUDA is 'toaster:2', which"),
        ("", "HUSH_CUDA is '', which"),
    ] {
        let mut program = Command::new(env::current_exe().unwrap());
        program.args(["--exact", "--nocapture", VALUES]).env(CUDA_VARIABLE, value);
        let Output { stdout, status, .. } = program.output().unwrap();
        let told = String::from_utf8(stdout).unwrap();
        assert!(status.success() && told.contains(expected), "{value}: {told}");
    }
}
