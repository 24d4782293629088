//! Tables that no device holds alone: in parts on several, with the answers of the whole table.

use std::sync::Arc;

use hush_cuda::{Cuda, device::Device};
use hush_engine::{BackendChoice, Backends, Engine, EngineError, MemoryPlan, OpenError, open};
use hush_protocol::{Protocol, share::Share};
use hush_store::snapshot::Verify;

use crate::{
    devices::{MIB, TABLES, cpu, device, on_cpu, on_gpu},
    tables::{Folder, Told, Wanted},
};

/// Tables of several units each, most of which are their parts'.
fn tables() -> impl Iterator<Item = Wanted> {
    TABLES.into_iter().chain([(Protocol::TfhePrivks, 20)]).map(|(protocol, bytes)| match protocol {
        Protocol::Double | Protocol::ExppackD => Wanted::by_index(protocol, 200_000, bytes, 700),
        Protocol::ExppackS | Protocol::DoublePack => Wanted::by_index(protocol, 1500, bytes, 10),
        _ => Wanted::by_index(protocol, 300, bytes, 10),
    })
}

/// Tables of several segments.
fn tiered() -> impl Iterator<Item = Wanted> {
    let tiered =
        [(Protocol::Simple, 100), (Protocol::Colpack, 100), (Protocol::Hybrid, 100), (Protocol::Tfhe, 100)];
    tiered.into_iter().map(|(protocol, columns)| Wanted {
        by_key: true,
        tiers: &[20, 60, 300],
        room: (protocol == Protocol::Colpack).then_some(20),
        ..Wanted::by_index(protocol, 2000, 0, columns)
    })
}

/// Memory of a device that lacks one byte for all of the table, with the keys of one client.
fn too_little(folder: &Folder) -> usize {
    let params = folder.descriptor().params().unwrap();
    let needed = MemoryPlan::of_share::<Cuda>(&params, &Share::whole(), true, 1).needed_bytes();
    // A 64th of it is left alone.
    needed + needed / 64
}

fn devices<const N: usize>(memory: [usize; N]) -> [Device; N] {
    memory.map(|memory| device(false, memory))
}

fn backends(choice: BackendChoice, devices: impl IntoIterator<Item = Device>) -> Backends {
    Backends::with_devices(choice, cpu(), devices).for_clients(1)
}

#[test]
fn a_table_that_no_device_holds_is_on_several() {
    for wanted in tables().chain(tiered()) {
        let folder = Folder::with_table(&on_cpu(), wanted);
        let on_cpu = folder.open(&on_cpu()).unwrap();
        let on_one = folder.open(&on_gpu(BackendChoice::Cuda, 1 << 30)).unwrap();
        let memory = too_little(&folder);
        for gpus in [
            backends(BackendChoice::Cuda, devices([memory; 2])),
            backends(BackendChoice::Auto, devices([memory; 3])),
        ] {
            let engine = folder.open(&gpus).unwrap_or_else(|error| panic!("{wanted:?}: {error}"));
            let placement = &engine.served().placement;
            assert!(placement.shares.len() >= 2, "{wanted:?}: {placement}");
            folder.ask([&*engine, &*on_cpu], 1);
            folder.ask([&*engine, &*on_one], 3.min(engine.served().max_batch));
        }
    }
}

/// Shares are as the memory is, and a device without room for anything has none.
#[test]
fn shares_follow_the_memory() {
    let folder = Folder::with_table(&on_cpu(), Wanted::by_index(Protocol::Simple, 4000, 300, 10));
    let on_cpu = folder.open(&on_cpu()).unwrap();
    let memory = too_little(&folder);
    let database = |told: &Told| -> Vec<String> {
        let notes = told.notes.lock().unwrap();
        notes.iter().filter(|line| line.starts_with("on ") || line.contains("database")).cloned().collect()
    };
    let gpus = backends(BackendChoice::Cuda, devices([memory / 2, 1 << 14, memory - memory / 8]));
    let told = Told::default();
    let engine = open(&folder.table(), Verify::Header, &gpus, &told).unwrap();
    assert_eq!(engine.served().placement.to_string(), "cuda:2+0");
    let lines = database(&told);
    let parts = ["on emulator (part 1 of 2), ", "on emulator (part 2 of 2), "];
    assert!(
        lines.len() == 4 && lines[0].starts_with(parts[0]) && lines[2].starts_with(parts[1]),
        "{lines:?}"
    );
    let kib = |line: &str| -> f64 {
        let mut words = line.split_whitespace().rev();
        let (unit, number) = (words.next().unwrap(), words.next().unwrap().parse::<f64>().unwrap());
        if unit == "MiB" { number * 1024.0 } else { number }
    };
    let ratio = kib(&lines[1]) / kib(&lines[3]);
    assert!((2.0..4.0).contains(&ratio), "{lines:?}");
    let [(stage, total, done)] = &told.stages.lock().unwrap()[..] else { panic!("one stage") };
    assert!(stage == "upload" && total == done && *total > 0);
    folder.ask([&*engine, &*on_cpu], engine.served().max_batch.min(3));
    // What is left on both goes to a table that fits one of them, or to none.
    drop(engine);
    let small = Folder::with_table(&self::on_cpu(), Wanted::by_index(Protocol::Simple, 75, 300, 10));
    assert_eq!(small.open(&gpus).unwrap().served().placement.to_string(), "cuda");
}

