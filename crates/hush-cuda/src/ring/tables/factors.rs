//! The multipliers of transforms in the layout of the kernels (`kernels/ntt.cuh`).

use hush_math::ntt::NttPlan;

use super::arithmetic::Arithmetic;

/// The words that a thread holds, and the factors that it reads for a pass.
const GROUP: usize = 16;
/// The layers of butterflies within [`GROUP`] words.
const PASS_LAYERS: u32 = 4;

/// Returns the number of words of the factors of one transform of degree `degree`.
pub(in crate::ring) fn table_words(degree: usize) -> usize {
    2 * (GROUP + if has_middle(degree) { GROUP * GROUP } else { 0 } + degree)
}

/// Returns the table of the forward transform.
pub(in crate::ring) fn forward_table(arithmetic: Arithmetic, plan: &NttPlan) -> Vec<u32> {
    table(arithmetic, plan, &plan.forward_twiddles().factors)
}

/// Returns the table of the inverse transform, with the factor 1/N.
pub(in crate::ring) fn inverse_table(arithmetic: Arithmetic, plan: &NttPlan) -> Vec<u32> {
    let factors = &plan.inverse_twiddles().factors;
    let mut table = table(arithmetic, plan, factors);
    let modulus = plan.modulus();
    let scale = plan.inverse_scale().0;
    table[..2].copy_from_slice(&arithmetic.factor(modulus, scale));
    table[2..4].copy_from_slice(&arithmetic.factor(modulus, modulus.mul(factors[1], scale)));
    table
}

fn has_middle(degree: usize) -> bool {
    degree > GROUP * GROUP
}

/// Returns the factors of the top, middle and bottom pass: [`NttPlan`]'s multipliers in the order in which threads read them.
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
    // Factors come in pairs; the pairs of all threads lie side by side.
    let layers = degree.ilog2() - before;
    let threads: Vec<Vec<u32>> = (0..degree / GROUP).map(|thread| group(before, layers, thread)).collect();
    for pair in 0..GROUP / 2 {
        words.extend(threads.iter().flat_map(|words| &words[4 * pair..][..4]));
    }
    words
}

/// Returns the factors of one thread for a pass of `layers` layers with `before` layers before it. In each of its groups of
/// `2^layers` factors, factor `2^layer + block` belongs to a block of a layer. `thread` counts the sets of distinct factors.
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
