//! The rows of each plaintext, as kernels take them.

use std::ops::Range;

use hush_ops::{OpsError, pack_shape::PackShape};
use zerocopy::{Immutable, IntoBytes};

/// The struct `PackColumns` of `kernels/pack.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Immutable, IntoBytes)]
pub(crate) struct PackColumns {
    degree: u32,
    rows: u32,
    entry_rows: u32,
    planes: u32,
    first: u32,
    first_row: u32,
}

const _: () = assert!(size_of::<PackColumns>() == 24);

impl PackColumns {
    /// Creates the view of some columns of a shape.
    ///
    /// # Errors
    /// [`OpsError::Shape`] if kernels cannot count the rows or plaintexts with 32 bits.
    pub(crate) fn new(
        step: &'static str,
        shape: &PackShape,
        columns: &Range<usize>,
    ) -> Result<Self, OpsError> {
        const MOST: usize = i32::MAX as usize;
        OpsError::check_shape(step, "rows", shape.rows().min(MOST), shape.rows())?;
        OpsError::check_shape(step, "plaintexts", shape.plaintexts().min(MOST), shape.plaintexts())?;
        Ok(Self {
            degree: shape.degree() as u32,
            rows: shape.rows() as u32,
            // An entry has no more rows than there are in all.
            entry_rows: shape.entry_rows().min(shape.rows()) as u32,
            planes: shape.planes() as u32,
            first: columns.start as u32,
            first_row: shape.rows_of(columns.clone()).start as u32,
        })
    }
}
