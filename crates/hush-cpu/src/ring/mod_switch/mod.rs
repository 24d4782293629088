//! The switch of polynomials modulo Q_1 to powers of two. `narrow_switch.rs` does it in vectors if the result fits a word.

mod narrow_switch;

use hush_math::rns::Rns;
use hush_ops::contract::{BatchWords, SentPoly};
use rayon::prelude::*;

use self::narrow_switch::NarrowSwitch;
use super::{ModRing, tables::CpuRing};
use crate::Cpu;

/// Computes [`hush_ops::contract::RingOps::mod_switch`] for operands that fit together.
pub(super) fn mod_switch(
    cpu: &Cpu,
    ring: &CpuRing,
    polys: &[&BatchWords],
    first: usize,
    sent: &[SentPoly],
) -> Vec<Vec<u8>> {
    let words = ring.kept.words();
    cpu.install(|| {
        polys
            .par_iter()
            .map(|polys: &&BatchWords| {
                let sent_polys =
                    polys[first * words..][..sent.len() * words].par_chunks_exact(words).zip(sent);
                sent_polys
                    .map(|(poly, sent): (&[u32], &SentPoly)| {
                        let mut out = Vec::with_capacity(sent.bytes());
                        sent.pack(&switched(cpu, ring, poly, sent.bits), &mut out);
                        out
                    })
                    .collect::<Vec<_>>()
                    .concat()
            })
            .collect()
    })
}

/// Switches a polynomial modulo Q_1 to `2^bits`. Runs on a thread of the backend.
pub(crate) fn switched(cpu: &Cpu, ring: &CpuRing, poly: &[u32], bits: u32) -> Vec<u64> {
    let rns = ring.context().kept().rns();
    cpu.with_workspace(|workspace| {
        let (words, transform) = workspace.ring_buffers(poly.len(), ring.kept.transform_words());
        words.copy_from_slice(poly);
        ring.kept.inverse(words, transform);
        PowerSwitch::new(&ring.kept, rns, bits).words(&ring.kept, words)
    })
}

/// The rounding of coefficients modulo Q to a power of two: in vectors if that is exact.
pub(crate) enum PowerSwitch<'a> {
    Narrow(NarrowSwitch),
    Wide(&'a Rns, Switch),
}

impl<'a> PowerSwitch<'a> {
    /// Creates `round(x 2^bits / Q) mod 2^bits`, half up, for at most 48 bits. `rns` is the base of the ring.
    pub(crate) fn new(ring: &ModRing, rns: &'a Rns, bits: u32) -> Self {
        let narrow = NarrowSwitch::new(ring, rns, bits).map(Self::Narrow);
        narrow.unwrap_or_else(|| Self::Wide(rns, Switch::new(rns.product(), bits)))
    }

    /// Returns the results for the coefficients whose residues are `words`. Overwrites `words`.
    fn words(&self, ring: &ModRing, words: &mut [u32]) -> Vec<u64> {
        match self {
            Self::Narrow(switch) => switch.apply(ring, words).iter().map(|&word| u64::from(word)).collect(),
            Self::Wide(rns, switch) => (0..ring.degree()).map(|i| switch.at(rns, words, i)).collect(),
        }
    }

    /// Adds the results for the first coefficients, modulo 2^32, to as many `sums`. `words` are the residues of all
    /// coefficients, and are overwritten.
    pub(crate) fn add_to(&self, ring: &ModRing, words: &mut [u32], sums: &mut [u32]) {
        match self {
            Self::Narrow(switch) => {
                let rounded = switch.apply(ring, words);
                sums.iter_mut().zip(rounded).for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
            }
            Self::Wide(rns, switch) => {
                let rounded = (0..ring.degree()).map(|i| switch.at(rns, words, i) as u32);
                sums.iter_mut().zip(rounded).for_each(|(sum, word)| *sum = sum.wrapping_add(word));
            }
        }
    }
}

