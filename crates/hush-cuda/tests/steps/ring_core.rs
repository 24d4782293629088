//! Transforms, the lift of plaintexts and the rounding to powers of two, in the emulator and on a GPU, against the reference.

use std::sync::Arc;

use crate::{
    coverage,
    devices::{one_and_gpu, small},
};
use hush_cuda::{
    Cuda,
    device::Device,
    ring::{self, CudaRing, RingTables},
};
use hush_he::params::{
    COLPACK_N2048_Q52, COLUMN_PRESETS, INSECURE_PACK_N256, INSECURE_RING_PLAIN, ONION_M31, ONION_S,
    PACK_PRESETS, ParameterSet, RING_PRESETS, RingContext, RingParams,
};
use hush_math::{
    csprng::Csprng,
    modulus::find_primes,
    poly::{Coeff, Poly},
    ring::Ring,
    rns::Rns,
};
use hush_ops::{
    OpsError,
    contract::{PackOps, RingOps, RlweBatch, SentPoly},
    reference::Reference,
};

fn backends(seed: u64) -> impl Iterator<Item = Cuda> {
    one_and_gpu(seed).into_iter().map(Cuda::new)
}

fn sets() -> Vec<RingParams> {
    let packs = PACK_PRESETS.iter().map(|set| *set.ring());
    let columns = COLUMN_PRESETS.iter().map(|set| *set.ring());
    RING_PRESETS.into_iter().chain(packs).chain(columns).collect()
}

fn context(params: RingParams) -> Arc<RingContext> {
    Arc::new(RingContext::new(params))
}

/// Zeros, the largest residues, every other one the largest, a single one, and random ones.
fn polynomials(ring: &Ring, rng: &mut Csprng) -> Vec<Poly<Coeff>> {
    let pattern = |value: fn(usize, u32) -> u32| {
        let words = ring.moduli().iter().flat_map(|p| (0..ring.degree()).map(|i| value(i, p.value())));
        Poly::from_words(words.collect(), ring.degree())
    };
    vec![
        ring.zero(),
        pattern(|_, p| p - 1),
        pattern(|i, p| if i % 2 == 0 { p - 1 } else { 0 }),
        pattern(|i, _| u32::from(i == 1)),
        ring.expand_uniform(rng),
        ring.expand_uniform(rng),
    ]
}

/// Checks the transforms modulo Q_e and, if a prime is dropped, modulo Q_1.
fn check_set(device: &Device, set: RingParams) {
    let context = context(set);
    let ring = CudaRing::new(device, context.clone()).unwrap();
    check_transforms(device, ring.full(), context.full(), set.name());
    if context.kept().limbs() < context.full().limbs() {
        check_transforms(device, ring.kept(), context.kept(), set.name());
    }
}

fn check_transforms(device: &Device, tables: &RingTables, ring: &Ring, name: &str) {
    let polys = polynomials(ring, &mut Csprng::insecure_from_seed(1));
    let words: Vec<u32> = polys.iter().flat_map(Poly::words).copied().collect();
    let expected: Vec<u32> = polys.into_iter().flat_map(|poly| ring.forward(poly).into_words()).collect();
    let coefficients = device.upload(&words).unwrap();
    let slots = device.alloc(words.len()).unwrap();
    ring::forward(device, tables, &coefficients.slice(..), &slots.slice(..)).unwrap();
    assert!(device.download(&slots.slice(..)).unwrap() == expected, "{name}, forward");
    // In place.
    ring::inverse(device, tables, &slots.slice(..), &slots.slice(..)).unwrap();
    assert!(device.download(&slots.slice(..)).unwrap() == words, "{name}, inverse");
}

#[test]
fn transforms_are_those_of_the_plan() {
    for cuda in [0, 1].into_iter().flat_map(backends) {
        sets().into_iter().for_each(|set| check_set(cuda.device(), set));
    }
}

/// Both primes wide, which those of no set are.
#[test]
fn transforms_modulo_wide_primes() {
    let ring = Ring::new(2048, &find_primes(2048, 32, 2));
    for cuda in backends(1) {
        let tables = RingTables::new(cuda.device(), &ring).unwrap();
        check_transforms(cuda.device(), &tables, &ring, "32 bits");
    }
}

#[test]
fn plaintexts_are_lifted_and_transformed() {
    for cuda in backends(2) {
        sets().into_iter().for_each(|set| check_lift(&cuda, set));
    }
}

/// Lifts the extreme plaintexts and random ones.
fn check_lift(cuda: &Cuda, set: RingParams) {
    let context = context(set);
    let ring = CudaRing::new(cuda.device(), context.clone()).unwrap();
    let half = 1u64 << (set.plaintext_bits() - 1);
    let edges = [0, 1, half - 1, half, half + 1, 2 * half - 1];
    let mut symbols: Vec<u32> = (0..set.degree()).map(|i| edges[i % edges.len()] as u32).collect();
    let mut rng = Csprng::insecure_from_seed(3);
    symbols.extend((0..set.degree()).map(|_| rng.next_u32() & (2 * half - 1) as u32));
    let expected = Reference.ntt_db(&context, &symbols).unwrap();
    assert!(cuda.ntt_db(&ring, &symbols).unwrap() == expected, "{}", set.name());
    assert_eq!(cuda.ntt_db(&ring, &[]), Ok(Vec::new()));
    assert!(cuda.ntt_db(&ring, &symbols[1..]).is_err());
}

