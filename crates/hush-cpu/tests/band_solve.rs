//! Tests of `band_solve` at every level of this machine against the reference.

use hush_cpu::{Cpu, Level};
use hush_math::csprng::Csprng;
use hush_ops::{
    OpsError,
    contract::{BandSystem, FilterOps},
    reference::Reference,
    symbol::Symbol,
};

fn backends() -> Vec<Cpu> {
    let levels = Level::usable();
    levels.map(|level| Cpu::with_level(level, 2).unwrap()).collect()
}

fn random_system(rows: usize, slots: usize, width: usize, seed: u64) -> BandSystem {
    let mut rng = Csprng::insecure_from_seed(seed);
    let mut starts: Vec<u32> = (0..rows).map(|_| rng.next_u32() % (slots - width + 1) as u32).collect();
    starts.sort_unstable();
    let mut coeffs = Vec::with_capacity(rows);
    for _ in 0..rows {
        let mut coeff: [u64; 4] = std::array::from_fn(|word| {
            let kept_bits = width.saturating_sub(64 * word).min(64) as u32;
            rng.next_u64() & u64::MAX.checked_shr(64 - kept_bits).unwrap_or(0)
        });
        coeff[0] |= 1;
        coeffs.push(coeff);
    }
    BandSystem { slots, width, coeffs, starts }
}

/// Asserts that all backends and the reference agree for bytes and for words, in the error too. Returns whether there is a
/// solution.
fn agree(system: &BandSystem, size: usize, backends: &[Cpu]) -> bool {
    let bytes = agree_over(system, size, backends, |rng| rng.next_u32() as u8);
    let words = agree_over(system, size, backends, Csprng::next_u32);
    assert_eq!(bytes, words, "whether rows are dependent does not depend on the symbols");
    bytes
}

fn agree_over<S: Symbol>(
    system: &BandSystem,
    size: usize,
    backends: &[Cpu],
    random: impl Fn(&mut Csprng) -> S,
) -> bool {
    let mut rng = Csprng::insecure_from_seed(7);
    let values: Vec<S> = (0..system.starts.len() * size).map(|_| random(&mut rng)).collect();
    let solve = |ops: &dyn FilterOps| {
        let mut slots = vec![S::from(0xaa); system.slots * size];
        S::band_solve(ops, system, &values, size, &mut slots).map(|()| slots)
    };
    let expected = solve(&Reference);
    for cpu in backends {
        let actual = solve(cpu);
        let symbol = std::any::type_name::<S>();
        let case =
            format!("{} {} slots, width {}, size {size} {symbol}", cpu.level(), system.slots, system.width);
        match (&expected, &actual) {
            (Ok(expected), Ok(actual)) => {
                let wrong = expected.iter().zip(actual).position(|(expected, actual)| expected != actual);
                assert_eq!(wrong, None, "{case}: first wrong symbol");
            }
            _ => assert_eq!(expected, actual, "{case}"),
        }
    }
    expected.is_ok()
}

#[test]
fn every_level_equals_the_reference() {
    let backends = backends();
    let shapes = [
        (1, 1, 1, 1),
        (2, 5, 2, 64),
        (60, 66, 33, 65),
        (100, 110, 64, 14),
        (240, 256, 256, 8),
        (240, 260, 253, 3),
        (400, 440, 65, 100),
        (600, 640, 128, 40),
        (900, 960, 192, 7),
        (1004, 1024, 256, 16),
        (1500, 1543, 200, 1),
        (300, 320, 256, 1040),
        (300, 4000, 256, 9),
    ];
    for (rows, slots, width, size) in shapes {
        let solved = (0..10).filter(|&seed| agree(&random_system(rows, slots, width, seed), size, &backends));
        assert!(solved.take(2).count() > 0, "{rows} rows, {slots} slots, width {width}: never solvable");
    }
}

#[test]
fn every_width() {
    let backends = backends();
    let solved = (1..=256).filter(|&width| agree(&random_system(8, width + 20, width, 9), 3, &backends));
    assert!(solved.count() > 200);
}

#[test]
fn a_dense_system_with_long_waits() {
    let backends = backends();
    // All rows start in the first quarter, so that most wait far longer than the width of a window.
    let mut system = random_system(700, 1024, 64, 3);
    for (row, start) in system.starts.iter_mut().enumerate() {
        *start = (row * 960 / 700).saturating_sub(40) as u32;
    }
    assert!(agree(&system, 24, &backends));
    let mut crowded = random_system(250, 300, 256, 4);
    crowded.starts.iter_mut().for_each(|start| *start /= 20);
    assert!(agree(&crowded, 24, &backends));
}

#[test]
fn dependent_rows_are_singular_everywhere() {
    for rows in [41, 300] {
        // The cases are more rows than slots, and a repeated row, early and late.
        assert!(!agree(&random_system(rows, 40, 16, 5), 4, &backends()));
        let mut repeated = random_system(rows, 2 * rows, 32, 6);
        repeated.starts[rows - 1] = repeated.starts[rows - 2];
        repeated.coeffs[rows - 1] = repeated.coeffs[rows - 2];
        assert!(!agree(&repeated, 4, &backends()));
        repeated.starts[3] = repeated.starts[4];
        repeated.coeffs[3] = repeated.coeffs[4];
        assert!(!agree(&repeated, 4, &backends()));
    }
}

#[test]
fn nothing_to_solve_gives_zero_slots() {
    let backends = backends();
    for (slots, size) in [(0, 0), (0, 5), (3, 0), (100, 5)] {
        let empty = BandSystem { slots, width: 64, starts: Vec::new(), coeffs: Vec::new() };
        assert!(agree(&empty, size, &backends));
    }
}

#[test]
fn wrong_shapes_are_refused() {
    let system = random_system(20, 40, 16, 1);
    for cpu in backends() {
        let short = cpu.band_solve(&system, &[0; 39], 2, &mut [0; 80]);
        assert!(matches!(short, Err(OpsError::Shape { expected: 40, actual: 39, .. })));
        let short = cpu.band_solve_words(&system, &[0; 40], 2, &mut [0; 79]);
        assert!(matches!(short, Err(OpsError::Shape { expected: 80, actual: 79, .. })));
        let narrow = BandSystem { width: 15, ..system.clone() };
        assert!(matches!(cpu.band_solve(&narrow, &[0; 40], 2, &mut [0; 80]), Err(OpsError::Shape { .. })));
    }
}
