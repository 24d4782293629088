//! `rlwe_fold` by every kernel against the reference, bit for bit, in the emulator and on a GPU.

use crate::{
    coverage,
    devices::{emulated, little_shared, one_and_gpu, small, varied},
};
use hush_cuda::{
    device::Device,
    ring::{CudaNttDb, RlweFoldKernel, fold_rows},
};
use hush_math::{
    csprng::Csprng,
    modulus::{MODULUS_LIMIT, Modulus, find_primes, is_prime},
};
use hush_ops::{
    OpsError,
    ntt_tiling::{MAX_ROWS, NttTiledDb, NttTiling},
    steps,
};

/// Every kernel, all points at once.
const KERNELS: &[RlweFoldKernel] = &[RlweFoldKernel::Imad, RlweFoldKernel::Mma, RlweFoldKernel::Hopper];

/// Values of residues.
#[derive(Clone, Copy, Debug)]
enum Fill {
    Random,
    Largest,
}

impl Fill {
    /// Polynomials in the order `[..][limb][slot]`.
    fn polys(self, moduli: &[Modulus], degree: usize, count: usize, rng: &mut Csprng) -> Vec<u32> {
        let limbs = (0..count).flat_map(|_| moduli);
        let moduli = limbs.flat_map(|modulus| std::iter::repeat_n(modulus, degree));
        let residues = moduli.map(|modulus| match self {
            Self::Random => modulus.reduce(rng.next_u64()),
            Self::Largest => modulus.value() - 1,
        });
        residues.collect()
    }
}

#[derive(Clone, Copy, Debug)]
struct Shape {
    degree: usize,
    rows: usize,
    columns: usize,
}

fn moduli(bits: u32, count: usize) -> Vec<Modulus> {
    find_primes(16, bits, count).into_iter().map(Modulus::new).collect()
}

/// A database, queries, and what the reference makes of them.
struct Case {
    name: String,
    moduli: Vec<Modulus>,
    host: NttTiledDb,
    queries: Vec<Vec<u32>>,
    expected: Vec<Vec<u32>>,
}

impl Case {
    fn new(moduli: &[Modulus], shape: Shape, queries: usize, fill: Fill) -> Self {
        let Shape { degree, rows, columns } = shape;
        let tiling = NttTiling::new(degree, moduli.len(), rows, columns).expect("whole groups");
        let mut rng = Csprng::insecure_from_seed((degree * 31 + rows * 7 + columns) as u64);
        let host = NttTiledDb::from_polys(tiling, &fill.polys(moduli, degree, rows * columns, &mut rng));
        let queries: Vec<Vec<u32>> =
            (0..queries).map(|_| fill.polys(moduli, degree, 2 * rows, &mut rng)).collect();
        let slices: Vec<&[u32]> = queries.iter().map(Vec::as_slice).collect();
        let expected = steps::rlwe_fold::reference(moduli, &host, &slices);
        let name = format!("{shape:?}, {moduli:?}, {fill:?}");
        Self { name, moduli: moduli.to_vec(), host, queries, expected }
    }

    /// Folds the last queries of all, in each of `batches`, by some kernels, or by what the device chooses.
    fn check(&self, device: &Device, batches: &[usize], kernels: &[RlweFoldKernel]) {
        let db = CudaNttDb::upload(device, &self.host).expect("the device holds the database");
        let read = db.download(device).expect("the device is there");
        assert!(read.bytes() == self.host.bytes(), "{}", self.name);
        let queries: Vec<_> =
            self.queries.iter().map(|words| device.upload(words).expect("the device holds them")).collect();
        let queries: Vec<_> = queries.iter().collect();
        let chosen: Vec<_> =
            if kernels.is_empty() { vec![None] } else { kernels.iter().copied().map(Some).collect() };
        for (kernel, &batch) in chosen.into_iter().flat_map(|k| batches.iter().map(move |batch| (k, batch))) {
            let first = queries.len() - batch;
            let folded =
                fold_rows(device, &self.moduli, &db, &queries[first..], kernel).expect("the shapes fit");
            assert_eq!(folded.len(), batch);
            for (query, (folded, expected)) in folded.iter().zip(&self.expected[first..]).enumerate() {
                let words = device.download(&folded.slice(..)).expect("the device is there");
                assert!(words == *expected, "{kernel:?}, {}, query {query} of {batch}", self.name);
            }
        }
    }
}

