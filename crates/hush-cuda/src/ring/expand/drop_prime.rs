//! The division by the dropped prime: from R modulo Q_e to R modulo Q_1.

use hush_ops::OpsError;

use crate::{
    device::{Device, Slice},
    ring::{CudaRing, tables::addresses::addresses},
};

/// Rounds polynomials modulo Q_e to polynomials modulo Q_1, like [`hush_he::algorithms::drop_primes`], with one launch for all of
/// `parts`. A part is a source and a target, both `[poly][limb][slot]`. All parts have the same number of polynomials.
pub(super) fn drop_prime(
    device: &Device,
    ring: &CudaRing,
    parts: &[(Slice<'_, u32>, Slice<'_, u32>)],
) -> Result<(), OpsError> {
    let Some(inverses) = &ring.expansion().inverses else {
        return Ok(parts.iter().try_for_each(|(from, to)| device.copy(from, to))?);
    };
    let polys = parts.first().map_or(0, |(from, _)| from.len() / ring.full().poly_words());
    let from = addresses(device, parts.iter().map(|part| part.0))?;
    let to = addresses(device, parts.iter().map(|part| part.1))?;
    let launch = ring.full().degree().launch([polys as u32, parts.len() as u32, 1], 1);
    let args = [(&to).into(), (&from).into(), inverses.into(), ring.full().view()];
    Ok(device.launch(ring.full().pick(["drop_prime"; 4], "drop_prime_wide"), launch, &args)?)
}
