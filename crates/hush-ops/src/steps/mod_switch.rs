//! The step `mod_switch`: polynomials modulo Q_1 to powers of two.

use super::*;

/// The largest number of bits to which a coefficient can be switched.
const MAX_SWITCH_BITS: u32 = 48;

/// Checks that `polys` are whole polynomials, that they include those that are sent, and that each of these has a width in range
/// and the coefficients that are sent.
pub(crate) fn check<W: WordStore>(
    ring: &RingContext,
    polys: &[&W],
    first: usize,
    sent: &[SentPoly],
) -> Result<Respond, OpsError> {
    let step = "mod_switch";
    let words = poly_words(ring);
    let end = first + sent.len();
    for polys in polys {
        let count = polys.len() / words;
        OpsError::check_shape(step, "words of all polynomials", count * words, polys.len())?;
        OpsError::check_shape(step, "end of the polynomials", end.min(count), end)?;
    }
    for &SentPoly { bits, stride, count } in sent {
        OpsError::check_shape(step, "bits", bits.clamp(1, MAX_SWITCH_BITS) as usize, bits as usize)?;
        OpsError::check_shape(step, "stride of the coefficients", stride.max(1), stride)?;
        let most = ring.kept().degree().div_ceil(stride);
        OpsError::check_shape(step, "number of coefficients", count.min(most), count)?;
    }
    Ok(Respond { ring: *ring.params(), plaintexts: sent.len() / 2 })
}

/// Returns the bytes of one query that are sent.
pub(crate) fn reference(ring: &RingContext, polys: &[u32], first: usize, sent: &[SentPoly]) -> Vec<u8> {
    let bits: Vec<u32> = sent.iter().map(|sent| sent.bits).collect();
    pack_polys(&switched(ring, polys, first, &bits), sent)
}

/// Switches the polynomials from `first` on, one for each width.
pub(super) fn switched(ring: &RingContext, polys: &[u32], first: usize, bits: &[u32]) -> Vec<Vec<u64>> {
    let kept = ring.kept();
    polys
        .chunks_exact(poly_words(ring))
        .skip(first)
        .zip(bits)
        .map(|(poly, &bits): (&[u32], &u32)| {
            let poly = kept.inverse(Poly::from_words(poly.to_vec(), kept.degree()));
            switch_to_power_of_two(kept, &poly, bits)
        })
        .collect()
}
