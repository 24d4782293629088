//! Polynomials modulo Q_1 to powers of two.

use hush_he::{algorithms::switch_to_power_of_two, params::RingContext};
use hush_math::poly::Poly;

use crate::contract::{SentPoly, pack_polys, poly_words};

/// As [`crate::contract::RingOps::mod_switch`], for one query.
pub(super) fn mod_switch(ring: &RingContext, polys: &[u32], first: usize, sent: &[SentPoly]) -> Vec<u8> {
    let bits: Vec<u32> = sent.iter().map(|sent| sent.bits).collect();
    pack_polys(&switched(ring, polys, first, &bits), sent)
}

/// The polynomials from `first` on, one for each width.
pub(super) fn switched(ring: &RingContext, polys: &[u32], first: usize, bits: &[u32]) -> Vec<Vec<u64>> {
    let kept = ring.kept();
    let switch = |(poly, &bits): (&[u32], &u32)| {
        let poly = kept.inverse(Poly::from_words(poly.to_vec(), kept.degree()));
        switch_to_power_of_two(kept, &poly, bits)
    };
    polys.chunks_exact(poly_words(ring)).skip(first).zip(bits).map(switch).collect()
}
