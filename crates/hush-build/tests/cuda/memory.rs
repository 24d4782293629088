//! Tests that the promises of the memory plan are kept.

use std::sync::Arc;

use hush_cuda::{Cuda, footprint::SymbolsOnHost};
use hush_engine::{BackendChoice, Backends, Engine, MemoryPlan, OpenError, open};
use hush_protocol::{Protocol, facts::DbForm, share::Share};
use hush_store::snapshot::Verify;

use crate::{
    devices::{MIB, TABLES, built, cpu, device, on_cpu, on_gpu},
    tables::{Folder, Told, Wanted},
};

/// Returns the engine on a device with so much memory, and room for the keys of so many clients, if batches of `batch` queries
/// go there.
fn fits(
    folder: &Folder,
    (pooled, memory): (bool, usize),
    clients: usize,
    batch: usize,
) -> Option<Arc<dyn Engine>> {
    let gpu =
        Backends::with_devices(BackendChoice::Cuda, cpu(), [device(pooled, memory)]).for_clients(clients);
    match folder.open(&gpu) {
        Ok(engine) => (engine.served().max_batch >= batch).then_some(engine),
        Err(OpenError::Memory(refused)) => {
            let text = refused.to_string();
            assert!(text.starts_with("the table needs ") && text.contains("(database "), "{text}");
            // Where most of it is keys, fewer clients help, and not a smaller table.
            let instead = [
                "use 'backend: cpu', or a table of at most",
                "have memory for fewer clients' keys with 'open-keys: N'",
            ];
            assert!(
                instead.iter().any(|instead| text.contains(&format!(" are free on emulator: {instead}"))),
                "{text}"
            );
            None
        }
        Err(error) => panic!("with {memory} bytes: {error}"),
    }
}

