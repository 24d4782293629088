//! What the memory plan promises is kept.

use std::{path::Path, sync::Arc};

use hush_engine::{Backend, BackendChoice, Backends, Engine, OpenError, Silent, open};
use hush_protocol::table::Protocol;
use hush_store::snapshot::Verify;

use crate::place::{MIB, Place, TABLES, Told, cpu, device, on_cpu, on_gpu};

/// The engine on a device with so much memory, and room for the keys of so many clients, if batches of `batch` queries go there.
fn fits(
    target: &Path,
    (pooled, memory): (bool, usize),
    clients: usize,
    batch: usize,
) -> Option<Arc<dyn Engine>> {
    let gpu = Backends::with_device(BackendChoice::Cuda, cpu(), device(pooled, memory)).for_clients(clients);
    match open(target, Verify::Header, &gpu, &Silent) {
        Ok(engine) => (engine.max_batch() >= batch).then_some(engine),
        Err(OpenError::Memory(refused)) => {
            let text = refused.to_string();
            assert!(text.starts_with("the table needs ") && text.contains("(database "), "{text}");
            assert!(
                text.contains(" are free on emulator: use --backend cpu, or a table of at most"),
                "{text}"
            );
            None
        }
        Err(error) => panic!("with {memory} bytes: {error}"),
    }
}

/// The least memory in which that fits, to a 256th of it.
fn least_memory(target: &Path, pooled: bool, clients: usize, batch: usize) -> (usize, Arc<dyn Engine>) {
    let (mut memory, mut step) = (MIB / 64, 8);
    let mut least = None;
    while step <= 256 {
        match fits(target, (pooled, memory), clients, batch) {
            Some(engine) => {
                least = Some((memory, engine));
                step *= 2;
                memory -= memory / step;
            }
            None if least.is_none() => memory += memory / step,
            None => {
                step *= 2;
                memory += memory / step;
            }
        }
    }
    least.expect("it was left with one")
}

#[test]
fn what_the_plan_has_room_for_can_be_done() {
    for (protocol, bytes) in TABLES {
        let place = Place::new(protocol, bytes);
        let target = place.build("table", &on_cpu(), &Silent).unwrap();
        let on_cpu = open(&target, Verify::Header, &on_cpu(), &Silent).unwrap();
        let least = [(false, 1), (false, 3), (true, 1), (true, 3)].map(|(pooled, batch)| {
            let (memory, engine) = least_memory(&target, pooled, 1, batch);
            let most = engine.max_batch();
            assert!(most <= 4 + batch, "{protocol}: {most} queries in {memory} bytes");
            place.ask(&target, [&*engine, &*on_cpu], most);
            memory
        });
        assert!(least[2] > least[0] + least[0] / 16, "{protocol}: blocks are rounded up, and so is the plan");
        // A table that does not fit is the CPU's, where the choice is free.
        let told = Told::default();
        let engine = open(&target, Verify::Header, &on_gpu(BackendChoice::Auto, MIB / 64), &told).unwrap();
        assert_eq!((engine.backend(), engine.max_batch()), (Backend::Cpu, on_cpu.max_batch()));
        let notes = told.notes.into_inner().unwrap();
        assert!(notes.len() == 1 && notes[0].starts_with("on the CPU: the table needs "), "{notes:?}");
    }
}

#[test]
fn full_batches_fit_what_is_planned() {
    for (protocol, bytes) in [(Protocol::Hybrid, 300), (Protocol::Onion, 100)] {
        let place = Place::new(protocol, bytes);
        let target = place.build("table", &on_cpu(), &Silent).unwrap();
        let (_, engine) = least_memory(&target, false, 1, 64);
        assert_eq!(engine.max_batch(), 64, "{protocol}");
        place.ask(&target, [&*engine, &*engine], 64);
    }
}

