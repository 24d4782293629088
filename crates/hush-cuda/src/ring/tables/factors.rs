//! The multipliers of transforms as kernels take them (`kernels/ntt.cuh`).

use hush_math::{modulus::Modulus, ntt::NttPlan};

use super::{arithmetic::Arithmetic, montgomery_form};

/// Words that a thread holds, and factors that it takes for a pass.
const GROUP: usize = 16;
/// Layers of butterflies within [`GROUP`] words.
const PASS_LAYERS: u32 = 4;

/// The Plantard factor of `w`, a residue modulo a prime below 2^31: `(-w 2^64 mod p) p^-1 mod 2^64`, the low word first.
pub(in crate::ring) fn plantard_factor(modulus: Modulus, w: u32) -> [u32; 2] {
    let p = u64::from(modulus.value());
    let power = modulus.reduce(((1u128 << 64) % u128::from(p)) as u64);
    let scaled = u64::from(modulus.neg(modulus.mul(w, power)));
    let factor = scaled.wrapping_mul(inverse_of_odd(p));
    [factor as u32, (factor >> 32) as u32]
}

/// The factor of `w`, a residue, for `constant_mul` (`kernels/wide_modular.cuh`): `m = w 2^32 mod p` and `m p^-1 mod 2^32`.
pub(in crate::ring) fn montgomery_factor(modulus: Modulus, w: u32) -> [u32; 2] {
    let form = montgomery_form(modulus, w);
    [form, form.wrapping_mul(inverse_of_odd(u64::from(modulus.value())) as u32)]
}

/// `odd^-1 mod 2^64`.
pub(in crate::ring) fn inverse_of_odd(odd: u64) -> u64 {
    // Newton's method: an odd number is its own inverse modulo 8, and each step doubles the bits.
    (0..5).fold(odd, |inverse, _| inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse))))
}

/// Words of the factors of one transform of degree `degree`.
pub(in crate::ring) fn table_words(degree: usize) -> usize {
    2 * (GROUP + if has_middle(degree) { GROUP * GROUP } else { 0 } + degree)
}

/// The factors of the forward transform.
pub(in crate::ring) fn forward_table(arithmetic: Arithmetic, plan: &NttPlan) -> Vec<u32> {
    table(arithmetic, plan, &plan.forward_twiddles().factors)
}

/// The factors of the inverse transform, with 1/N.
pub(in crate::ring) fn inverse_table(arithmetic: Arithmetic, plan: &NttPlan) -> Vec<u32> {
    let factors = &plan.inverse_twiddles().factors;
    let mut table = table(arithmetic, plan, factors);
    let (modulus, scale) = (plan.modulus(), plan.inverse_scale().0);
    table[..2].copy_from_slice(&arithmetic.factor(modulus, scale));
    table[2..4].copy_from_slice(&arithmetic.factor(modulus, modulus.mul(factors[1], scale)));
    table
}

fn has_middle(degree: usize) -> bool {
    degree > GROUP * GROUP
}

/// Top, middle and bottom pass: [`NttPlan`]'s multipliers in the order in which threads take them.
fn table(arithmetic: Arithmetic, plan: &NttPlan, twiddles: &[u32]) -> Vec<u32> {
    let degree = plan.degree();
    let factor = |w| arithmetic.factor(plan.modulus(), w);
    let group = |before, layers, index| group(&factor, twiddles, before, layers, index);
    let mut words = group(0, PASS_LAYERS, 0);
    let mut before = PASS_LAYERS;
    if has_middle(degree) {
        words.extend((0..GROUP).flat_map(|block| group(before, PASS_LAYERS, block)));
        before += PASS_LAYERS;
    }
    // Pairs of factors, and those of all threads side by side.
    let layers = degree.ilog2() - before;
    let threads: Vec<Vec<u32>> = (0..degree / GROUP).map(|thread| group(before, layers, thread)).collect();
    for pair in 0..GROUP / 2 {
        words.extend(threads.iter().flat_map(|words| &words[4 * pair..][..4]));
    }
    words
}

/// The factors of one thread for a pass of `layers` layers with `before` layers before it: word `2^layer + block` of each of
/// its groups of `2^layers` neighbours is that of a block of the layer. `thread` counts what has factors of its own.
fn group(
    factor: &impl Fn(u32) -> [u32; 2],
    twiddles: &[u32],
    before: u32,
    layers: u32,
    thread: usize,
) -> Vec<u32> {
    let mut words = vec![0; 2 * GROUP];
    let groups = GROUP >> layers;
    for group in 0..groups {
        for layer in 0..layers {
            for block in 0..1 << layer {
                let at = (group << layers) + (1 << layer) + block;
                let source = (1 << (before + layer)) + ((thread * groups + group) << layer) + block;
                words[2 * at..][..2].copy_from_slice(&factor(twiddles[source]));
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use hush_math::modulus::find_primes;

    use super::*;

    /// As `plantard_mul` in `kernels/modular.cuh`.
    fn plantard_times(a: u32, [low, high]: [u32; 2], p: u32) -> u32 {
        let word = a.wrapping_mul(high).wrapping_add(high_word(a, low));
        ((u64::from(word) * u64::from(p) + u64::from(p)) >> 32) as u32
    }

    /// As `constant_mul` in `kernels/wide_modular.cuh`.
    fn montgomery_times(a: u32, [form, quotient]: [u32; 2], p: u32) -> u32 {
        let (difference, wraps) = high_word(a, form).overflowing_sub(high_word(a.wrapping_mul(quotient), p));
        if wraps { difference.wrapping_add(p) } else { difference }
    }

    fn high_word(a: u32, b: u32) -> u32 {
        ((u64::from(a) * u64::from(b)) >> 32) as u32
    }

    #[test]
    fn products_are_canonical_for_any_word() {
        let narrow = [3, 7681, 134_176_769, 2_147_377_153, 2_147_483_647];
        let wide = [1_454_081, 2_147_483_659, 4_293_849_089, 4_293_918_689];
        for p in narrow.into_iter().chain(wide) {
            let modulus = Modulus::new(p);
            for w in [0, 1, 2 % p, p / 2, p - 2, p - 1] {
                for a in [0, 1, p - 1, p, p.wrapping_mul(2).wrapping_sub(2), u32::MAX, 1 << 31, 0x9e37_79b9] {
                    let expected = (u64::from(a) * u64::from(w) % u64::from(p)) as u32;
                    let product = montgomery_times(a, montgomery_factor(modulus, w), p);
                    assert_eq!(product, expected, "{a} {w} modulo {p}");
                    if p < 1 << 31 {
                        let product = plantard_times(a, plantard_factor(modulus, w), p);
                        assert_eq!(product, expected, "{a} {w} modulo {p}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_multiplier_is_in_its_table_once() {
        for (degree, bits) in [(64, 31), (256, 31), (2048, 31), (2048, 32), (4096, 31)] {
            let plan = NttPlan::new(find_primes(degree, bits, 1)[0], degree);
            let arithmetic = Arithmetic::of(&[plan.modulus()]);
            let table = forward_table(arithmetic, &plan);
            assert_eq!(table.len(), table_words(degree));
            let mut found: Vec<_> = table.chunks_exact(2).filter(|pair| pair != &[0, 0]).collect();
            let twiddles = plan.forward_twiddles().factors[1..].iter();
            let factors = twiddles.map(|&w| arithmetic.factor(plan.modulus(), w));
            let mut expected: Vec<_> = factors.collect();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{degree}");
        }
    }
}