/// Checks a case on some devices, with as many queries as the largest batch has.
fn check(
    devices: &[Device],
    moduli: &[Modulus],
    shape: Shape,
    batches: &[usize],
    fill: Fill,
    kernels: &[RlweFoldKernel],
) {
    let case = Case::new(moduli, shape, batches.iter().copied().max().unwrap_or(0), fill);
    devices.iter().for_each(|device| case.check(device, batches, kernels));
}

#[test]
fn every_row_count_and_prime_size() {
    let devices = one_and_gpu(0);
    for (index, rows) in [1, 3, 31, 32, 33, 100, 256].into_iter().enumerate() {
        let (bits, columns) = ([20, 32, 21, 26, 31][index % 5], [1, 15, 17, 7][index % 4]);
        let shape = Shape { degree: 16, rows, columns };
        check(&devices, &moduli(bits, 1 + index % 3), shape, &[1, 5], Fill::Random, &KERNELS[..2]);
    }
}

#[test]
fn every_column_count() {
    let devices = one_and_gpu(1);
    for columns in [1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 64, 70, 129, 192] {
        let shape = Shape { degree: 16, rows: 40, columns };
        for bits in [31, 32] {
            check(&devices, &moduli(bits, 1), shape, &[1, 4], Fill::Random, KERNELS);
        }
    }
}

#[test]
fn every_batch() {
    let devices = one_and_gpu(0);
    for batch in [1, 2, 3, 4, 5, 8, 9, 16, 17, 41, 65] {
        let shape = Shape { degree: 16, rows: 40, columns: [20, 128][batch / 2 % 2] };
        let case = Case::new(&moduli(31 + batch as u32 % 2, 1), shape, batch, Fill::Random);
        // The first kernel takes two queries a pass: more than a few passes show nothing new.
        let kernels = if batch > 20 { &KERNELS[1..] } else { KERNELS };
        for device in &devices {
            case.check(device, &[batch], kernels);
            // Where what the device chooses changes.
            if [3, 4, 8, 9, 65].contains(&batch) {
                case.check(device, &[batch], &[]);
            }
        }
    }
}

#[test]
fn several_limbs_on_other_devices() {
    let devices = varied();
    for columns in [64, 66] {
        let shape = Shape { degree: 16, rows: 70, columns };
        check(&devices, &moduli(31, 3), shape, &[2], Fill::Random, KERNELS);
        check(&devices, &[moduli(32, 2), moduli(20, 1)].concat(), shape, &[2], Fill::Random, KERNELS);
    }
    let shape = Shape { degree: 64, rows: 33, columns: 120 };
    check(&devices, &moduli(30, 1), shape, &[3, 10], Fill::Random, &[]);
}

/// Chunks of points, of which some are turned over while another is multiplied: more of them than there is room for; in one pass
/// and in two; and too few points for two chunks.
#[test]
fn chunks_beside_others() {
    let devices = one_and_gpu(0);
    for (degree, limbs, batches) in [(64, 3, &[3, 40][..]), (128, 1, &[65]), (32, 1, &[2])] {
        let shape = Shape { degree, rows: 40, columns: 70 };
        check(&devices, &moduli(31, limbs), shape, batches, Fill::Random, &[RlweFoldKernel::Hopper]);
    }
    // What the device chooses.
    let shape = Shape { degree: 128, rows: 5, columns: 128 };
    check(&devices, &moduli(31, 1), shape, &[33], Fill::Random, &[]);
}

/// Checks chunks beside others, without products by warpgroups. Where a multiprocessor has room for one block of products, it has
/// room for a block that turns words over, and so a block multiplies many items. Where it has room for two, it has none for others.
#[test]
fn chunks_beside_others_by_room() {
    let shape = Shape { degree: 64, rows: 40, columns: 140 };
    let case = Case::new(&moduli(31, 3), shape, 33, Fill::Random);
    let threads = emulated().map(|device| {
        case.check(&device, &[16, 17, 33], &[RlweFoldKernel::Mma]);
        let of_kernels = device.emulated_threads().into_iter();
        of_kernels
            .filter(|(kernel, _)| kernel.starts_with("rlwe_fold_mma_p32"))
            .map(|(_, count)| count)
            .sum::<usize>()
    });
    let [hopper, ada] = threads;
    assert!(8 * ada < hopper, "{ada} threads and {hopper}");
}