/// Returns the least memory of each of two devices in which the table fits, to a 64th of it, and the engine there.
fn least_memory(folder: &Folder, pooled: bool) -> (usize, Arc<dyn Engine>) {
    let (mut memory, mut step) = (MIB, MIB / 2);
    let mut least = None;
    while least.is_none() || step > memory / 64 {
        let devices = [(); 2].map(|()| device(pooled, memory));
        match folder.open(&backends(BackendChoice::Cuda, devices)) {
            Ok(engine) => {
                least = Some((memory, engine));
                memory -= step;
            }
            Err(OpenError::Memory(_)) => memory += step,
            Err(error) => panic!("{:?} with {memory} bytes: {error}", folder.wanted),
        }
        if least.is_some() {
            step /= 2;
        }
    }
    least.unwrap()
}

#[test]
fn what_the_plans_have_room_for_can_be_done() {
    for (number, wanted) in tables().enumerate() {
        let folder = Folder::with_table(&on_cpu(), wanted);
        let on_cpu = folder.open(&on_cpu()).unwrap();
        // Half of them where memory is rounded up, and kept for later.
        let (memory, engine) = least_memory(&folder, number % 2 == 1);
        assert_eq!(engine.served().placement.shares.len(), 2, "{wanted:?}: {memory} bytes");
        folder.ask([&*engine, &*on_cpu], engine.served().max_batch);
    }
}

#[test]
fn a_table_that_all_of_them_do_not_hold_is_refused_with_figures() {
    let folder = Folder::with_table(&on_cpu(), Wanted::by_index(Protocol::Colpack, 300, 300, 10));
    let few = || devices([too_little(&folder) / 4; 2]);
    let refused = folder.open(&backends(BackendChoice::Cuda, few())).err();
    let Some(OpenError::Memory(refused)) = refused else { panic!("{refused:?}") };
    let text = refused.to_string();
    assert!(text.starts_with("the table needs ") && text.contains(" of device memory (database "), "{text}");
    let told = " are free on emulator and emulator: use 'backend: cpu', or a table of at most about ";
    assert!(text.contains(told), "{text}");
    let told = Told::default();
    let engine = open(&folder.table(), Verify::Header, &backends(BackendChoice::Auto, few()), &told).unwrap();
    assert_eq!(engine.served().placement.to_string(), "cpu");
    let notes = told.notes.into_inner().unwrap();
    assert!(notes.len() == 1 && notes[0].starts_with("on the CPU: the table needs "), "{notes:?}");
}

#[test]
fn keys_are_on_every_device_of_the_table() {
    let folder = Folder::with_table(&on_cpu(), Wanted::by_index(Protocol::Hybrid, 300, 300, 10));
    let memory = too_little(&folder);
    let devices = devices([memory; 2]);
    let gpus = backends(BackendChoice::Cuda, devices.clone());
    let all = devices.each_ref().map(|device| device.free_bytes().unwrap());
    let engine = folder.open(&gpus).unwrap();
    assert_eq!(engine.served().keys.as_ref().unwrap().devices[..], [0, 1].map(hush_engine::Device::Gpu));
    let asked = folder.some(&*engine, 2);
    let before = devices.each_ref().map(|device| device.free_bytes().unwrap());
    let keys = asked.keys(&*engine).unwrap();
    let taken = [0, 1].map(|number| before[number] - devices[number].free_bytes().unwrap());
    assert!(taken[0] > 0 && taken[0] == taken[1], "{taken:?}");
    asked.check(&engine.answer(&asked.queries, &vec![keys.clone(); 2]).unwrap());
    let elsewhere = asked.keys(&*folder.open(&on_gpu(BackendChoice::Cuda, 1 << 30)).unwrap()).unwrap();
    let refused = engine.answer(&asked.queries, &[keys.clone(), elsewhere]).unwrap_err();
    assert!(matches!(refused, EngineError::Query { index: 1, .. }), "{refused}");
    // Nothing stays of a table that is closed.
    drop((engine, keys));
    assert_eq!(devices.each_ref().map(|device| device.free_bytes().unwrap()), all);
}

#[test]
fn a_lost_device_is_told_whichever_it_is() {
    for lost in [0, 1] {
        let folder = Folder::with_table(&on_cpu(), Wanted::by_index(Protocol::Colpack, 300, 300, 10));
        let devices = devices([too_little(&folder); 2]);
        let gpus = backends(BackendChoice::Auto, devices.clone());
        let engine = folder.open(&gpus).unwrap();
        let asked = folder.some(&*engine, 1);
        asked.check(&asked.answers(&*engine).unwrap());
        devices[lost].emulate_loss();
        assert_eq!(engine.lost(), None, "nobody has asked it for anything");
        let told = asked.answers(&*engine).unwrap_err();
        assert!(matches!(&told, EngineError::Lost { reason } if reason.contains("told to fail")), "{told}");
        assert!(engine.lost().is_some());
        // The next goes where there is room.
        assert_eq!(folder.open(&gpus).unwrap().served().placement.to_string(), "cpu");
    }
}
