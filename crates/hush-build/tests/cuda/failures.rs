//! A device that has no memory when it needs some, or fails for good.

use std::sync::{Arc, Mutex};

use hush_cuda::device::{Buffer, Device};
use hush_engine::{BackendChoice, Backends, Engine, EngineError, OpenError, Progress, open};
use hush_ops::OpsError;
use hush_protocol::{Protocol, ProtocolError};
use hush_store::snapshot::Verify;

use crate::{
    devices::{MIB, built, cpu, device, on_cpu, wanted},
    tables::{Folder, Told, Wanted, files},
};

/// A protocol whose clients have keys, and one of those whose clients have none.
const TABLES: [(Protocol, usize); 2] = [(Protocol::Hybrid, 300), (Protocol::Colpack, 300)];

/// Takes all memory that there is.
fn take_all(device: &Device) -> Vec<Buffer<u8>> {
    let (mut taken, mut bytes) = (Vec::new(), device.free_bytes().unwrap());
    while bytes >= 256 {
        match device.alloc(bytes) {
            Ok(buffer) => taken.push(buffer),
            Err(_) => bytes /= 2,
        }
    }
    taken
}

#[test]
fn a_batch_without_memory_fails_alone() {
    for table in TABLES {
        let folder = built(table);
        for pooled in [false, true] {
            let device = device(pooled, 256 * MIB);
            let gpu = Backends::with_devices(BackendChoice::Cuda, cpu(), [device.clone()]);
            let engine = folder.open(&gpu).unwrap();
            let asked = folder.some(&*engine, 2);
            asked.check(&asked.answers(&*engine).unwrap());
            let taken = take_all(&device);
            let failed = asked.answers(&*engine).unwrap_err();
            let EngineError::Internal(reason) = failed else { panic!("{failed:?}") };
            assert!(reason.contains("bytes of device memory are needed"), "{reason}");
            assert_eq!(engine.lost(), None);
            drop(taken);
            asked.check(&asked.answers(&*engine).unwrap());
        }
    }
}

#[test]
fn a_lost_device_is_told() {
    for table in TABLES {
        let folder = built(table);
        let device = device(false, 256 * MIB);
        let gpu = Backends::with_devices(BackendChoice::Auto, cpu(), [device.clone()]);
        let [engine, other] = [(); 2].map(|()| folder.open(&gpu).unwrap());
        let asked = folder.some(&*engine, 1);
        let keys = asked.keys(&*engine).unwrap();
        asked.check(&asked.answers(&*engine).unwrap());
        device.emulate_loss();
        assert_eq!((engine.lost(), other.lost()), (None, None), "nobody has asked it for anything");
        let first = asked.answers(&*engine).unwrap_err();
        let EngineError::Lost { reason } = &first else { panic!("{first:?}") };
        assert!(reason.contains("told to fail"), "{reason}");
        assert_eq!((engine.lost().as_ref(), other.lost().as_ref()), (Some(reason), Some(reason)));
        assert_eq!(asked.answers(&*other).unwrap_err(), first);
        if keys.is_some() {
            assert_eq!(asked.keys(&*other).err(), Some(first));
        }
        // A table that is opened now goes to the CPU, unless that is not wanted.
        let cuda = Backends::with_devices(BackendChoice::Cuda, cpu(), [device]);
        let refused = folder.open(&cuda).err();
        let Some(OpenError::Ops(error)) = refused else { panic!("{refused:?}") };
        assert!(error.to_string().contains("the GPU has failed"), "{error}");
        let next = folder.open(&gpu).unwrap();
        assert_eq!((next.served().placement.to_string(), next.lost()), ("cpu".into(), None));
        asked.check(&asked.answers(&*next).unwrap());
    }
}

/// Takes the device's memory when an upload begins.
struct Thief {
    device: Device,
    taken: Mutex<Vec<Buffer<u8>>>,
    told: Told,
}

impl Progress for Thief {
    fn start(&self, stage: &str, _: u64, _: &'static str) {
        assert_eq!(stage, "upload");
        self.taken.lock().unwrap().extend(take_all(&self.device));
    }

    fn advance(&self, _: u64) {}

    fn note(&self, line: &str) {
        self.told.note(line);
    }
}

