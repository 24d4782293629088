//! Every wrapped primitive by itself: a GPU must give what the emulator gives, byte for byte. Where the emulator's reading of PTX
//! is wrong, this is the first test that fails.

mod devices;

use devices::devices;
use hush_cuda::device::{Arg, Buffer, Device, Launch};
use hush_math::csprng::Csprng;

/// A kernel of `kernels/conformance*.cu`, whose comments have its shapes. All of it in words.
struct Case {
    kernel: &'static str,
    launch: Launch,
    out: usize,
    inputs: Vec<usize>,
    /// A last argument.
    number: Option<u32>,
}

impl Case {
    fn new(
        kernel: &'static str,
        (blocks, threads, shared): (u32, u32, usize),
        out: usize,
        inputs: &[usize],
    ) -> Self {
        let launch = Launch::new(blocks, threads).shared(shared);
        Self { kernel, launch, out, inputs: inputs.to_vec(), number: None }
    }

    /// Returns the output on a device, for inputs drawn from a seed.
    fn run(&self, device: &Device, seed: u64) -> Vec<u32> {
        let mut rng = Csprng::insecure_from_seed(seed);
        let inputs: Vec<Buffer<u32>> = self
            .inputs
            .iter()
            .map(|&len| device.upload(&words(len, seed, &mut rng)).expect("there is room"))
            .collect();
        let out = device.zeroed::<u32>(self.out).expect("there is room");
        let mut args: Vec<Arg<'_>> = vec![(&out).into()];
        args.extend(inputs.iter().map(Arg::from));
        args.extend(self.number.map(Arg::from));
        // SAFETY: the case has what its kernel's comment asks for.
        unsafe { device.launch_kernel(self.kernel, self.launch, &args) }.expect("it is launched");
        device.download(&out.slice(..)).expect("it has run")
    }
}

/// Random words; with some seeds words of extreme bytes, at which sums wrap.
fn words(len: usize, seed: u64, rng: &mut Csprng) -> Vec<u32> {
    let mut words = vec![0; len];
    match seed % 4 {
        1 => words.fill(0xffff_ffff),
        2 => words.fill(0x8080_8080),
        3 => words
            .iter_mut()
            .enumerate()
            .for_each(|(i, word)| *word = if i % 3 == 0 { 0x7f7f_7f7f } else { !0 }),
        _ => rng.fill_u32(&mut words),
    }
    words
}

/// Runs all cases on all devices that have their primitives, the first of which is the emulator in order.
fn check(cases: &[Case], on: impl Fn(&Device) -> bool) {
    let devices: Vec<Device> = devices().into_iter().filter(on).collect();
    for case in cases {
        for seed in 0..8 {
            let expected = case.run(&devices[0], seed);
            for device in &devices[1..] {
                let actual = case.run(device, seed);
                let differs = expected.iter().zip(&actual).position(|(expected, actual)| expected != actual);
                assert_eq!(
                    differs,
                    None,
                    "{} of seed {seed} on {}: first word",
                    case.kernel,
                    device.info().name
                );
            }
        }
    }
}

#[test]
fn primitives_of_every_gpu() {
    let mma = |kernel| Case::new(kernel, (1, 32, 0), 128, &[320]);
    let cases = [
        mma("conform_mma_s8u8"),
        mma("conform_mma_u8u8"),
        mma("conform_mma_u8s8"),
        mma("conform_mma_s8s8"),
        Case::new("conform_ldmatrix_x4", (1, 32, 512), 128, &[128]),
        Case::new("conform_ldmatrix_x2", (1, 32, 256), 64, &[64]),
        Case::new("conform_cp_async", (1, 64, 3072), 1536, &[1536]),
        Case::new("conform_red_add", (4, 64, 0), 8, &[256]),
        Case::new("conform_atomic_add", (4, 64, 0), 8, &[256]),
        Case::new("conform_load_stream_16", (1, 64, 0), 256, &[256]),
        Case::new("conform_shuffles", (1, 64, 0), 768, &[64]),
        Case::new("conform_integers", (1, 64, 0), 832, &[192]),
        Case::new("conform_barriers", (1, 128, 512), 128, &[128]),
    ];
    check(&cases, |_| true);
}

#[test]
fn primitives_of_hopper() {
    let wgmma =
        |kernel, n: usize| Case::new(kernel, (1, 128, (64 + n) * 128), 64 * n, &[64 * 32, n * 32, 64 * n]);
    let pieces = 11;
    let cases = [
        wgmma("conform_wgmma_s8u8_n8_hopper", 8),
        wgmma("conform_wgmma_s8u8_n16_hopper", 16),
        wgmma("conform_wgmma_s8u8_n32_hopper", 32),
        wgmma("conform_wgmma_s8u8_n64_hopper", 64),
        wgmma("conform_wgmma_s8u8_n128_hopper", 128),
        wgmma("conform_wgmma_s8u8_n256_hopper", 256),
        wgmma("conform_wgmma_u8u8_n8_hopper", 8),
        wgmma("conform_wgmma_u8u8_n16_hopper", 16),
        wgmma("conform_wgmma_u8u8_n32_hopper", 32),
        wgmma("conform_wgmma_u8u8_n64_hopper", 64),
        wgmma("conform_wgmma_u8u8_n128_hopper", 128),
        wgmma("conform_wgmma_u8u8_n256_hopper", 256),
        Case::new("conform_wgmma_groups_hopper", (1, 128, 80 * 128), 128 * 16, &[64 * 32, 16 * 32, 128 * 16]),
        Case {
            number: Some(pieces),
            ..Case::new("conform_bulk_copy_hopper", (1, 160, 3 * 1024 + 48), 11 * 128, &[11 * 256])
        },
        Case::new("conform_cluster_hopper", (4, 128, 3096), 512, &[512]),
        Case::new("conform_set_max_registers_hopper", (1, 512, 0), 512, &[512]),
    ];
    check(&cases, Device::is_hopper);
}
