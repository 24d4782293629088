//! Tests of every level of this machine against the plan, bit for bit.

use hush_math::{csprng::Csprng, modulus::find_primes};

use super::Ntt;
use crate::{AlignedBuffer, Level};

/// Returns random values, and the extremes.
fn inputs(p: u32, degree: usize) -> Vec<Vec<u32>> {
    let mut rng = Csprng::insecure_from_seed(u64::from(p));
    let top = p - 1;
    let alternating =
        |even: u32, odd: u32| (0..degree).map(|i| if i % 2 == 0 { even } else { odd }).collect();
    let mut inputs: Vec<Vec<u32>> = vec![
        vec![0; degree],
        vec![top; degree],
        alternating(0, top),
        alternating(top, 0),
        (0..degree).map(|i| if i < degree / 2 { top } else { 0 }).collect(),
        (0..degree).map(|i| if i < degree / 2 { 0 } else { top }).collect(),
    ];
    for hot in [0, 1, degree / 2, degree - 1] {
        let mut values = vec![0; degree];
        values[hot] = top;
        inputs.push(values);
    }
    for _ in 0..3 {
        inputs.push((0..degree).map(|_| rng.next_u32() % p).collect());
    }
    inputs
}

fn check(level: Level, modulus: u32, degree: usize) {
    let ntt = Ntt::new(level, modulus, degree);
    let mut scratch = AlignedBuffer::<u64>::zeroed(ntt.scratch_words() + 1);
    // The buffer has one word too many, as nothing may depend on the alignment.
    let mut values = AlignedBuffer::<u32>::zeroed(degree + 1);
    for (index, input) in inputs(modulus, degree).into_iter().enumerate() {
        let skew = index % 2;
        let values = &mut values[skew..][..degree];
        let scratch = &mut scratch[skew..];
        let mut expected = input.clone();
        values.copy_from_slice(&input);
        ntt.plan().forward(&mut expected);
        ntt.forward(values, scratch);
        assert!(*values == *expected, "forward, {level}, p = {modulus}, N = {degree}, input {index}");
        // The inverse is checked on the outcome, and on the input as if it were an outcome.
        ntt.inverse(values, scratch);
        assert!(*values == *input, "round trip, {level}, p = {modulus}, N = {degree}, input {index}");
        let mut expected = input.clone();
        ntt.plan().inverse(&mut expected);
        ntt.inverse(values, scratch);
        assert!(*values == *expected, "inverse, {level}, p = {modulus}, N = {degree}, input {index}");
    }
}

#[test]
fn levels_match_the_plan() {
    for level in Level::usable() {
        for bits in [21, 26, 29, 30, 31, 32] {
            for degree in [16, 128, 256, 512, 1024, 2048, 4096, 8192, 16384] {
                check(level, find_primes(degree, bits, 1)[0], degree);
            }
        }
    }
}