#[test]
fn a_table_whose_memory_is_taken_goes_to_the_cpu() {
    let folder = built((Protocol::Colpack, 300));
    let on_cpu = folder.open(&on_cpu()).unwrap();
    for choice in [BackendChoice::Auto, BackendChoice::Cuda] {
        let device = device(true, 256 * MIB);
        let free = device.free_bytes().unwrap();
        let thief = Thief { device: device.clone(), taken: Mutex::default(), told: Told::default() };
        let gpu = Backends::with_devices(choice, cpu(), [device.clone()]);
        match open(&folder.table(), Verify::Header, &gpu, &thief) {
            Ok(engine) => {
                assert_eq!(
                    (choice, engine.served().placement.to_string()),
                    (BackendChoice::Auto, "cpu".into())
                );
                let notes = thief.told.notes.lock().unwrap().clone();
                let last = notes.last().unwrap();
                assert!(last.starts_with("on the CPU: the device failed: "), "{last}");
                assert!(last.contains("bytes of device memory are needed"), "{last}");
                folder.ask([&*engine, &*on_cpu], 2);
            }
            Err(OpenError::Ops(error)) => {
                assert_eq!(choice, BackendChoice::Cuda);
                assert!(error.to_string().contains("bytes of device memory are needed"), "{error}");
            }
            Err(error) => panic!("{error}"),
        }
        drop(thief);
        assert_eq!(device.free_bytes().unwrap(), free, "all memory is given back");
        let engine: Arc<dyn Engine> = folder.open(&gpu).unwrap();
        assert_eq!(engine.served().placement.to_string(), "cuda");
        folder.ask([&*engine, &*on_cpu], 2);
    }
}

/// Fails the device when a stage of its own begins.
struct Failing {
    device: Device,
    told: Told,
}

impl Progress for Failing {
    fn start(&self, stage: &str, total: u64, unit: &'static str) {
        if stage == "pack columns" {
            self.device.emulate_loss();
        }
        self.told.start(stage, total, unit);
    }

    fn advance(&self, units: u64) {
        self.told.advance(units);
    }

    fn note(&self, line: &str) {
        self.told.note(line);
    }
}

/// The units from which the CPU says that it resumes.
#[derive(Default)]
struct Resumed(Mutex<Vec<u64>>);

impl Progress for Resumed {
    fn start(&self, _: &str, _: u64, _: &'static str) {}

    fn advance(&self, _: u64) {}

    fn resume(&self, units: u64) {
        self.0.lock().unwrap().push(units);
    }
}

#[test]
fn the_cpu_goes_on_where_a_device_failed() {
    let folder = built((Protocol::Colpack, 300));
    let device = device(false, 256 * MIB);
    let gpu = Backends::with_devices(BackendChoice::Auto, cpu(), [device.clone()]);
    let failing = Failing { device, told: Told::default() };
    let error = folder.build("failed", &gpu, &failing).unwrap_err();
    assert!(error.to_string().contains("told to fail"), "{error}");
    let notes = failing.told.notes.into_inner().unwrap();
    assert!(notes.last().unwrap().contains("with 'backend: cpu', the build goes on"), "{notes:?}");
    let resumed = Resumed::default();
    let target = folder.build("failed", &on_cpu(), &resumed).unwrap();
    assert_eq!(resumed.0.into_inner().unwrap()[0], 75, "all records are laid out");
    assert!(files(&folder.table()) == files(&target));
}

/// Passes errors of the backend on unchanged, such as one of the masks of `colpack-s`, which its page has switched
/// while a table is opened.
#[test]
fn errors_of_the_backend_are_its_own_whichever_way_they_come() {
    let reason = OpsError::Backend { reason: "no memory".into() };
    let error = OpenError::from(ProtocolError::Ops(reason));
    assert!(matches!(error, OpenError::Ops(_)), "{error:?}");
}

#[test]
fn a_set_with_a_prime_of_32_bits_is_served_by_a_gpu() {
    let onion = Wanted { preset: Some("ONION_S"), ..wanted((Protocol::Onion, 100)) };
    let folder = Folder::with_table(&on_cpu(), onion);
    let gpu = Backends::with_devices(BackendChoice::Cuda, cpu(), [device(false, 1024 * MIB)]);
    let engine = folder.open(&gpu).unwrap();
    assert_eq!(engine.served().placement.to_string(), "cuda");
    let asked = folder.some(&*engine, 1);
    asked.check(&asked.answers(&*engine).unwrap());
}
