//! The primes of a set.

use hush_he::params::RingParams;
use hush_math::modulus::MODULUS_LIMIT;

/// The target for a set of one degree.
pub(crate) struct Target {
    pub(crate) preset: RingParams,
    /// Largest log2 Q_e: below it 128 bits of security, with a bit or half of one to spare.
    pub(crate) max_full_bits: f64,
    pub(crate) max_key_bytes: f64,
    /// Bytes of a packed pair for a byte of its records.
    pub(crate) max_overhead: f64,
    /// Bytes of a query for each leaf.
    pub(crate) max_leaf_bytes: usize,
    /// Numbers of kept primes, and the least bits of each.
    pub(crate) kept: &'static [(usize, u32)],
}

/// The primes of a set, largest first; the dropped one is last.
#[derive(Clone, Debug)]
pub(crate) struct Moduli {
    pub(crate) degree: usize,
    pub(crate) kept: Vec<u32>,
    pub(crate) dropped: Option<u32>,
}

impl Moduli {
    pub(crate) fn limbs(&self) -> usize {
        self.kept.len() + usize::from(self.dropped.is_some())
    }

    pub(crate) fn kept_product(&self) -> u128 {
        self.kept.iter().map(|&p| u128::from(p)).product()
    }

    pub(crate) fn full_product(&self) -> u128 {
        self.kept_product() * u128::from(self.dropped.unwrap_or(1))
    }

    pub(crate) fn name(&self) -> String {
        let bits = |p: u32| f64::from(p).log2();
        let dropped = self.dropped.map_or(String::new(), |p| format!("+{:.1}", bits(p)));
        format!("{}x{:.0}{dropped}", self.kept.len(), bits(self.kept[0]))
    }
}

/// Bits of a number.
pub(crate) fn bits_of(product: u128) -> u32 {
    u128::BITS - product.leading_zeros()
}

fn is_prime(x: u32) -> bool {
    x % 2 == 1 && (3..).step_by(2).take_while(|&d: &u64| d * d <= u64::from(x)).all(|d| u64::from(x) % d != 0)
}

/// Returns the largest primes below `2^log2` that are 1 modulo 2N, without those in `taken`.
pub(crate) fn primes(degree: usize, log2: f64, count: usize, taken: &[u32]) -> Vec<u32> {
    let step = 2 * degree as u32;
    let top = (log2.exp2() as u64).min(u64::from(MODULUS_LIMIT)) as u32;
    let candidates = (1..=(top - 2) / step).rev().map(|k| k * step + 1);
    candidates.filter(|p| !taken.contains(p) && is_prime(*p)).take(count).collect()
}

/// Returns all choices of primes for `target`.
pub(crate) fn all_moduli(target: &Target) -> Vec<Moduli> {
    let degree = target.preset.degree();
    let mut all = Vec::new();
    for &(count, least) in target.kept {
        for bits in least..=32 {
            let kept = primes(degree, f64::from(bits), count, &[]);
            let room = target.max_full_bits - f64::from(bits) * count as f64;
            if room >= 0.0 {
                all.push(Moduli { degree, kept: kept.clone(), dropped: None });
            }
            // As many bits as fit, and some fewer.
            for log2 in (0..=4).map(|less| (room - 2.0 * f64::from(less)).min(32.0 - f64::from(less))) {
                if log2 < 17.0 {
                    break;
                }
                let dropped = Some(primes(degree, log2, 1, &kept)[0]);
                all.push(Moduli { degree, kept: kept.clone(), dropped });
            }
        }
    }
    all
}
