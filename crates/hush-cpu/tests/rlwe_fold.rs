//! Tests of `rlwe_fold` at every level against the reference, bit for bit. AMX runs through the emulator if the machine has none.

mod ring_backends;

use hush_cpu::Cpu;
use hush_math::{
    csprng::Csprng,
    modulus::{MODULUS_LIMIT, Modulus, find_primes, is_prime},
};
use hush_ops::{
    OpsError,
    ntt_tiling::{MAX_ROWS, NttTiledDb, NttTiling},
    steps,
};
use ring_backends::backends;

/// The values of residues.
#[derive(Clone, Copy, Debug)]
enum Fill {
    Random,
    Largest,
    Zero,
}

impl Fill {
    /// Returns polynomials in the order `[..][limb][slot]`.
    fn polys(self, moduli: &[Modulus], degree: usize, count: usize, rng: &mut Csprng) -> Vec<u32> {
        let limbs = (0..count).flat_map(|_| moduli);
        let moduli = limbs.flat_map(|modulus| std::iter::repeat_n(modulus, degree));
        let residues = moduli.map(|modulus| match self {
            Self::Random => modulus.reduce(rng.next_u64()),
            Self::Largest => modulus.value() - 1,
            Self::Zero => 0,
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

/// Checks all backends against the reference, for batches of the last queries.
fn check(backends: &[Cpu], moduli: &[Modulus], shape: Shape, batches: &[usize], fills: (Fill, Fill)) {
    let tiling = NttTiling::new(shape.degree, moduli.len(), shape.rows, shape.columns).expect("whole groups");
    let mut rng = Csprng::insecure_from_seed((shape.degree * 31 + shape.rows * 7 + shape.columns) as u64);
    let polys = fills.0.polys(moduli, shape.degree, shape.rows * shape.columns, &mut rng);
    let db = NttTiledDb::from_polys(tiling, &polys);
    let largest = batches.iter().copied().max().unwrap_or(0);
    let queries: Vec<Vec<u32>> =
        (0..largest).map(|_| fills.1.polys(moduli, shape.degree, 2 * shape.rows, &mut rng)).collect();
    let queries: Vec<&[u32]> = queries.iter().map(Vec::as_slice).collect();
    let expected = steps::rlwe_fold::reference(moduli, &db, &queries);
    for cpu in backends {
        for &batch in batches {
            // The last queries are used, so that a result does not depend on its place in the batch.
            let first = largest - batch;
            let actual = cpu.rlwe_fold_words(moduli, &db, &queries[first..]).expect("the shapes fit");
            assert_eq!(actual.len(), batch);
            for (query, (expected, actual)) in expected[first..].iter().zip(&actual).enumerate() {
                let wrong = expected.iter().zip(actual).position(|(expected, actual)| expected != actual);
                let (level, threads, p) = (cpu.level(), cpu.threads(), moduli[0].value());
                let case = format!(
                    "{level}, {threads} threads, {shape:?}, p = {p}, {fills:?}, query {query} of {batch}"
                );
                assert_eq!((expected.len(), wrong), (actual.len(), None), "{case}: first wrong word");
            }
        }
    }
}

/// Returns `limbs` primes of about `bits` bits, which need not suit an NTT.
fn moduli(bits: u32, limbs: usize) -> Vec<Modulus> {
    find_primes(16, bits, limbs).into_iter().map(Modulus::new).collect()
}

const BATCHES: [usize; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 16];

#[test]
fn every_row_count_and_prime_size() {
    let backends = backends();
    for (index, rows) in [1, 3, 15, 16, 17, 100, 256, 512].into_iter().enumerate() {
        for (step, bits) in [20, 21, 26, 28, 31, 32].into_iter().enumerate() {
            let shape = Shape { degree: 16, rows, columns: [1, 15, 16, 17, 7][(index + step) % 5] };
            check(&backends, &moduli(bits, 1 + step % 3), shape, &[1, 2, 3, 8], (Fill::Random, Fill::Random));
        }
    }
}

#[test]
fn every_batch_and_column_count() {
    let backends = backends();
    for columns in [1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 33] {
        for rows in [1, 15, 16, 17, 21] {
            let shape = Shape { degree: 32, rows, columns };
            check(&backends, &moduli(31, 2), shape, &BATCHES, (Fill::Random, Fill::Random));
        }
    }
    for rows in [15, 33, 256] {
        let shape = Shape { degree: 16, rows, columns: 70 };
        check(&backends, &moduli(31, 1), shape, &[1, 4, 7, 8], (Fill::Random, Fill::Random));
    }
    let shape = Shape { degree: 256, rows: 33, columns: 17 };
    check(&backends, &moduli(30, 2), shape, &[1, 4, 8], (Fill::Random, Fill::Random));
}

#[test]
fn lifted_hints() {
    let backends = backends();
    for (columns, rows) in
        [(1, 1280), (2, 1280), (4, 1280), (8, 1280), (16, 1280), (33, 1280), (3, 2048), (17, 2048)]
    {
        let shape = Shape { degree: 32, rows, columns };
        check(&backends, &moduli(31, 2), shape, &[1, 2, 8, 9], (Fill::Random, Fill::Random));
    }
}

#[test]
fn extreme_residues() {
    let backends = backends();
    let largest = (0..MODULUS_LIMIT).rev().find(|&p| is_prime(p)).expect("a prime");
    let smallest = (1 << 19..).find(|&p| is_prime(p)).expect("a prime");
    for p in [largest, 4_293_918_689, 2_147_483_647, 67_043_329, smallest] {
        for (rows, columns) in [(100, 17), (512, 5), (1024, 17), (MAX_ROWS, 17)] {
            let shape = Shape { degree: 16, rows, columns };
            for fills in [(Fill::Largest, Fill::Largest), (Fill::Largest, Fill::Random)] {
                check(&backends, &[Modulus::new(p)], shape, &[1, 3, 8], fills);
            }
        }
        for columns in [1, 2, 4, 8, 16, 80] {
            let shape = Shape { degree: 16, rows: MAX_ROWS, columns };
            check(&backends, &[Modulus::new(p)], shape, &[1, 3, 8], (Fill::Largest, Fill::Largest));
        }
    }
    let shape = Shape { degree: 16, rows: 16, columns: 16 };
    check(&backends, &moduli(31, 2), shape, &BATCHES, (Fill::Zero, Fill::Largest));
}

#[test]
fn wrong_shapes_are_refused() {
    let cpu = Cpu::new(1).expect("the machine has the level that HUSH_CPU names");
    let tiling = NttTiling::new(32, 2, 3, 5).expect("whole groups");
    let db = NttTiledDb::from_polys(tiling, &[1; 3 * 5 * 64]);
    let query = [1; 3 * 2 * 64 + 1];
    let fold = |moduli: &[Modulus], words: usize| cpu.rlwe_fold_words(moduli, &db, &[&query[..words]]);
    assert!(fold(&moduli(31, 2), 3 * 2 * 64).is_ok());
    let small = [7681, 12289].map(Modulus::new);
    for refused in [
        fold(&moduli(31, 1), 3 * 2 * 64),
        fold(&moduli(31, 2), 3 * 2 * 64 - 1),
        fold(&moduli(31, 2), 3 * 2 * 64 + 1),
        fold(&small, 3 * 2 * 64),
    ] {
        assert!(matches!(refused, Err(OpsError::Shape { .. })));
    }
}
