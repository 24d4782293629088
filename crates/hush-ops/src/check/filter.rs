//! Checks of [`crate::contract::FilterOps`].

use crate::{OpsError, contract::BandSystem, symbol::Symbol};

/// Lengths fit the system, starts ascend within the slots, and coefficients lie within the band. Both steps of the trait.
///
/// A width from 1 to 256 is accepted, since a small block has a band as narrow as the block.
pub(crate) fn band_solve<S: Symbol>(
    system: &BandSystem,
    values: &[S],
    size: usize,
    slots: &[S],
) -> Result<(), OpsError> {
    let (step, BandSystem { slots: count, width, starts, coeffs }) = ("band solve", system);
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
    let highest = |coeff: &[u64; 4]| (0..256).rev().find(|bit| coeff[bit / 64] >> (bit % 64) & 1 == 1);
    match coeffs.iter().filter_map(highest).max() {
        Some(bit) if bit >= *width => shape("band width", *width, bit + 1),
        _ => Ok(()),
    }
}
