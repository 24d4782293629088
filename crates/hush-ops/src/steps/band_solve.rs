//! The linear system of the band filter, solved column by column by elimination.

use std::collections::VecDeque;

use crate::{OpsError, contract::BandSystem, symbol::Symbol};

/// Checks that lengths fit the system, starts ascend within the slots, and coefficients lie within the band.
///
/// A width from 1 to 256 is accepted, since a small block has a band as narrow as the block.
pub(crate) fn check<S: Symbol>(
    system: &BandSystem,
    values: &[S],
    size: usize,
    slots: &[S],
) -> Result<(), OpsError> {
    let step = "band solve";
    let BandSystem { slots: count, width, starts, coeffs } = system;
    let shape = |what, expected, actual| Err(OpsError::Shape { step, what, expected, actual });
    OpsError::check_shape(step, "number of coefficient rows", starts.len(), coeffs.len())?;
    OpsError::check_shape(step, "value symbols", starts.len() * size, values.len())?;
    OpsError::check_shape(step, "slot symbols", count * size, slots.len())?;
    if !(1..=256).contains(width) {
        return shape("band width", 256, *width);
    }
    if starts.is_empty() {
        return Ok(());
    }
    if width > count {
        return shape("band width", *count, *width);
    }
    if let Some(pair) = starts.windows(2).find(|pair| pair[0] > pair[1]) {
        return shape("ascending row start", pair[0] as usize, pair[1] as usize);
    }
    if let Some(&start) = starts.iter().find(|&&start| start as usize > count - width) {
        return shape("last row start", count - width, start as usize);
    }
    match coeffs
        .iter()
        .filter_map(|coeff: &[u64; 4]| (0..256).rev().find(|bit| coeff[bit / 64] >> (bit % 64) & 1 == 1))
        .max()
    {
        Some(bit) if bit >= *width => shape("band width", *width, bit + 1),
        _ => Ok(()),
    }
}

/// Solves the system, over bytes or words.
pub(crate) fn reference<S: Symbol>(
    system: &BandSystem,
    values: &[S],
    size: usize,
    slots: &mut [S],
) -> Result<(), OpsError> {
    let pivots = eliminate(system, values, size)?;
    slots.fill(S::default());
    for pivot in pivots.iter().rev() {
        let (known, rest) = slots.split_at_mut((pivot.col + 1) * size);
        let slot = &mut known[pivot.col * size..];
        slot.copy_from_slice(&pivot.value);
        for (coeff, solved) in pivot.window.iter().skip(1).zip(rest.chunks_exact(size.max(1))) {
            subtract_multiple(slot, *coeff, solved);
        }
    }
    Ok(())
}

/// An equation whose coefficients start at the current column.
struct Row<S> {
    window: VecDeque<S>,
    value: Vec<S>,
}

/// An equation whose first coefficient, at column `col`, is 1.
struct Pivot<S> {
    col: usize,
    window: VecDeque<S>,
    value: Vec<S>,
}

/// Brings the system to echelon form, column by column. The pivot of a column is an active row whose entry is odd, that is, a unit.
///
/// A column without such a row is free: its slot is 0, so its (even) entries are dropped. Any odd row may be the pivot: modulo 2
/// this is Gaussian elimination, so the pivot columns are always those of the echelon form of the system modulo 2. The square
/// system of these columns has an odd determinant, hence exactly one solution modulo any power of 2. Rows that are left at the
/// end have only even entries: they are dependent modulo 2.
fn eliminate<S: Symbol>(system: &BandSystem, values: &[S], size: usize) -> Result<Vec<Pivot<S>>, OpsError> {
    let mut pivots = Vec::with_capacity(system.starts.len());
    let mut active: VecDeque<Row<S>> = VecDeque::new();
    let mut next = 0;
    for col in 0..system.slots {
        while next < system.starts.len() && system.starts[next] as usize == col {
            active.push_back(Row {
                window: (0..system.width)
                    .map(|j: usize| S::from((system.coeffs[next][j / 64] >> (j % 64) & 1) as u8))
                    .collect(),
                value: values[next * size..][..size].to_vec(),
            });
            next += 1;
        }
        if let Some(Row { mut window, mut value }) = active
            .iter()
            .position(|row: &Row<S>| row.window.front().is_some_and(|entry| entry.is_odd()))
            .and_then(|at| active.remove(at))
        {
            let inverse = window[0].inverse();
            window.iter_mut().chain(&mut value).for_each(|symbol| *symbol = symbol.wrapping_mul(inverse));
            for row in &mut active {
                let Some(&entry) = row.window.front() else { continue };
                row.window.resize(row.window.len().max(window.len()), S::default());
                for (target, source) in row.window.iter_mut().zip(&window) {
                    *target = target.wrapping_sub(entry.wrapping_mul(*source));
                }
                subtract_multiple(&mut row.value, entry, &value);
            }
            pivots.push(Pivot { col, window, value });
        }
        for row in &mut active {
            row.window.pop_front();
        }
    }
    if active.is_empty() { Ok(pivots) } else { Err(OpsError::Singular) }
}