/// Values about the limits between two results of `bits` bits, and random ones.
fn values(rns: &Rns, bits: u32, count: usize, rng: &mut Csprng) -> Vec<u128> {
    let q = rns.product();
    let mut values = vec![0, 1, q / 2, q / 2 + 1, q - 1];
    while values.len() < count {
        let x = (u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())) % q;
        values.push(x);
        // (k + 1/2) Q / 2^bits, the largest k included, where that does not overflow.
        if rns.bits() + bits < 127 {
            let k = if x.is_multiple_of(4) { (1 << bits) - 1 } else { (x << bits) / q };
            let limit = ((2 * k + 1) * q) >> (bits + 1);
            values.extend([limit % q, (limit + 1) % q]);
        }
    }
    values.truncate(count);
    values
}

/// Returns a polynomial in evaluation form.
fn poly(ring: &Ring, values: &[u128]) -> Vec<u32> {
    let residues = (0..ring.limbs()).flat_map(|limb| values.iter().map(move |&x| ring.rns().reduce(x, limb)));
    ring.forward(Poly::from_words(residues.collect(), ring.degree())).into_words()
}

/// Switches two batches of a polynomial that is left out and one for each width.
fn check_switch(cuda: &Cuda, context: &Arc<RingContext>, bits: &[u32]) {
    let ring = CudaRing::new(cuda.device(), context.clone()).unwrap();
    let (kept, name) = (context.kept(), context.params().name());
    let mut rng = Csprng::insecure_from_seed(4);
    let batches = [(); 2].map(|()| {
        let widths = [1].iter().chain(bits);
        let polys = widths.map(|&bits| poly(kept, &values(kept.rns(), bits, kept.degree(), &mut rng)));
        polys.flatten().collect::<Vec<u32>>()
    });
    let kept_words = batches.clone().map(Into::into);
    let sent: Vec<_> = bits.iter().map(|&bits| SentPoly::whole(kept.degree(), bits)).collect();
    let expected = Reference.mod_switch(context, &kept_words.each_ref(), 1, &sent).unwrap();
    let uploaded = batches.map(|words| cuda.device().upload(&words).unwrap());
    let switched = cuda.mod_switch(&ring, &uploaded.each_ref(), 1, &sent).unwrap();
    assert!(switched == expected, "{name} to {bits:?} bits");
}

#[test]
fn polynomials_are_switched_to_powers_of_two() {
    for cuda in backends(5) {
        for set in sets() {
            let (context, response) = (context(set), set.response_bits());
            check_switch(&cuda, &context, &[response.a, response.b]);
            check_switch(&cuda, &context, &[32, 48]);
        }
    }
}

#[test]
fn every_width_is_exact() {
    for cuda in backends(0) {
        for name in ["INSECURE_RING_PLAIN", "INSECURE_RING_N256"] {
            let narrow: Vec<u32> = (1..=32).collect();
            let wide: Vec<u32> = (33..=48).collect();
            let context = context(RingParams::named(name).unwrap());
            check_switch(&cuda, &context, &narrow);
            check_switch(&cuda, &context, &wide);
        }
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    backends(0).for_each(|cuda| check_refusals(&cuda));
}

fn check_refusals(cuda: &Cuda) {
    let context = context(INSECURE_RING_PLAIN);
    let ring = CudaRing::new(cuda.device(), context).unwrap();
    let polys = cuda.device().zeroed::<u32>(2 * ring.kept().poly_words()).unwrap();
    let degree = ring.context().params().degree();
    let switch = |first, bits: &[u32]| {
        let sent: Vec<_> = bits.iter().map(|&bits| SentPoly::whole(degree, bits)).collect();
        cuda.mod_switch(&ring, &[&polys], first, &sent)
    };
    assert!(switch(0, &[20, 12]).is_ok());
    assert_eq!(switch(1, &[]), Ok(vec![vec![]]));
    for (first, bits) in [(1, vec![20, 12]), (0, vec![0]), (0, vec![49])] {
        assert!(matches!(switch(first, &bits), Err(OpsError::Shape { .. })));
    }
    // Primes above 2^31 have kernels for one degree and up to two primes, of some steps.
    for (degree, count) in [(64, 1), (4096, 1), (2048, 3)] {
        let wide = Ring::new(degree, &find_primes(degree, 32, count));
        assert!(matches!(RingTables::new(cuda.device(), &wide), Err(OpsError::Backend { .. })));
    }
    let wide = CudaRing::new(cuda.device(), self::context(ONION_S)).unwrap();
    let batch = || RlweBatch {
        ciphertext_words: 2 * wide.kept().poly_words(),
        words: cuda.device().zeroed(2 * wide.kept().poly_words()).unwrap(),
    };
    assert!(matches!(cuda.add_rlwe(&wide, &mut batch(), 0, &batch()), Err(OpsError::Backend { .. })));
}

/// Runs under the sanitizers, where a set on a device takes many seconds: a set of each degree, each on one of the devices.
#[test]
fn small_transforms() {
    let sets =
        [INSECURE_RING_PLAIN, *INSECURE_PACK_N256.ring(), *COLPACK_N2048_Q52.ring(), ONION_S, ONION_M31];
    let backends: Vec<_> = small().into_iter().map(Cuda::new).collect();
    for (cuda, set) in backends.iter().cycle().zip(sets) {
        check_set(cuda.device(), set);
        check_lift(cuda, set);
        check_switch(cuda, &context(set), &[20, 40]);
    }
    coverage::assert_launched(backends.iter().map(Cuda::device), coverage::TRANSFORMS);
}
