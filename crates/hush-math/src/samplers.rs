//! Samplers of secrets and errors, constant time in what they sample.

use crate::csprng::Csprng;

/// Fills `out` with uniform ternary values {-1, 0, 1} as words modulo 2^32.
///
/// Each value is the high word of `3 * r` for a uniform 64-bit `r`, minus 1: bias below 2^-62, no branch, no rejection.
/// Source: Lemire, "Fast random integer generation in an interval", without the rejection step.
pub fn sample_ternary(rng: &mut Csprng, out: &mut [u32]) {
    for word in out {
        let digit = ((u128::from(rng.next_u64()) * 3) >> 64) as u32;
        *word = digit.wrapping_sub(1);
    }
}

/// Fills `out` with uniform bits as words. Constant time.
pub fn sample_binary(rng: &mut Csprng, out: &mut [u32]) {
    for word in out {
        *word = rng.next_u32() & 1;
    }
}

/// A centred discrete Gaussian over the integers, sampled by comparing with its whole cumulative table.
pub struct GaussianTable {
    /// The cumulative table: `cumulative[k]` = floor(2^63 * P(|x| <= k)).
    cumulative: Vec<u64>,
}

impl GaussianTable {
    /// Creates the table for standard deviation `std` (0 < std <= 1000), cut at 9 std: the omitted tail is below 2^-60.
    ///
    /// Source: inversion sampling from a table, Peikert, "An efficient and parallel Gaussian sampler for lattices".
    pub fn new(std: f64) -> Self {
        let cut = (9.0 * std).ceil() as u32;
        let weight =
            |k: u32| (-f64::from(k).powi(2) / (2.0 * std * std)).exp() * if k == 0 { 1.0 } else { 2.0 };
        let total: f64 = (0..=cut).map(weight).sum();
        let mut sum = 0.0;
        let cumulative = (0..cut)
            .map(|k| {
                sum += weight(k) / total;
                (sum * 2f64.powi(63)) as u64
            })
            .collect();
        Self { cumulative }
    }

    /// Adds a fresh sample to every word of `out` modulo 2^32. Source: FrodoKEM (Frodo.Sample), which reads the whole table too.
    pub fn add_to(&self, rng: &mut Csprng, out: &mut [u32]) {
        for word in out {
            let bits = rng.next_u64();
            let sign = (bits >> 63) as u32;
            let uniform = bits & (u64::MAX >> 1);
            // Every entry is compared, so that the time does not depend on the sample.
            let magnitude =
                self.cumulative.iter().map(|&c| (c.wrapping_sub(uniform + 1) >> 63) as u32).sum::<u32>();
            *word = word.wrapping_add((magnitude ^ sign.wrapping_neg()).wrapping_add(sign));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ternary_is_uniform() {
        let mut out = vec![7; 300_000];
        sample_ternary(&mut Csprng::insecure_from_seed(1), &mut out);
        for value in [u32::MAX, 0, 1] {
            let count = out.iter().filter(|&&x| x == value).count() as f64;
            assert!((count - 100_000.0).abs() < 1_500.0, "{value}: {count}");
        }
    }

    #[test]
    fn gaussian_has_its_moments_and_tails() {
        for std in [0.8, 3.2, 6.4] {
            let mut out = vec![0; 400_000];
            GaussianTable::new(std).add_to(&mut Csprng::insecure_from_seed(2), &mut out);
            let values: Vec<f64> = out.iter().map(|&x| f64::from(x as i32)).collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let var = values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64;
            let fourth = values.iter().map(|x| x.powi(4)).sum::<f64>() / values.len() as f64;
            assert!(mean.abs() < 0.02 * std, "mean {mean}");
            assert!((var.sqrt() / std - 1.0).abs() < 0.01, "std {}", var.sqrt());
            assert!((fourth / (3.0 * var * var) - 1.0).abs() < 0.05, "kurtosis");
            assert!(values.iter().all(|x| x.abs() <= 9.0 * std + 1.0));
        }
    }
}
