//! Copies and shares by choice: with the answers of one device, and what a lost device leaves.

use std::thread;

use hush_cuda::{
    Cuda,
    device::{Device, Emulation},
};
use hush_engine::{BackendChoice, Backends, EngineError, MemoryPlan, SpreadChoice, open};
use hush_protocol::{Protocol, share::Share};
use hush_store::snapshot::Verify;

use crate::{
    devices::{MIB, TABLES, built, cpu, device, on_cpu},
    tables::{Folder, Told, Wanted},
};

fn devices(count: usize, memory: usize) -> Vec<Device> {
    (0..count).map(|_| device(false, memory)).collect()
}

fn backends(spread: SpreadChoice, devices: &[Device]) -> Backends {
    let devices = devices.iter().cloned();
    Backends::with_devices(BackendChoice::Auto, cpu(), devices).for_clients(1).with_spread(spread)
}

/// The tables of all protocols, and one of several segments with room for changes.
fn tables() -> impl Iterator<Item = Folder> {
    let tiered = Wanted {
        by_key: true,
        tiers: &[20, 60, 300],
        room: Some(20),
        ..Wanted::by_index(Protocol::Colpack, 500, 0, 100)
    };
    let privks = Wanted::by_index(Protocol::TfhePrivks, 75, 20, 10);
    let others = [tiered, privks].map(|wanted| Folder::with_table(&on_cpu(), wanted));
    TABLES.into_iter().map(built).chain(others)
}

#[test]
fn copies_and_shares_answer_as_one_device_does() {
    for folder in tables() {
        let on_cpu = folder.open(&on_cpu()).unwrap();
        for (spread, count, between) in [(SpreadChoice::Replicate, 2, ","), (SpreadChoice::Shard, 3, "+")] {
            let engine = folder.open(&backends(spread, &devices(count, 256 * MIB))).unwrap();
            let numbers: Vec<_> = (0..count).map(|number| number.to_string()).collect();
            let placement = &engine.served().placement;
            let has_all = placement.to_string() == format!("cuda:{}", numbers.join(between));
            // A table of fewer units than devices is on as many.
            assert!(has_all || spread == SpreadChoice::Shard, "{:?}: {placement}", folder.wanted);
            for batch in [1, 3] {
                folder.ask([&*engine, &*on_cpu], batch.min(engine.served().max_batch));
            }
        }
    }
}

#[test]
fn large_batches_are_answered_by_copies_and_shares() {
    for protocol in [Protocol::Colpack, Protocol::Hybrid, Protocol::Onion] {
        let folder = built((protocol, 100));
        let on_cpu = folder.open(&on_cpu()).unwrap();
        for spread in [SpreadChoice::Replicate, SpreadChoice::Shard] {
            let engine = folder.open(&backends(spread, &devices(2, 2048 * MIB))).unwrap();
            assert!(engine.served().max_batch >= 32, "{protocol}: {}", engine.served().max_batch);
            folder.ask([&*engine, &*on_cpu], 32);
        }
    }
}

/// Returns the threads of expansion kernels that a device has run.
fn expanded(device: &Device) -> usize {
    let threads = device.emulated_threads().into_iter();
    threads.filter(|(kernel, _)| kernel.contains("expand")).map(|(_, threads)| threads).sum()
}

/// A device expands its own queries alone, unless a scan reads all and the link is slow. What devices exchange is words of the
/// first fold where each packs for its own queries, and expansions where all scan them.
#[test]
fn a_device_opens_its_own_queries() {
    const BATCH: usize = 4;
    for (protocol, bytes) in [
        (Protocol::ExppackD, 3),
        (Protocol::ExppackS, 100),
        (Protocol::DoublePack, 100),
        (Protocol::Hybrid, 300),
        (Protocol::Onion, 100),
        (Protocol::Tfhe, 20),
    ] {
        let columns = if protocol == Protocol::ExppackD { 20 } else { 10 };
        let folder = Folder::with_table(&on_cpu(), Wanted::by_index(protocol, 75, bytes, columns));
        let on_cpu = folder.open(&on_cpu()).unwrap();
        let run = |spread, count, batch, is_linked| {
            let asked = folder.some(&*on_cpu, batch);
            let emulation = Emulation { is_linked, ..Emulation::default() };
            let devices: Vec<_> =
                (0..count).map(|_| Device::emulated_with_memory(emulation, 256 * MIB)).collect();
            let engine = folder.open(&backends(spread, &devices)).unwrap();
            let keys = vec![asked.keys(&*engine).unwrap(); batch];
            let before: Vec<_> = devices.iter().map(expanded).collect();
            asked.check(&engine.answer(&asked.queries, &keys).unwrap());
            let threads: Vec<_> =
                devices.iter().zip(before).map(|(device, before)| expanded(device) - before).collect();
            (threads, devices.iter().map(Device::emulated_peer_bytes).sum::<usize>())
        };
        let (all, received) = run(SpreadChoice::One, 1, BATCH, true);
        let (half, _) = run(SpreadChoice::One, 1, BATCH / 2, true);
        assert!(all[0] > half[0] && received == 0);
        let (linked, by_link) = run(SpreadChoice::Shard, 2, BATCH, true);
        let (apart, by_bus) = run(SpreadChoice::Shard, 2, BATCH, false);
        assert_eq!(linked, [half[0]; 2], "{protocol}: each expands half");
        let params = folder.descriptor().params().unwrap();
        let placed = params.finished_by_query().unwrap_or(params);
        if placed.scans_expansions() {
            assert_eq!(apart, [all[0]; 2], "{protocol}: each expands all");
            assert!(by_link > 10 * by_bus, "{protocol}: {by_link} and {by_bus} bytes");
        } else {
            assert_eq!((&apart, by_link), (&linked, by_bus), "{protocol}: nothing of it depends on the link");
            // A word of every row that the other device has scanned, for its own queries.
            let words = placed.base().part(&(0..placed.base().facts().units)).words;
            assert_eq!(by_link, size_of::<u32>() * words * BATCH / 2, "{protocol}");
        }
    }
}