/// Returns the least memory in which that fits, to a 256th of it.
pub(crate) fn least_memory(
    folder: &Folder,
    pooled: bool,
    clients: usize,
    batch: usize,
) -> (usize, Arc<dyn Engine>) {
    let (mut memory, mut step) = (MIB / 64, 8);
    let mut least = None;
    while step <= 256 {
        match fits(folder, (pooled, memory), clients, batch) {
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
        let folder = built((protocol, bytes));
        let on_cpu = folder.open(&on_cpu()).unwrap();
        let least = [(false, 1), (false, 3), (true, 1), (true, 3)].map(|(pooled, batch)| {
            let (memory, engine) = least_memory(&folder, pooled, 1, batch);
            let most = engine.served().max_batch;
            // Batches of colpack-s take least, of which one more has room where a database was on its way.
            let spare = if protocol == Protocol::ColpackS { 5 } else { 4 };
            assert!(most <= spare + batch, "{protocol}: {most} queries in {memory} bytes");
            folder.ask([&*engine, &*on_cpu], most);
            memory
        });
        assert!(least[2] > least[0] + least[0] / 16, "{protocol}: blocks are rounded up, and so is the plan");
        // A table that does not fit is the CPU's, where the choice is free.
        let told = Told::default();
        let engine =
            open(&folder.table(), Verify::Header, &on_gpu(BackendChoice::Auto, MIB / 64), &told).unwrap();
        assert_eq!(
            (engine.served().placement.to_string(), engine.served().max_batch),
            ("cpu".into(), on_cpu.served().max_batch)
        );
        let notes = told.notes.into_inner().unwrap();
        assert!(notes.len() == 1 && notes[0].starts_with("on the CPU: the table needs "), "{notes:?}");
    }
}

/// A table of symbols goes where there is no room for it, column after column for every batch.
#[test]
fn symbols_may_stay_on_the_host() {
    // More columns than two batches copy at once.
    let symbols = Wanted { form: Some(DbForm::Symbols), ..Wanted::by_index(Protocol::Tfhe, 16_000, 120, 8) };
    let stored = 16_000 * 128;
    let folder = Folder::with_table(&on_cpu(), symbols);
    let on_cpu = folder.open(&on_cpu()).unwrap();
    let params = folder.descriptor().params().unwrap();
    let streaming = MemoryPlan::of_share::<SymbolsOnHost>(&params, &Share::whole(), true, 1).needed_bytes();
    let resident = MemoryPlan::of_share::<Cuda>(&params, &Share::whole(), true, 1).needed_bytes();
    assert!(streaming + stored / 3 < resident);
    for (free, stays) in [(streaming, true), (resident, false)] {
        // A part of a device's memory is left alone.
        let (told, device) = (Told::default(), device(false, free + free / 63 + 64));
        let gpu = Backends::with_devices(BackendChoice::Cuda, cpu(), [device.clone()]).for_clients(1);
        let engine = open(&folder.table(), Verify::Header, &gpu, &told).unwrap();
        assert_eq!(engine.served().placement.to_string(), "cuda");
        let notes = told.notes.into_inner().unwrap();
        let is_told = notes.iter().any(|note| note.starts_with("its symbols stay in the host's memory: "));
        assert_eq!(is_told, stays, "{notes:?}");
        assert_eq!(notes.iter().any(|note| note.starts_with("  database ")), !stays, "{notes:?}");
        assert_eq!(device.uploaded_bytes() >= stored as u64, !stays);
        folder.ask([&*engine, &*on_cpu], 1);
    }
}

/// Several devices share the copying of symbols, if they have no room for them together either.
#[test]
fn symbols_on_the_host_are_copied_to_several_devices() {
    let symbols = Wanted { form: Some(DbForm::Symbols), ..Wanted::by_index(Protocol::Tfhe, 64_000, 120, 8) };
    let folder = Folder::with_table(&on_cpu(), symbols);
    let params = folder.descriptor().params().unwrap();
    let halves = [0, 1].map(|index| Share { index, weights: vec![1, 1] });
    let half = |share| MemoryPlan::of_share::<SymbolsOnHost>(&params, share, true, 1).needed_bytes();
    let most = halves.iter().map(half).max().unwrap();
    let devices = [(); 2].map(|()| device(false, most + most / 63 + 64));
    let gpus = Backends::with_devices(BackendChoice::Cuda, cpu(), devices).for_clients(1);
    let engine = folder.open(&gpus).unwrap();
    let placement = &engine.served().placement;
    let is_streamed = placement.shares.iter().all(|placed| placed.is_streamed);
    assert!(placement.to_string() == "cuda:0+1" && is_streamed, "{placement}");
    folder.ask([&*engine, &*folder.open(&on_cpu()).unwrap()], 1);
}

#[test]
fn full_batches_fit_what_is_planned() {
    for (protocol, bytes) in [(Protocol::Hybrid, 300), (Protocol::Onion, 100)] {
        let folder = built((protocol, bytes));
        let (_, engine) = least_memory(&folder, false, 1, 16);
        assert_eq!(engine.served().max_batch, 16, "{protocol}");
        folder.ask([&*engine, &*engine], 16);
    }
}

#[test]
fn tables_share_a_device() {
    let folder = built((Protocol::Simple, 300));
    let (memory, _) = least_memory(&folder, false, 1, 1);
    let gpu = on_gpu(BackendChoice::Auto, 3 * memory);
    let (mut tables, mut batches) = (Vec::new(), Vec::new());
    while tables.last().is_none_or(|table: &Arc<dyn Engine>| table.served().placement.to_string() == "cuda") {
        tables.push(folder.open(&gpu).unwrap());
        batches.push(tables[tables.len() - 1].served().max_batch);
    }
    // Each leaves half of the room to the next.
    let on_gpu = tables.len() - 1;
    assert!(on_gpu >= 2, "{on_gpu} tables");
    assert!(batches[..on_gpu].is_sorted_by(|one, next| one > next), "{batches:?}");
    for table in &tables {
        folder.ask([&**table, &*tables[0]], table.served().max_batch.min(8));
    }
}

#[test]
fn tables_that_are_closed_leave_nothing() {
    // The second one leaves a public matrix, too.
    for (protocol, bytes) in [(Protocol::Colpack, 300), (Protocol::Double, 2)] {
        let folder = built((protocol, bytes));
        let device = device(true, 256 * MIB);
        let gpu = Backends::with_devices(BackendChoice::Cuda, cpu(), [device.clone()]);
        let all = device.free_bytes().unwrap();
        let tables = [(); 2].map(|()| folder.open(&gpu).unwrap());
        assert_eq!(device.kept_bytes(), 0, "nothing of the upload");
        folder.ask([&*tables[0], &*tables[1]], 3);
        assert!(device.kept_bytes() > 0, "memory of batches is kept for the next");
        drop(tables);
        assert_eq!((device.kept_bytes(), device.free_bytes().unwrap()), (0, all), "{protocol}");
    }
}

/// The keys of clients are not there when a table is loaded, but their room is.
#[test]
fn keys_of_clients_have_their_room() {
    const CLIENTS: usize = 1000;
    let [keyed, other] = [(Protocol::Hybrid, 300), (Protocol::Simple, 300)].map(built);
    // Nearly all of it is for keys.
    let (memory, _) = least_memory(&keyed, false, CLIENTS, 1);
    for choice in [BackendChoice::Auto, BackendChoice::Cuda] {
        let device = device(false, memory);
        let gpu = Backends::with_devices(choice, cpu(), [device.clone()]).for_clients(CLIENTS);
        let first = keyed.open(&gpu).unwrap();
        assert!(device.free_bytes().unwrap() > memory / 2, "keys are not there yet");
        let told = Told::default();
        match open(&other.table(), Verify::Header, &gpu, &told) {
            Ok(second) => {
                assert_eq!(
                    (choice, second.served().placement.to_string()),
                    (BackendChoice::Auto, "cpu".into())
                )
            }
            Err(error) => assert!(choice == BackendChoice::Cuda && matches!(error, OpenError::Memory(_))),
        }
        drop(first);
        let second = other.open(&gpu).unwrap();
        assert_eq!(
            second.served().placement.to_string(),
            "cuda",
            "the room of a table that is closed is free"
        );
    }
    // The same clients ask both: their keys have one room, where two would not fit.
    let gpu = Backends::with_devices(BackendChoice::Cuda, cpu(), [device(false, memory + memory / 2)]);
    let gpu = gpu.for_clients(CLIENTS);
    let (told, again) = (Told::default(), Told::default());
    let tables = [&told, &again].map(|told| open(&keyed.table(), Verify::Header, &gpu, told).unwrap());
    let have_keys = [told, again]
        .map(|told: Told| told.notes.into_inner().unwrap().iter().any(|line| line.contains("keys")));
    assert_eq!(have_keys, [true, false]);
    keyed.ask([&*tables[0], &*tables[1]], 1);
}