fn subtract_multiple<S: Symbol>(target: &mut [S], factor: S, source: &[S]) {
    for (target, source) in target.iter_mut().zip(source) {
        *target = target.wrapping_sub(factor.wrapping_mul(*source));
    }
}

#[cfg(test)]
mod tests {
    use hush_math::csprng::Csprng;

    use super::*;
    use crate::{contract::FilterOps, reference::Reference};

    fn random_system(rows: usize, slots: usize, width: usize, seed: u64) -> BandSystem {
        let mut rng = Csprng::insecure_from_seed(seed);
        let mut starts: Vec<u32> = (0..rows).map(|_| rng.next_u32() % (slots - width + 1) as u32).collect();
        starts.sort_unstable();
        let mut coeffs = Vec::with_capacity(rows);
        for _ in 0..rows {
            let mut coeff = [0u64; 4];
            (0..width).for_each(|bit| coeff[bit / 64] |= ((rng.next_u32() >> 9) as u64 & 1) << (bit % 64));
            coeff[0] |= 1;
            coeffs.push(coeff);
        }
        BandSystem { slots, width, coeffs, starts }
    }

    /// Solves random systems and checks every equation.
    fn equations_hold<S: Symbol>(random: impl Fn(&mut Csprng) -> S) {
        for (rows, slots, width, size) in [(1, 1, 1, 3), (5, 9, 3, 1), (80, 100, 64, 7), (300, 340, 256, 2)] {
            let mut solved = 0;
            for seed in 0..8 {
                let system = random_system(rows, slots, width, seed);
                let mut rng = Csprng::insecure_from_seed(99);
                let values: Vec<S> = (0..rows * size).map(|_| random(&mut rng)).collect();
                let mut filter = vec![S::from(7); slots * size];
                if S::band_solve(&Reference, &system, &values, size, &mut filter).is_err() {
                    continue;
                }
                solved += 1;
                for (row, (start, coeff)) in system.starts.iter().zip(&system.coeffs).enumerate() {
                    let ones = (0..width).filter(|j| coeff[j / 64] >> (j % 64) & 1 == 1);
                    for at in 0..size {
                        let sum = ones.clone().fold(S::default(), |sum, j| {
                            sum.wrapping_add(filter[(*start as usize + j) * size + at])
                        });
                        assert_eq!(sum, values[row * size + at]);
                    }
                }
            }
            assert!(solved > 0, "{rows} rows, {slots} slots");
        }
    }

    #[test]
    fn every_equation_holds() {
        equations_hold(|rng| rng.next_u32() as u8);
        equations_hold(Csprng::next_u32);
    }

    #[test]
    fn the_low_bytes_of_the_words_are_the_bytes() {
        let system = random_system(80, 100, 64, 1);
        let values: Vec<u32> = (0..80).map(|row| 0x0123_4567u32.wrapping_mul(row)).collect();
        let bytes: Vec<u8> = values.iter().map(|&word| word as u8).collect();
        let mut words = [1; 100];
        let mut low = [1; 100];
        Reference.band_solve_words(&system, &values, 1, &mut words).unwrap();
        Reference.band_solve(&system, &bytes, 1, &mut low).unwrap();
        assert_eq!(words.map(|word| word as u8), low);
    }

    #[test]
    fn dependent_rows_are_singular() {
        let mut system = random_system(20, 40, 16, 1);
        system.starts[7] = system.starts[6];
        system.coeffs[7] = system.coeffs[6];
        assert_eq!(Reference.band_solve(&system, &[0; 20], 1, &mut [0; 40]), Err(OpsError::Singular));
        assert_eq!(Reference.band_solve_words(&system, &[0; 20], 1, &mut [0; 40]), Err(OpsError::Singular));
    }

    #[test]
    fn wrong_shapes_are_refused() {
        let system = random_system(20, 40, 16, 1);
        let solve = |system: &BandSystem, values: usize, slots: usize| {
            Reference.band_solve(system, &vec![0; values], 2, &mut vec![0; slots])
        };
        assert!(matches!(solve(&system, 39, 80), Err(OpsError::Shape { expected: 40, actual: 39, .. })));
        assert!(matches!(solve(&system, 40, 81), Err(OpsError::Shape { expected: 80, actual: 81, .. })));
        for width in [0, 15, 41, 257] {
            let system = BandSystem { width, ..system.clone() };
            assert!(matches!(solve(&system, 40, 80), Err(OpsError::Shape { .. })), "width {width}");
        }
        let mut late = system.clone();
        late.starts[19] = 25;
        assert!(matches!(solve(&late, 40, 80), Err(OpsError::Shape { expected: 24, actual: 25, .. })));
        let mut unsorted = system;
        unsorted.starts.reverse();
        assert!(matches!(solve(&unsorted, 40, 80), Err(OpsError::Shape { .. })));
    }
}