#[test]
fn extreme_residues() {
    let devices = one_and_gpu(0);
    let smallest = (1 << 19..).find(|&p| is_prime(p)).expect("a prime");
    let largest = (0..MODULUS_LIMIT).rev().find(|&p| is_prime(p)).expect("a prime");
    for p in [largest, 2_147_483_659, 2_147_483_647, 1_073_741_827, 67_043_329, smallest] {
        let shape = Shape { degree: 16, rows: MAX_ROWS, columns: 2 };
        check(&devices, &[Modulus::new(p)], shape, &[1], Fill::Largest, &KERNELS[..2]);
    }
    let shape = Shape { degree: 16, rows: MAX_ROWS, columns: 64 };
    for p in [largest, 2_147_483_647] {
        check(&devices, &[Modulus::new(p)], shape, &[1], Fill::Largest, &KERNELS[2..]);
    }
}

/// Checks as many selectors as a pass has, where a block has the least shared memory.
#[test]
fn the_most_rows_and_queries_fit_little_shared_memory() {
    let devices = [little_shared()];
    let most = Shape { degree: 16, rows: MAX_ROWS, columns: 64 };
    check(&devices, &moduli(31, 1), most, &[4], Fill::Random, &KERNELS[..1]);
    let few = Shape { degree: 16, rows: 40, columns: 64 };
    check(&devices, &moduli(31, 1), few, &[40], Fill::Random, &KERNELS[1..2]);
}

#[test]
fn what_does_not_fit_is_refused() {
    one_and_gpu(0).iter().for_each(check_refusals);
}

fn check_refusals(device: &Device) {
    let tiling = NttTiling::new(32, 2, 3, 5).expect("whole groups");
    let host = NttTiledDb::from_polys(tiling, &[1; 3 * 5 * 64]);
    let db = CudaNttDb::upload(device, &host).expect("the device holds the database");
    let fold = |moduli: &[Modulus], words: usize| {
        let query = device.upload(&vec![1; words]).expect("the device holds it");
        fold_rows(device, moduli, &db, &[&query], None)
    };
    let words = 3 * 2 * 64;
    assert!(fold(&moduli(31, 2), words).is_ok());
    let small = [7681, 12289].map(Modulus::new);
    for refused in [
        fold(&moduli(31, 1), words),
        fold(&moduli(31, 2), words - 1),
        fold(&moduli(31, 2), words + 1),
        fold(&small, words),
    ] {
        assert!(matches!(refused, Err(OpsError::Shape { .. })));
    }
    assert!(fold(&moduli(32, 2), words).is_ok());

    let tiling = NttTiling::new(16, 5, 1, 1).expect("whole groups");
    let host = NttTiledDb::from_polys(tiling, &[1; 5 * 16]);
    let db = CudaNttDb::upload(device, &host).expect("the device holds the database");
    let query = device.upload(&[1; 2 * 5 * 16]).expect("the device holds it");
    let many = fold_rows(device, &moduli(31, 5), &db, &[&query], None);
    assert!(matches!(many, Err(OpsError::Backend { .. })));
}

/// Runs under the sanitizers: every kernel, with columns and rows that end within a tile.
#[test]
fn small_folds_of_ring_elements() {
    let devices = small();
    // Each width runs on one Hopper device and on one other.
    for (device, bits) in devices.iter().zip([31, 32, 31, 32]) {
        let case = |rows, columns, queries| {
            Case::new(&moduli(bits, 1), Shape { degree: 16, rows, columns }, queries, Fill::Random)
        };
        let few = case(33, 5, 17);
        few.check(device, &[1, 2, 4], &[RlweFoldKernel::Imad]);
        case(33, 60, 4).check(device, &[1, 2, 4], &[RlweFoldKernel::Imad]);
        few.check(device, &[2, 9, 17], &[RlweFoldKernel::Mma]);
        if device.is_hopper() {
            case(20, 120, 17).check(device, &[2, 17], &[RlweFoldKernel::Hopper]);
        }
    }
    coverage::assert_launched(&devices, coverage::RLWE_FOLD);
}