#[test]
fn tables_share_a_device() {
    let place = Place::new(Protocol::Simple, 300);
    let target = place.build("table", &on_cpu(), &Silent).unwrap();
    let (memory, _) = least_memory(&target, false, 1, 1);
    let gpu = on_gpu(BackendChoice::Auto, 3 * memory);
    let open = || open(&target, Verify::Header, &gpu, &Silent).unwrap();
    let (mut tables, mut batches) = (Vec::new(), Vec::new());
    while tables.last().is_none_or(|table: &Arc<dyn Engine>| table.backend() == Backend::Cuda) {
        tables.push(open());
        batches.push(tables[tables.len() - 1].max_batch());
    }
    // Each leaves half of the room to the next.
    let on_gpu = tables.len() - 1;
    assert!(on_gpu >= 2, "{on_gpu} tables");
    assert!(batches[..on_gpu].is_sorted_by(|one, next| one > next), "{batches:?}");
    for table in &tables {
        place.ask(&target, [&**table, &*tables[0]], table.max_batch().min(8));
    }
}

#[test]
fn tables_that_are_closed_leave_nothing() {
    // The second one leaves a public matrix, too.
    for (protocol, bytes) in [(Protocol::Colpack, 300), (Protocol::Double, 2)] {
        let place = Place::new(protocol, bytes);
        let target = place.build("table", &on_cpu(), &Silent).unwrap();
        let device = device(true, 256 * MIB);
        let gpu = Backends::with_device(BackendChoice::Cuda, cpu(), device.clone());
        let all = device.free_bytes().unwrap();
        let tables = [(); 2].map(|()| open(&target, Verify::Header, &gpu, &Silent).unwrap());
        assert_eq!(device.kept_bytes(), 0, "nothing of the upload");
        place.ask(&target, [&*tables[0], &*tables[1]], 3);
        assert!(device.kept_bytes() > 0, "memory of batches is kept for the next");
        drop(tables);
        assert_eq!((device.kept_bytes(), device.free_bytes().unwrap()), (0, all), "{protocol}");
    }
}

/// The keys of clients are not there when a table is loaded, but their room is.
#[test]
fn keys_of_clients_have_their_room() {
    const CLIENTS: usize = 1000;
    let [keyed, other] = [(Protocol::Hybrid, 300), (Protocol::Simple, 300)].map(|(protocol, bytes)| {
        let place = Place::new(protocol, bytes);
        (place.build("table", &on_cpu(), &Silent).unwrap(), place)
    });
    // Nearly all of it is for keys.
    let (memory, _) = least_memory(&keyed.0, false, CLIENTS, 1);
    for choice in [BackendChoice::Auto, BackendChoice::Cuda] {
        let device = device(false, memory);
        let gpu = Backends::with_device(choice, cpu(), device.clone()).for_clients(CLIENTS);
        let first = open(&keyed.0, Verify::Header, &gpu, &Silent).unwrap();
        assert!(device.free_bytes().unwrap() > memory / 2, "keys are not there yet");
        let told = Told::default();
        match open(&other.0, Verify::Header, &gpu, &told) {
            Ok(second) => assert_eq!((choice, second.backend()), (BackendChoice::Auto, Backend::Cpu)),
            Err(error) => assert!(choice == BackendChoice::Cuda && matches!(error, OpenError::Memory(_))),
        }
        drop(first);
        let second = open(&other.0, Verify::Header, &gpu, &Silent).unwrap();
        assert_eq!(second.backend(), Backend::Cuda, "the room of a table that is closed is free");
    }
    // The same clients ask both: their keys have one room, where two would not fit.
    let gpu = Backends::with_device(BackendChoice::Cuda, cpu(), device(false, memory + memory / 2));
    let gpu = gpu.for_clients(CLIENTS);
    let (told, again) = (Told::default(), Told::default());
    let tables = [&told, &again].map(|told| open(&keyed.0, Verify::Header, &gpu, told).unwrap());
    let has_keys = |told: Told| told.notes.into_inner().unwrap().iter().any(|line| line.contains("keys"));
    assert_eq!([told, again].map(has_keys), [true, false]);
    keyed.1.ask(&keyed.0, [&*tables[0], &*tables[1]], 1);
}
