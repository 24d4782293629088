//! The band filter's linear system over Z_2^8 or Z_2^32, solved as `L y = values`, `U slots = y`.
//!
//! 1. *Factor* ([`factor`]), on coefficients only: column by column, the first odd active row becomes the pivot and
//!    is cleared from the other active rows. Row operations go to `L`, pivot rows to `U`, both as [`panels`].
//! 2. *Substitute* ([`substitute`]), on values: forward through `L`, back through `U`, about `width` multiply-adds a
//!    symbol. Stripes of 512 value bytes are independent, so a large system is solved by as many threads as it has
//!    stripes. The blocks of a table with many blocks are solved side by side as well.
//!
//! The factors take about `width` + 80 symbols a slot, and a window usually takes less than 1 MiB a thread. Every level gives
//! the symbols of the reference, whose page has the reason (`hush-ops/src/reference/band_solve.rs`).
//!
//! Bytes and words share all code but the innermost kernels. Bytes have a separate kernel with AVX-512 VNNI; words multiply in
//! 32-bit lanes at every level.
//!
//! The AMX level uses the AVX-512 kernel. Its multiplications are a third of the time, and the rest is coefficients and
//! memory, so tiles would gain little.

mod avx512;
mod factor;
mod panels;
mod portable;
mod shared_slots;
mod substitute;

use hush_ops::{
    OpsError,
    contract::{BandSystem, FilterOps},
    symbol::Symbol,
};
use rayon::prelude::*;

use self::{
    shared_slots::SharedSlots,
    substitute::{Kernel, Values, stripe},
};
use crate::{
    Cpu, Level,
    kernels::{by_level, with_lanes},
};

impl FilterOps for Cpu {
    fn run_band_solve(
        &self,
        system: &BandSystem,
        values: &[u8],
        size: usize,
        slots: &mut [u8],
    ) -> Result<(), OpsError> {
        solve(self, &byte_kernel(self.level()), system, Values { symbols: values, size }, slots)
    }

    fn run_band_solve_words(
        &self,
        system: &BandSystem,
        values: &[u32],
        size: usize,
        slots: &mut [u32],
    ) -> Result<(), OpsError> {
        solve(self, &portable_kernel(self.level()), system, Values { symbols: values, size }, slots)
    }
}

fn byte_kernel(level: Level) -> Kernel<u8> {
    by_level!(level, {
        portable: portable_kernel(level),
        x86: {
            Level::Avx2 => portable_kernel(level),
            Level::Avx512 | Level::Avx512Ifma | Level::Amx => avx512::AVX512,
        },
        arm: { Level::Neon | Level::Dotprod | Level::I8mm => portable_kernel(level) }
    })
}

fn portable_kernel<S: Symbol>(level: Level) -> Kernel<S> {
    with_lanes!(level, L => portable::kernel::<S, L>())
}

/// Solves `system` with `kernel`, which must be for the level of `cpu`.
fn solve<S: Symbol>(
    cpu: &Cpu,
    kernel: &Kernel<S>,
    system: &BandSystem,
    values: Values<'_, S>,
    slots: &mut [S],
) -> Result<(), OpsError> {
    let size = values.size;
    cpu.install(|| {
        let factors = factor::factor(cpu.level(), system)?;
        let slots = SharedSlots::new(slots, size);
        (0..size.div_ceil(stripe::<S>())).into_par_iter().for_each(|index| {
            let columns = index * stripe::<S>()..size.min((index + 1) * stripe::<S>());
            // SAFETY: the maker of the backend promised that the machine has its level, and each stripe has its own columns.
            unsafe { substitute::solve_stripe(kernel, &factors, values, columns, &slots) };
        });
        Ok(())
    })
}
