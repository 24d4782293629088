//! Fourier transforms of the polynomials of a plane, with a power of X as root of unity (`kernels/power_terms.cu`).

use hush_ops::OpsError;
use zerocopy::{Immutable, IntoBytes};

use super::{pair_kernel::LIMBS, views::FractionLift};
use crate::{
    device::{Arg, Buffer, CudaError, Device, Launch, Slice},
    pack::PackColumns,
    ring::RingTables,
};

/// The threads of a block.
const THREADS: u32 = 128;
/// log2 of the largest radix.
const LOG_RADIX: u32 = 3;

/// The packed words from which the polynomials of some planes are lifted.
pub(super) struct LiftedWords<'a> {
    /// The words: `[query][row]`.
    pub(super) words: Slice<'a, u32>,
    /// The first plane, counted over all queries.
    pub(super) first_unit: usize,
    /// The number of planes.
    pub(super) units: usize,
    pub(super) shape: &'a PackColumns,
    pub(super) lift: &'a FractionLift,
}

/// Computes `c_k = sum_j X^(-2N j k / T) x_j` for the `terms` = T polynomials of each plane, `[unit][j][limb][coefficient]`.
pub(super) fn transform(
    device: &Device,
    ring: &RingTables,
    polys: Buffer<u32>,
    terms: usize,
) -> Result<Buffer<u32>, OpsError> {
    let units = polys.len() / (terms * ring.poly_words());
    let passes = if terms > 1 { passes(terms, ring.degree().words()) } else { Vec::new() };
    Ok(transform_from(device, ring, polys, &passes, units)?)
}

/// Lifts packed words to polynomials, then transforms them.
pub(super) fn lift_and_transform(
    device: &Device,
    ring: &RingTables,
    from: &LiftedWords<'_>,
    terms: usize,
) -> Result<Buffer<u32>, OpsError> {
    let lifted = device.alloc(from.units * terms * ring.poly_words())?;
    let passes = passes(terms, ring.degree().words());
    let (first, rest) = passes.split_first().expect("there is a pass");
    let args = [
        (&lifted).into(),
        from.words.into(),
        (from.first_unit as u32).into(),
        Arg::of(from.shape),
        Arg::of(first),
        Arg::of(from.lift),
        ring.view(),
    ];
    device.launch("power_terms_lift", first.launch(from.units), &args)?;
    Ok(transform_from(device, ring, lifted, rest, from.units)?)
}

/// Runs the remaining passes on `polys`.
fn transform_from(
    device: &Device,
    ring: &RingTables,
    mut polys: Buffer<u32>,
    passes: &[TermsPass],
    units: usize,
) -> Result<Buffer<u32>, CudaError> {
    for pass in passes {
        let transformed = device.alloc(polys.len())?;
        let args = [(&transformed).into(), (&polys).into(), Arg::of(pass), ring.view()];
        device.launch("power_terms", pass.launch(units), &args)?;
        polys = transformed;
    }
    Ok(polys)
}

/// The struct `TermsPass` of `kernels/power_terms.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Immutable, IntoBytes)]
struct TermsPass {
    terms: u32,
    done: u32,
    radix: u32,
    degree: u32,
}

const _: () = assert!(size_of::<TermsPass>() == 16);

/// Returns the passes for T = `terms`, a power of two. The smallest radix comes first, because the first pass also lifts.
fn passes(terms: usize, degree: usize) -> Vec<TermsPass> {
    let terms = terms as u32;
    let log = terms.trailing_zeros();
    let eights = std::iter::repeat_n(LOG_RADIX, (log / LOG_RADIX) as usize);
    let first = (!log.is_multiple_of(LOG_RADIX) || log == 0).then_some(log % LOG_RADIX);
    let mut done = 1;
    first
        .into_iter()
        .chain(eights)
        .map(|log_radix: u32| {
            let pass = TermsPass { terms, done, radix: 1u32 << log_radix, degree: degree as u32 };
            done <<= log_radix;
            pass
        })
        .collect()
}

impl TermsPass {
    /// Returns the launch for `units` planes.
    fn launch(&self, units: usize) -> Launch {
        let coefficients = if self.radix < 4 { 1 } else { self.radix / 2 };
        let threads = self.terms / self.radix * LIMBS as u32 * self.degree / coefficients;
        Launch::grid([threads.div_ceil(THREADS), units as u32, 1], THREADS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn radices_make_up_the_number_of_terms() {
        for log in 0..=12 {
            let passes = passes(1 << log, 2048);
            let mut done = 1;
            for pass in &passes {
                assert_eq!(pass.done, done);
                assert!([1, 2, 4, 8].contains(&pass.radix));
                done *= pass.radix;
            }
            assert_eq!(done, 1 << log);
            assert_eq!(passes.len(), (log as usize).div_ceil(3).max(1));
        }
    }
}
