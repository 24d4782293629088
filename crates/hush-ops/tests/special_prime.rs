//! OnionPIRv2's printed set, N = 2048 with plaintexts of 16 bits, whose keys for Subs have a special prime p as in SEAL: the errors
//! of keys are divided by p. `docs/explanation/notes/ring-parameters.md` says why no set here has one.

use hush_he::{
    algorithms::{drop_primes, encrypt_ring_query, open_ring_query},
    entities::{RingSecrets, RlweCiphertext},
    params::{ONIONPIRV2_N2048_2X30_SEC113, RingContext},
};
use hush_math::{
    csprng::Csprng,
    gadget::Gadget,
    modulus::find_primes,
    poly::{Eval, Poly},
    ring::Ring,
    samplers::GaussianTable,
};

/// The digits of a value modulo q: one for each prime of q, as long as it.
const DIGITS: Gadget = Gadget::new(30, 2, 1);
/// The bits of a plaintext coefficient, and the rows of the first dimension (sections 4.1 and 4.2).
const PLAINTEXT_BITS: i32 = 16;
const ROWS: f64 = 512.0;

/// Returns a key that switches from `old` to `s`, modulo q p: for each digit an encryption of `p g_k old`.
fn key(big: &Ring, s: &Poly<Eval>, old: &Poly<Eval>, rng: &mut Csprng) -> Vec<RlweCiphertext> {
    let special = u128::from(big.moduli()[2].value());
    let errors = GaussianTable::new(ONIONPIRV2_N2048_2X30_SEC113.error_std());
    let rows = (0..DIGITS.digits).map(|k: usize| {
        let a: Poly<Eval> = big.expand_uniform(rng);
        let mut error = vec![0; big.degree()];
        errors.add_to(rng, &mut error);
        let mut b = big.forward(big.from_signed(&error));
        let mut product = a.clone();
        big.mul(&mut product, s);
        big.sub(&mut b, &product);
        for (limb, prime) in big.moduli().iter().enumerate() {
            let factor = big.rns().reduce(special << DIGITS.log2_factor(k), limb);
            let words = b.limb_mut(limb).iter_mut().zip(old.limb(limb));
            words.for_each(|(b, &old)| *b = prime.add(*b, prime.mul(factor, old)));
        }
        RlweCiphertext { a, b }
    });
    rows.collect()
}

/// Returns a ciphertext of `m(X^exponent)` from one of `m`, by a key modulo q p, whose product is divided by p.
fn substitute(
    rings: (&Ring, &Ring),
    x: &RlweCiphertext,
    exponent: usize,
    key: &[RlweCiphertext],
) -> RlweCiphertext {
    let (q, big) = rings;
    let coefficients = q.inverse(q.automorphism(&x.a, exponent));
    let centred: Vec<_> =
        (0..q.degree()).map(|i| q.rns().lift_centred(|limb| coefficients.limb(limb)[i])).collect();
    let mut sum = RlweCiphertext { a: big.zero(), b: big.zero() };
    for (k, row) in key.iter().enumerate() {
        let digits: Vec<_> = centred.iter().map(|&x: &i128| DIGITS.digit(x, k) as u32).collect();
        let digits = big.forward(big.from_signed(&digits));
        big.mul_add(&mut sum.a, &digits, &row.a);
        big.mul_add(&mut sum.b, &digits, &row.b);
    }
    let mut image = RlweCiphertext { a: drop_primes(big, q, sum.a), b: drop_primes(big, q, sum.b) };
    q.add(&mut image.b, &q.automorphism(&x.b, exponent));
    image
}

/// Returns the variance of the phase of the first leaf, which encrypts 0.
fn leaf_variance(seed: u64) -> f64 {
    let set = ONIONPIRV2_N2048_2X30_SEC113;
    let rng = &mut Csprng::insecure_from_seed(seed);
    let context = RingContext::new(set);
    let q = context.kept();
    let mut primes: Vec<_> = q.moduli().iter().map(|prime| prime.value()).collect();
    primes.extend(find_primes(set.degree(), 30, 8).into_iter().find(|prime| !primes.contains(prime)));
    let big = Ring::new(set.degree(), &primes);
    let secrets = RingSecrets::from_seed(&set, &[seed as u8; 32]);
    let [s, s_big] = [q, &big].map(|ring| secrets.query.eval(ring));
    // The last row is asked for, so that the first leaf encrypts 0.
    let selectors: Vec<_> = (0..256).map(|row| u32::from(row == 255)).collect();
    let query = encrypt_ring_query(&context, &secrets, &selectors, &[], rng);
    let mut node = open_ring_query(&context, selectors.len(), 0, &query).unwrap();
    for level in 0..set.levels().len() {
        let exponent = set.level_exponent(level);
        let key = key(&big, &s_big, &big.automorphism(&s_big, exponent), rng);
        let image = substitute((q, &big), &node, exponent, &key);
        q.add(&mut node.a, &image.a);
        q.add(&mut node.b, &image.b);
    }
    let mut phase = node.a;
    q.mul(&mut phase, &s);
    q.add(&mut phase, &node.b);
    let phase = q.inverse(phase);
    let square = |i| (q.rns().lift_centred(|limb: usize| phase.limb(limb)[i]) as f64).powi(2);
    (0..q.degree()).map(square).sum::<f64>() / q.degree() as f64
}

#[test]
fn the_printed_set_decodes_with_a_special_prime() {
    let set = ONIONPIRV2_N2048_2X30_SEC113;
    let n = set.degree() as f64;
    let error = set.error_std().powi(2);
    // A Subs adds two digits times errors over p, which is as long as a digit, and the rounding of the division.
    let subs = 2.0 * n / 12.0 * error + (1.0 + 2.0 * n / 3.0) / 12.0;
    let levels = set.levels().len() as i32;
    let predicted = 2f64.powi(levels) * error / 4f64.powi(levels) + (2f64.powi(levels) - 1.0) * subs;
    let measured = (0..4).map(leaf_variance).sum::<f64>() / 4.0;
    let off = (measured / predicted).log2() / 2.0;
    assert!(off.abs() < 0.3, "a leaf is {off:.2} bits off 2^{:.1}", predicted.log2() / 2.0);
    // The first dimension multiplies by uniform plaintexts: the step that decides.
    let first = ROWS * n * 4f64.powi(PLAINTEXT_BITS) / 12.0 * measured;
    let limit = 2f64.powi(60 - PLAINTEXT_BITS - 1);
    let sigmas = limit / first.sqrt();
    assert!((150.0..230.0).contains(&sigmas), "{sigmas:.0} standard deviations");
}