/// The function `round(x 2^bits / Q) mod 2^bits`, half up, for x in `0..Q`.
pub(crate) struct Switch {
    product: u128,
    bits: u32,
    /// The factor 2^bits / Q.
    factor: f64,
}

impl Switch {
    fn new(product: u128, bits: u32) -> Self {
        Self { product, bits, factor: 2f64.powi(bits as i32) / product as f64 }
    }

    /// Returns the result for coefficient `i` of the residues `words`.
    fn at(&self, rns: &Rns, words: &[u32], i: usize) -> u64 {
        let degree = words.len() / rns.limbs();
        self.apply(rns.lift(|limb| words[limb * degree + i]))
    }

    fn apply(&self, x: u128) -> u64 {
        // The estimate is off by less than 2^-3 for up to 48 bits before it is cut, so the quotient is off by at most 1. The exact
        // remainder shows that; it is small, so it is exact modulo 2^128.
        let estimate = (x as f64 * self.factor + 0.5) as u64;
        let rounded = (x << self.bits).wrapping_add(self.product / 2);
        let rest = rounded.wrapping_sub(self.product.wrapping_mul(u128::from(estimate))) as i128;
        let quotient = if rest < 0 {
            estimate - 1
        } else if rest >= self.product as i128 {
            estimate + 1
        } else {
            estimate
        };
        quotient & (u64::MAX >> (64 - self.bits))
    }
}

#[cfg(test)]
mod tests {
    use hush_math::{csprng::Csprng, modulus::find_primes, ring::Ring};

    use super::*;
    use crate::Level;

    const DEGREE: usize = 64;

    /// Returns values about the limits between two results, and random ones.
    fn values(product: u128, bits: u32, rng: &mut Csprng) -> Vec<u128> {
        let edges = [0, 1, product / 2, product / 2 + 1, product - 1];
        let mut values = edges.to_vec();
        while values.len() < DEGREE - 1 {
            let x = (u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())) % product;
            // The limit is (k + 1/2) Q / 2^bits, for the k of x.
            let k = (x << bits) / product;
            let limit = ((2 * k + 1) * product) >> (bits + 1);
            values.extend([x, limit % product, (limit + 1) % product]);
        }
        values.truncate(DEGREE);
        values.resize(DEGREE, product - 1);
        values
    }

    #[test]
    fn vectors_round_as_the_scalar_does() {
        let mut rng = Csprng::insecure_from_seed(5);
        for (limbs, widths) in [(1, 14..=32), (2, 14..=31), (3, 27..=31)] {
            for prime_bits in widths {
                let base = Ring::new(DEGREE, &find_primes(DEGREE, prime_bits, limbs));
                let rns = base.rns();
                for bits in 1..=48u32.min(127 - limbs as u32 * 32) {
                    let values = values(rns.product(), bits, &mut rng);
                    let words: Vec<u32> = (0..limbs)
                        .flat_map(|limb| values.iter().map(move |&x| rns.reduce(x, limb)))
                        .collect();
                    let switch = Switch::new(rns.product(), bits);
                    let expected: Vec<u64> = values.iter().map(|&x| switch.apply(x)).collect();
                    for level in Level::usable() {
                        let ring = ModRing::new(level, &base);
                        let switch = PowerSwitch::new(&ring, rns, bits);
                        let switched = switch.words(&ring, &mut words.clone());
                        assert!(switched == expected, "{level}, {limbs} x {prime_bits} bits to {bits}");
                        let mut sums = vec![7; DEGREE - 3];
                        switch.add_to(&ring, &mut words.clone(), &mut sums);
                        let added = sums
                            .iter()
                            .zip(&expected)
                            .all(|(&sum, &word)| sum == 7u32.wrapping_add(word as u32));
                        assert!(added, "{level}, {limbs} x {prime_bits} bits to {bits}, added");
                    }
                }
            }
        }
    }
}
