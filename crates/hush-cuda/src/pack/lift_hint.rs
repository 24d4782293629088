//! The step `lift_hint`: it converts a hint to evaluation form.

use std::ops::Range;

use hush_ops::{
    OpsError,
    ntt_tiling::{MAX_TILE_WIDTH, NttTiling},
    pack_shape::PackShape,
    steps::{LiftHint, StepFootprint, poly_bytes},
};

use hush_he::params::RingParams;

use super::columns::PackColumns;
use crate::{
    Cuda,
    device::{Arg, Buffer, Device},
    ring::{CudaNttDb, CudaRing, Lift, MAX_POLY_COLUMNS, STAGING_BYTES, TILE_ROWS, lift_plaintexts},
    squares::{launch_squares, squares},
};

/// The bytes of polynomials that `lift_hint` has in flight at once, for more than one tile of rows.
const LIFT_BYTES: usize = 256 << 20;

/// Runs [`hush_ops::contract::PackOps::lift_hint`] for a hint of the shape.
///
/// Processes some polynomials of all columns at a time. Transposes the words of the hint, so that the words of a polynomial are
/// neighbours; transforms them; and writes the results into tiles.
///
/// # Errors
/// [`OpsError::Shape`] if n exceeds the rows that a tiling can have, or there are more than [`MAX_POLY_COLUMNS`] columns;
/// [`OpsError::Backend`] if the device fails.
pub(super) fn lift_hint(
    device: &Device,
    ring: &CudaRing,
    hint: &Buffer<u32>,
    n: usize,
    shape: &PackShape,
    columns: Range<usize>,
) -> Result<CudaNttDb, OpsError> {
    OpsError::check_shape("lift_hint", "columns", columns.len().min(MAX_POLY_COLUMNS), columns.len())?;
    let kept = ring.kept();
    let degree = shape.degree();
    let db = CudaNttDb::alloc(device, NttTiling::new(degree, kept.limbs(), n, columns.len())?)?;
    if columns.is_empty() || n == 0 {
        return Ok(db);
    }
    let shape = PackColumns::new("lift_hint", shape, &columns)?;
    let lift = Lift::words(ring.context().params().plaintext_bits());
    // Polynomials are processed in whole tiles of rows.
    let tile_bytes = 4 * TILE_ROWS * columns.len() * kept.poly_words();
    let chunk = (LIFT_BYTES / tile_bytes).max(1) * TILE_ROWS;
    for first in (0..n).step_by(chunk) {
        let polys = chunk.min(n - first);
        let words = device.alloc(polys * columns.len() * degree)?;
        let launch = launch_squares([squares(degree), squares(polys), columns.len() as u32]);
        let numbers = [n, first, polys].map(|number| (number as u32).into());
        let args = [&[(&words).into(), hint.into(), Arg::of(&shape)], &numbers[..]].concat();
        device.launch("lift_hint", launch, &args)?;
        let residues = device.alloc(polys * columns.len() * kept.poly_words())?;
        lift_plaintexts(device, kept, lift, &words.slice(..), &residues.slice(..))?;
        db.write_rows(device, &residues, first, polys)?;
    }
    Ok(db)
}

hush_ops::footprint!(Cuda: LiftHint, |step, batch| {
    let &LiftHint { ring, n, columns, .. } = step;
    let word_poly = size_of::<u32>() * ring.degree();
    let poly = poly_bytes(&ring);
    let tiling = NttTiling::new(ring.degree(), ring.kept_limbs(), n, columns);
    let lifted = tiling.map_or(0, CudaNttDb::bytes_for);
    let tile = n.next_multiple_of(TILE_ROWS) * columns * (poly + word_poly);
    let at_once = LIFT_BYTES.max(TILE_ROWS * columns * poly);
    // The rows of the hint twice, the result, and the words and polynomials in flight.
    batch * (2 * n * columns * word_poly + lifted + tile.min(2 * at_once))
});

/// Returns the bytes of device memory for lifting a tile of columns when a table is built, including the download of the result.
pub fn lift_tile_bytes(ring: &RingParams, n: usize, shape: &PackShape) -> usize {
    let lift = LiftHint { ring: *ring, n, columns: shape.plaintexts().min(MAX_TILE_WIDTH), parts: 1 };
    Cuda::footprint(&lift, 1) + STAGING_BYTES.min(n * lift.columns * poly_bytes(ring))
}