#[test]
fn keys_are_opened_where_they_are_used() {
    let folder = built((Protocol::Hybrid, 300));
    let devices = devices(2, 256 * MIB);
    let free = || [0, 1].map(|number: usize| devices[number].free_bytes().unwrap());
    let empty = free();
    let engine = folder.open(&backends(SpreadChoice::Replicate, &devices)).unwrap();
    let asked = folder.some(&*engine, 2);
    let before = free();
    let keys = vec![asked.keys(&*engine).unwrap(); 2];
    let taken = |before: [usize; 2]| [0, 1].map(|number| before[number] - free()[number]);
    let [first, second] = taken(before);
    assert!(first > 0 && second == 0, "{first} and {second}");
    asked.check(&engine.answer(&asked.queries, &keys).unwrap());
    assert_eq!(taken(before), [first, 0], "the first copy is free");
    // Both copies answer at once, sooner or later.
    while taken(before)[1] == 0 {
        thread::scope(|scope| {
            let batches = [(); 4].map(|()| scope.spawn(|| engine.answer(&asked.queries, &keys)));
            batches.into_iter().for_each(|batch| asked.check(&batch.join().unwrap().unwrap()));
        });
    }
    assert_eq!(taken(before), [first, first]);
    drop((engine, keys));
    assert_eq!(free(), empty, "nothing stays of a table that is closed");
}

#[test]
fn a_lost_copy_leaves_the_other_answering() {
    for table in [(Protocol::Colpack, 300), (Protocol::Hybrid, 300)] {
        for lost in [0, 1] {
            let folder = built(table);
            let devices = devices(2, 256 * MIB);
            let gpus = backends(SpreadChoice::Replicate, &devices);
            let engine = folder.open(&gpus).unwrap();
            let asked = folder.some(&*engine, 2);
            asked.check(&asked.answers(&*engine).unwrap());
            assert_eq!((engine.lost(), engine.degraded()), (None, None));
            devices[lost].emulate_loss();
            // More batches at once than copies: one of them is on the lost device, and is answered by the other.
            asked.check(&asked.answers(&*engine).unwrap());
            assert_eq!(engine.lost(), None);
            let degraded = engine.degraded().expect("a copy is lost");
            assert!(degraded.starts_with("1 of 2 GPUs with a copy have failed: "), "{degraded}");
            asked.check(&asked.answers(&*engine).unwrap());
            // The next epoch is on the device that works.
            let next = folder.open(&gpus).unwrap();
            let place = if lost == 0 { "cuda:1" } else { "cuda" };
            assert_eq!((next.served().placement.to_string(), next.degraded()), (place.into(), None));
            devices[1 - lost].emulate_loss();
            let told = asked.answers(&*engine).unwrap_err();
            assert!(
                matches!(&told, EngineError::Lost { reason } if reason.contains("told to fail")),
                "{told}"
            );
            assert!(engine.lost().is_some() && engine.degraded().is_none());
        }
    }
}

/// A device that fails while a copy is loaded does not take the table to the CPU.
#[test]
fn a_device_that_is_lost_before_gets_no_copy() {
    let folder = built((Protocol::Simple, 300));
    let devices = devices(3, 256 * MIB);
    let gpus = backends(SpreadChoice::Replicate, &devices);
    devices[1].emulate_loss();
    let engine = folder.open(&gpus).unwrap();
    assert_eq!(engine.served().placement.to_string(), "cuda:0,2");
    folder.ask([&*engine, &*folder.open(&on_cpu()).unwrap()], 1);
}

#[test]
fn the_choice_is_by_memory_and_by_times() {
    let folder = Folder::with_table(&on_cpu(), Wanted::by_index(Protocol::Simple, 4000, 300, 10));
    let params = folder.descriptor().params().unwrap();
    let needed = MemoryPlan::of_share::<Cuda>(&params, &Share::whole(), true, 1).needed_bytes();
    let placed = |spread, memory| {
        let gpus = backends(spread, &devices(2, memory));
        let told = Told::default();
        let engine = open(&folder.table(), Verify::Header, &gpus, &told).unwrap();
        (engine.served().placement.to_string(), told.notes.into_inner().unwrap())
    };
    for (spread, memory, expected) in [
        (SpreadChoice::Auto, 4 * needed, "cuda:0,1"),
        // Copies would leave no room for the next epoch, and shares of a small table shorten nothing.
        (SpreadChoice::Auto, 2 * needed, "cuda"),
        (SpreadChoice::Replicate, 2 * needed, "cuda:0,1"),
        (SpreadChoice::One, 4 * needed, "cuda"),
        (SpreadChoice::Shard, 4 * needed, "cuda:0+1"),
        // No choice helps where only shares fit.
        (SpreadChoice::One, needed - needed / 8, "cuda:0+1"),
    ] {
        let (place, notes) = placed(spread, memory);
        assert_eq!(place, expected, "{spread} in {memory} of {needed} bytes: {notes:?}");
    }
    let (place, notes) = placed(SpreadChoice::Replicate, needed - needed / 8);
    assert_eq!(place, "cuda:0+1");
    let told = "spread: replicate is not done: fewer than two GPUs have room for the table";
    assert!(notes.iter().any(|note| note == told), "{notes:?}");
}
