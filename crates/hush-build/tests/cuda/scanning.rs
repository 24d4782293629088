//! Parts on devices, whose answers are finished elsewhere.

use hush_cuda::Cuda;
use hush_engine::{
    BackendChoice, Backends, EngineError, MemoryPlan,
    parts::{Share, open_part},
};
use hush_protocol::Protocol;

use crate::{
    devices::{MIB, TABLES, cpu, device, on_cpu, on_gpu, wanted},
    tables::{
        Folder, Told, Wanted,
        here::{Here, head, source},
    },
};

const WEIGHTS: [u32; 2] = [2, 1];

fn share(index: usize) -> Share {
    Share { index, weights: WEIGHTS.to_vec() }
}

/// Returns the bytes of a device that lacks one byte for the part `index`, with a 64th of them left alone.
fn too_little(folder: &Folder, index: usize) -> usize {
    let params = folder.descriptor().params().unwrap();
    let needed = MemoryPlan::of_share::<Cuda>(&params, &share(index), false, 1).needed_bytes();
    needed + needed / 64
}

/// Batches that are longer than a device has memory for are scanned some queries after others.
#[test]
fn parts_on_devices_answer_as_the_whole_table_does() {
    let tiered = [Protocol::Colpack, Protocol::Tfhe].map(|protocol| Wanted {
        by_key: true,
        tiers: &[20, 60, 300],
        ..Wanted::by_index(protocol, 700, 0, 20)
    });
    let cpu = on_cpu();
    for wanted in TABLES.into_iter().map(wanted).chain(tiered) {
        let folder = Folder::with_table(&cpu, wanted);
        let whole = folder.open(&cpu).unwrap();
        let asked = folder.some(&*whole, 5);
        let theirs = asked.answers(&*whole).unwrap();
        for is_tight in [false, true] {
            let part = |index| {
                // Room for a batch of one or two.
                let memory = if is_tight { too_little(&folder, index) + MIB / 16 } else { 1 << 30 };
                let gpu = on_gpu(BackendChoice::Cuda, memory).for_clients(1);
                open_part(&source(&folder), &share(index), &gpu, &Told::default()).unwrap()
            };
            let workers = Here::of(vec![part(0), part(1)]);
            assert_eq!(workers.parts[0].device().to_string(), "cuda", "{wanted:?}");
            let ours = asked.answers(&*head(&folder, &workers, &cpu)).unwrap();
            assert!(ours == theirs, "{wanted:?}");
        }
    }
}

#[test]
fn a_part_that_has_no_room_is_on_the_cpu_or_refused() {
    let folder = Folder::with_table(&on_cpu(), Wanted::by_index(Protocol::Colpack, 300, 300, 10));
    let backends = |choice| {
        let device = device(false, too_little(&folder, 0));
        Backends::with_devices(choice, cpu(), [device]).for_clients(1)
    };
    let told = Told::default();
    let part = open_part(&source(&folder), &share(0), &backends(BackendChoice::Auto), &told).unwrap();
    assert_eq!((part.device().to_string(), part.lost()), ("cpu".into(), None));
    let notes = told.notes.into_inner().unwrap();
    assert!(notes.len() == 1 && notes[0].starts_with("on the CPU: the part needs "), "{notes:?}");
    let refused = open_part(&source(&folder), &share(0), &backends(BackendChoice::Cuda), &Told::default());
    let refused = refused.err().unwrap().to_string();
    assert!(refused.starts_with("the part needs ") && refused.ends_with("or no GPUs for them"), "{refused}");
    // The other one is smaller.
    let part = open_part(&source(&folder), &share(1), &backends(BackendChoice::Cuda), &Told::default());
    assert_eq!(part.unwrap().device().to_string(), "cuda");
}

#[test]
fn a_part_on_a_lost_device_says_so() {
    let folder = Folder::with_table(&on_cpu(), Wanted::by_index(Protocol::Hybrid, 300, 300, 10));
    let device = device(false, 1 << 30);
    let gpu = Backends::with_devices(BackendChoice::Cuda, cpu(), [device.clone()]);
    let workers = Here::open(&folder, &WEIGHTS, &gpu);
    let head = head(&folder, &workers, &on_cpu());
    let asked = folder.some(&*head, 1);
    asked.check(&asked.answers(&*head).unwrap());
    device.emulate_loss();
    assert_eq!(workers.parts[0].lost(), None, "nobody has asked it for anything");
    let told = asked.answers(&*head).unwrap_err();
    assert!(matches!(&told, EngineError::Internal(reason) if reason.contains("told to fail")), "{told}");
    assert!(workers.parts.iter().all(|part| part.lost().is_some()));
}
