//! Memory, copies and launches, in the emulator and on a GPU.

use crate::{
    coverage,
    devices::{devices, gpu, pairs, small},
};
use hush_cuda::{
    Cuda,
    device::{Arg, Buffer, CudaError, Device, Emulation, Launch, PeerCopy},
    fill_random,
};
use hush_ops::{
    OpsError,
    contract::{Memory, WordCopy},
};

fn words(device: &Device, buffer: &Buffer<u32>) -> Vec<u32> {
    device.download(&buffer.slice(..)).expect("it was uploaded")
}

#[test]
fn what_is_uploaded_comes_back() {
    for device in devices() {
        for len in [0usize, 1, 63, 64, 100_000, 5 << 20] {
            let host: Vec<u32> = (0..len as u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
            let buffer = device.upload(&host).expect("there is room");
            assert_eq!(words(&device, &buffer), host);
            let copy = device.zeroed::<u32>(len).expect("there is room");
            assert!(words(&device, &copy).iter().all(|&word| word == 0));
            device
                .copy(&buffer.slice(len / 3..), &copy.slice(..len - len / 3))
                .expect("the lengths are equal");
            let copied = words(&device, &copy);
            assert_eq!(copied[..len - len / 3], host[len / 3..]);
            assert!(copied[len - len / 3..].iter().all(|&word| word == 0));
        }
        assert_eq!(device.uploaded_bytes(), 4 * (1 + 63 + 64 + 100_000 + (5 << 20)));
    }
}

#[test]
fn memory_is_given_back() {
    // A small one: what is allocated in the emulator is written to.
    let emulated = Device::emulated_with_memory(Emulation::default(), 64 << 20);
    for device in [emulated].into_iter().chain(gpu()) {
        let free = device.free_bytes().expect("the device is there");
        for _ in 0..66 {
            let buffer = device.alloc::<u8>(free / 64).expect("a part of what is free");
            assert_eq!(buffer.len(), free / 64);
        }
        device.release_unused();
    }
}

/// Queued work has its memory until it is done, though nobody holds the buffer any more and the pool gives everything back.
#[test]
fn memory_goes_back_when_work_on_it_is_done() {
    for device in devices() {
        let from = device.upload(&[7u32; 1000]).expect("there is room");
        let to = device.zeroed::<u32>(1000).expect("there is room");
        device.copy(&from.slice(..), &to.slice(..)).expect("the lengths are equal");
        drop(from);
        device.release_unused();
        assert_eq!(words(&device, &to), [7; 1000]);
    }
}

#[test]
fn too_much_memory_is_refused_with_figures() {
    for device in devices() {
        let wanted = 2 * device.info().memory_bytes;
        match device.alloc::<u8>(wanted) {
            Err(CudaError::OutOfMemory { wanted: told, free }) => {
                assert!(told >= wanted && free <= device.info().memory_bytes);
            }
            other => panic!("{other:?}"),
        }
        device.alloc::<u8>(1 << 20).expect("the device is as before");
    }
}

#[test]
fn kernels_are_launched_by_name() {
    for device in devices() {
        for len in [1usize, 255, 256, 70_000] {
            let buffer = device.zeroed::<u32>(len + 1).expect("there is room");
            fill_random(&device, &buffer.slice(..len), 7, 0).expect("it runs");
            let first = words(&device, &buffer);
            assert_eq!(first[len], 0, "beyond the end");
            assert!(first[..len].iter().filter(|&&word| word == 0).count() <= 1);
            fill_random(&device, &buffer.slice(..len), 8, 1000).expect("it runs");
            assert!(words(&device, &buffer)[..len].iter().all(|&word| word < 1000));
        }
        // SAFETY: there is no such kernel that could do anything.
        let launch = |blocks| unsafe { device.launch_kernel("no_such_kernel", Launch::new(blocks, 1), &[]) };
        assert_eq!(launch(1), Err(CudaError::NoKernel("no_such_kernel")));
        assert_eq!(launch(0), Ok(()), "no blocks, no work");
    }
}

/// A block of more threads than any device has: the launch fails, and leaves the device as it was.
#[test]
fn a_launch_that_cannot_be_is_refused() {
    for device in devices() {
        let out = device.zeroed::<u32>(256).expect("there is room");
        // SAFETY: it is not launched.
        let refused =
            unsafe { device.launch_kernel("conform_barriers", Launch::new(1, 2048), &[(&out).into(); 2]) };
        match refused {
            Err(CudaError::Driver { call, reason }) => {
                assert!(call.contains("conform_barriers"), "{call}");
                let emulated = device.info().name == "emulator";
                assert_eq!(reason.contains("breaks a rule of CUDA"), emulated, "{reason}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(device.lost(), None);
        assert_eq!(words(&device, &out), [0; 256]);
    }
}

#[test]
fn a_lost_device_stays_lost() {
    let device = Device::emulated(Emulation::default());
    let (same, buffer) = (device.clone(), device.upload(&[1u32, 2, 3]).expect("there is room"));
    device.emulate_loss();
    assert_eq!(device.lost(), None, "nobody has asked it for anything");
    let first = device.download(&buffer.slice(..));
    let Err(CudaError::Lost { ref reason }) = first else { panic!("{first:?}") };
    assert!(reason.contains("it was told to fail"), "{reason}");
    assert_eq!((device.lost(), same.lost()), (Some(&reason[..]), Some(&reason[..])));
    let lost =
        |outcome: Result<(), CudaError>| assert_eq!(outcome, Err(CudaError::Lost { reason: reason.clone() }));
    lost(same.alloc::<u8>(1).map(drop));
    lost(same.upload(&[1u8]).map(drop));
    lost(same.clear(&buffer.slice(..)));
    lost(same.copy(&buffer.slice(..1), &buffer.slice(1..2)));
    lost(fill_random(&same, &buffer.slice(..), 7, 0));
    lost(same.free_bytes().map(drop));
    lost(same.synchronize());
}

#[test]
fn words_are_kept_read_and_joined() {
    for device in devices() {
        let cuda = Cuda::new(device);
        let [x, y] = [vec![1, 2, 3], vec![4, 5]].map(|words| cuda.keep(words).expect("there is room"));
        let joined = cuda.join(&[(&y, 1..2), (&x, 0..3), (&x, 1..1), (&x, 1..2)]).expect("they are ranges");
        assert_eq!(cuda.read(&joined).expect("it is there")[..], [5, 1, 2, 3, 2]);
        assert!(matches!(cuda.join(&[(&x, 0..4)]), Err(OpsError::Shape { .. })));
    }
}

/// The copy is of what the memory is at that place of the work of its device: what is done there later waits for it.
#[test]
fn words_go_from_one_device_to_another() {
    for [one, other] in pairs() {
        for (from, to) in [(&one, &other), (&other, &one), (&one, &one)] {
            for len in [0, 1, 1000, 300_000] {
                let (words_there, words_here) =
                    (from.upload(&vec![7u32; len]).unwrap(), to.zeroed(len).unwrap());
                let copy = PeerCopy {
                    from: (from, words_there.slice(len / 3..)),
                    to: (to, words_here.slice(..len - len / 3)),
                };
                Device::exchange(&[copy]).unwrap();
                drop(words_there);
                // Where memory is kept, this is the same.
                let again = from.upload(&vec![9u32; len]).unwrap();
                from.synchronize().unwrap();
                let copied = words(to, &words_here);
                assert!(copied[..len - len / 3].iter().all(|&word| word == 7), "{len} words");
                assert!(copied[len - len / 3..].iter().all(|&word| word == 0), "{len} words");
                assert_eq!(words(from, &again), vec![9; len]);
            }
        }
        let [here, there] = [one, other].map(Cuda::new);
        let kept = there.keep(vec![1, 2, 3]).unwrap();
        let own = here.keep(vec![4]).unwrap();
        let copy = |from, words, range, to| WordCopy { from, words, range, to };
        let copies = [
            copy(1, &kept, 1..3, 0),
            copy(0, &own, 0..1, 1),
            copy(0, &own, 1..1, 1),
            copy(1, &kept, 0..3, 1),
        ];
        let copied = Memory::exchange(&[&here, &there], &copies).unwrap();
        drop((kept, own));
        let words = |cuda: &Cuda, index: usize| cuda.read(&copied[index]).unwrap().into_owned();
        assert_eq!(
            [words(&here, 0), words(&there, 1), words(&there, 2), words(&there, 3)],
            [vec![2, 3], vec![4], vec![], vec![1, 2, 3]]
        );
    }
}

#[test]
fn memory_of_another_device_is_refused() {
    for [one, other] in pairs() {
        let [own, others] = [&one, &other].map(|device| device.upload(&[1u32; 64]).unwrap());
        let refused = |outcome: Result<(), CudaError>, named: &str| match outcome {
            Err(CudaError::OtherDevice { call }) => assert_eq!(call, named),
            outcome => panic!("{named}: {outcome:?}"),
        };
        let (own, others) = (own.slice(..), others.slice(..));
        refused(one.clear(&others), "setting memory to zeros");
        refused(one.upload_into(&[0; 64], &others), "an upload");
        refused(one.download(&others).map(drop), "a download");
        refused(one.copy(&own, &others), "a copy");
        refused(one.copy(&others, &own), "a copy");
        for words in [own, others] {
            let copy = PeerCopy { from: (&other, words), to: (&one, words) };
            refused(Device::exchange(&[copy]), "a copy between devices");
        }
        refused(one.address(&others).map(drop), "a table of addresses");
        refused(fill_random(&one, &others, 7, 0), "launch of fill_random");
        let table = [others.address()];
        let view = Arg::of(&table).pointing_into(&others);
        // SAFETY: it is not launched.
        refused(
            unsafe { one.launch_kernel("fill_random", Launch::new(1, 32), &[view]) },
            "launch of fill_random",
        );
        assert_eq!(
            (one.download(&own).unwrap(), other.download(&others).unwrap()),
            (vec![1; 64], vec![1; 64])
        );
    }
}

#[test]
fn a_lost_device_gives_nothing_to_another() {
    let [one, other] = pairs().swap_remove(0);
    let [here, there] = [&one, &other].map(|device| device.upload(&[1u32; 64]).unwrap());
    other.emulate_loss();
    let copy = PeerCopy { from: (&other, there.slice(..)), to: (&one, here.slice(..)) };
    let copied = Device::exchange(&[copy]);
    assert!(matches!(copied, Err(CudaError::Lost { .. })), "{copied:?}");
    assert_eq!((one.lost(), other.lost().is_some()), (None, true));
    assert_eq!(words(&one, &here), [1; 64]);
}

/// Runs under the sanitizers.
#[test]
fn small_memory() {
    let devices = small();
    for device in &devices {
        let buffer = device.upload(&[7u32; 300]).expect("there is room");
        fill_random(device, &buffer.slice(1..299), 7, 0).expect("it runs");
        let filled = words(device, &buffer);
        assert_eq!([filled[0], filled[299]], [7; 2], "beyond the ends");
    }
    coverage::assert_launched(&devices, coverage::MEMORY);
}
