//! The band filter's linear system over Z_256, solved as `L y = values`, `U slots = y`.
//!
//! 1. *Factor* ([`factor`]), coefficients only: column by column the first odd active row becomes the pivot and
//!    is cleared from the other active rows. Row operations go to `L`, pivot rows to `U`, both as [`panels`].
//! 2. *Substitute* ([`substitute`]), values: forward through `L`, back through `U`, about `width` multiply-adds a
//!    byte. Stripes of 512 value bytes are independent, so one large system is solved by as many threads as it has
//!    stripes; a table of many blocks also has its blocks solved side by side.
//!
//! Memory beside the operands: about `width` + 80 bytes a slot for the factors, and a window of usually less than
//! 1 MiB a thread. Every level gives the bytes of `hush_ops::reference::band_solve`, where the reason is.
//!
//! The AMX level uses the AVX-512 kernel: its multiplications are a third of the time, the rest is coefficients and
//! memory, so that tiles would gain little.

mod avx512;
mod factor;
mod panels;
mod portable;
mod shared_slots;
mod substitute;

use hush_ops::{
    OpsError,
    contract::{BandSystem, FilterOps},
    reference::band_solve::check_shapes,
};
use rayon::prelude::*;

use self::{
    shared_slots::SharedSlots,
    substitute::{Kernel, STRIPE, Values},
};
use crate::{Cpu, Level};

impl FilterOps for Cpu {
    fn band_solve(
        &self,
        system: &BandSystem,
        values: &[u8],
        size: usize,
        slots: &mut [u8],
    ) -> Result<(), OpsError> {
        check_shapes(system, values, size, slots)?;
        // SAFETY: whoever made the backend promised that the machine has its level.
        self.install(|| unsafe { band_solve(self.level(), system, Values { bytes: values, size }, slots) })
    }
}

/// Solves a system whose shapes have been checked.
///
/// # Safety
/// The machine has `level`.
unsafe fn band_solve(
    level: Level,
    system: &BandSystem,
    values: Values<'_>,
    slots: &mut [u8],
) -> Result<(), OpsError> {
    let size = values.size;
    let kernel = kernel(level);
    // SAFETY: the caller's promise.
    let factors = unsafe { factor::factor(level, system) }?;
    let slots = SharedSlots::new(slots, size);
    (0..size.div_ceil(STRIPE)).into_par_iter().for_each(|stripe| {
        let columns = stripe * STRIPE..size.min((stripe + 1) * STRIPE);
        // SAFETY: the caller's promise, and each stripe has its own columns.
        unsafe { substitute::solve_stripe(kernel, &factors, values, columns, &slots) };
    });
    Ok(())
}

fn kernel(level: Level) -> &'static Kernel {
    match level {
        Level::Scalar => &portable::SCALAR,
        Level::Avx2 => &portable::AVX2,
        Level::Avx512 | Level::Avx512Ifma | Level::Amx => &avx512::AVX512,
    }
}
