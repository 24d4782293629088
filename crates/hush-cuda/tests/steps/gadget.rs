//! The steps over rings that decompose, against the reference.

use std::sync::Arc;

use crate::{
    coverage,
    devices::{one_and_gpu, small, varied},
};
use hush_cuda::{
    Cuda, Stages,
    device::{Buffer, Device},
    ring::{self, Ciphertexts, ExternalProducts},
};
use hush_he::{
    algorithms::external_product,
    entities::{EvaluationKeys, KeySwitchKey, RgswCiphertext, RlweCiphertext, RlwePair},
    params::{
        COLUMN_PRESETS, INSECURE_PACK_N256, INSECURE_PACK_PLAIN, INSECURE_PPIR_N256, INSECURE_PRIVKS_N256,
        INSECURE_PRIVKS_PLAIN, INSECURE_RING_N256, INSECURE_RING_PLAIN, INSECURE_TFHE_N256,
        INSECURE_TFHE_PLAIN, ONION_M31, ONION_S, ONIONPIRV2_N2048_2X30_SEC113, ONIONPIRV2_N4096_4X27_SEC126,
        PACK_M31, PACK_PRESETS, RING_PRESETS, RingContext, RingParams, VIPIR_N4096_3X29,
    },
};
use hush_math::{
    csprng::Csprng,
    gadget::Gadget,
    poly::{Eval, Poly},
    ring::Ring,
};
use hush_ops::{
    contract::{Memory, RingOps, RlweBatch},
    reference::Reference,
};
use hush_testkit::conformance::{Residues, RingCase, RingShape, TfheCase, TfheShape};

const FITS: &str = "the shapes fit";

/// Returns one emulated backend, and that of the GPU, by operations and by whole stages.
fn backends(seed: u64) -> impl Iterator<Item = Cuda> {
    one_and_gpu(seed).into_iter().flat_map(by_stages)
}

/// Returns a device with the kernels of operations, and with those of whole stages.
fn by_stages(device: Device) -> [Cuda; 2] {
    [Stages::Operations, Stages::Whole].map(|stages| Cuda::new(device.clone()).with_stages(stages))
}

fn check(case: &RingCase, backend: &Cuda) {
    case.check_expand(backend);
    case.check_rgsw_fold(backend);
    case.check_pack_pairs(backend);
}

/// Rows, folds, entries, planes, queries.
fn shape([rows, folds, entries, planes, queries]: [usize; 5]) -> RingShape {
    RingShape { rows, folds, entries, planes, queries }
}

#[test]
fn steps_are_those_of_the_reference() {
    let backends: Vec<_> = varied().into_iter().flat_map(by_stages).collect();
    let shapes = [[5, 3, 7, 2, 3], [1, 1, 1, 1, 1], [23, 2, 4, 1, 2], [3, 0, 1, 3, 1]];
    for params in [INSECURE_RING_PLAIN, *INSECURE_PACK_PLAIN.ring()] {
        for (residues, sizes) in Residues::ALL.into_iter().flat_map(|r| shapes.map(|sizes| (r, sizes))) {
            let case = RingCase::new(params, shape(sizes), residues);
            backends.iter().for_each(|backend| check(&case, backend));
        }
    }
    let sizes = [[17, 3, 5, 2, 2], [250, 3, 8, 1, 1]];
    for params in [INSECURE_RING_N256, *INSECURE_PACK_N256.ring()] {
        for (residues, sizes) in Residues::ALL.into_iter().zip(sizes.into_iter().cycle()) {
            let case = RingCase::new(params, shape(sizes), residues);
            backends.iter().for_each(|backend| check(&case, backend));
        }
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let case = RingCase::new(INSECURE_RING_PLAIN, shape([3, 2, 3, 2, 1]), Residues::Random);
    backends(0).for_each(|backend| case.check_refusals(&backend));
}

/// The database in evaluation form on the device, rotations by the kernels of folds.
#[test]
fn steps_of_tfhe_are_those_of_the_reference() {
    let backends: Vec<_> = varied().into_iter().map(Cuda::new).collect();
    let shape = TfheShape { rows: 5, columns: 3, bits: 3, count: 2, queries: 2 };
    let privks = [INSECURE_PRIVKS_N256.ring(), INSECURE_PPIR_N256.ring()];
    let sets = [INSECURE_TFHE_PLAIN.ring(), INSECURE_TFHE_N256.ring()].into_iter().chain(privks);
    for (params, residues) in sets.flat_map(|p| Residues::ALL.map(|r| (p, r))) {
        let case = TfheCase::new(*params, shape, residues);
        backends.iter().for_each(|backend| case.check(backend));
    }
    let case = TfheCase::new(*INSECURE_TFHE_N256.ring(), shape, Residues::Zero);
    case.check_refusals(&backends[0]);
}

/// More columns than are in evaluation form at once.
#[test]
fn symbols_are_folded_some_columns_at_a_time() {
    let shape = TfheShape { rows: 2, columns: 2100, bits: 1, count: 1, queries: 2 };
    let case = TfheCase::new(*INSECURE_TFHE_PLAIN.ring(), shape, Residues::Random);
    for device in one_and_gpu(0) {
        case.check(&Cuda::new(device.clone()));
        case.check(&Cuda::new(device).with_symbols_on_host());
    }
}

/// Checks one to four primes, gadgets of one digit to ten, with and without a prime that is dropped.
#[test]
fn sets_in_use_are_computed_too() {
    for params in [
        ONION_M31,
        ONION_S,
        ONIONPIRV2_N4096_4X27_SEC126,
        ONIONPIRV2_N2048_2X30_SEC113,
        *PACK_M31.ring(),
        *VIPIR_N4096_3X29.ring(),
    ] {
        let case = RingCase::new(params, shape([2, 1, 2, 1, 1]), Residues::Middle);
        backends(7).for_each(|backend| check(&case, &backend));
    }
}

/// Returns the polynomial whose coefficients are those at which digits carry or the sign changes, in turn.
fn extremes(ring: &Ring, gadget: Gadget) -> Poly<Eval> {
    let (rns, q) = (ring.rns(), ring.rns().product());
    let carries = (0..gadget.digits).map(|k| 1 << gadget.log2_factor(k));
    let halves = (0..gadget.digits).map(|k| (1 << gadget.log2_factor(k)) << (gadget.width - 1));
    let near = carries.chain(halves).chain([0, q / 2]).flat_map(|x: u128| [x + q - 1, x, x + 1]);
    let values: Vec<u128> = near.flat_map(|x| [x % q, q - 1 - x % q]).collect();
    let words =
        (0..ring.limbs()).flat_map(|limb| values.iter().cycle().take(ring.degree()).map(move |&x| (limb, x)));
    let words = words.map(|(limb, x)| rns.reduce(x, limb)).collect();
    ring.forward(Poly::from_words(words, ring.degree()))
}

/// Sets of packing by columns have one digit, and no expansion.
#[test]
fn external_products_add_up() {
    let packs = PACK_PRESETS.iter().map(|set| *set.ring());
    let columns = COLUMN_PRESETS.iter().map(|set| *set.ring());
    for params in RING_PRESETS.into_iter().chain(packs).chain(columns) {
        backends(3).for_each(|backend| check_horner(params, &backend));
    }
}

/// `sum = C [x] sum + term`, in place, for two planes of two queries.
fn check_horner(params: RingParams, backend: &Cuda) {
    let context = Arc::new(RingContext::new(params));
    let (ring, kept, device) =
        (backend.open_ring(context.clone()).expect(FITS), context.kept(), backend.device());
    let (gadget, rng) = (params.fold_gadget(), &mut Csprng::insecure_from_seed(6));
    let mut random = || RlweCiphertext { a: kept.expand_uniform(rng), b: kept.expand_uniform(rng) };
    let extreme = || RlweCiphertext { a: extremes(kept, gadget), b: extremes(kept, gadget) };
    let mut rows = || (0..gadget.digits).map(|_| random()).collect::<Vec<_>>();
    let rgsw = [(); 2].map(|()| RgswCiphertext { bottom: rows(), top: rows() });
    let mut sums = [[extreme(), random()], [random(), extreme()]];
    let terms = [[random(), random()], [random(), random()]];

    let keep = |ciphertexts: &[RlweCiphertext]| {
        let words = ciphertexts.iter().flat_map(|c| [c.a.words(), c.b.words()].concat()).collect::<Vec<_>>();
        device.upload(&words).expect("there is room")
    };
    let rgsw_words = rgsw.each_ref().map(|rgsw| keep(&[&rgsw.bottom[..], &rgsw.top[..]].concat()));
    let [sum_words, term_words] = [&sums, &terms].map(|planes| planes.each_ref().map(|planes| keep(planes)));
    let at = |words: &[Buffer<u32>; 2]| {
        ring::addresses(device, words.iter().map(|words| words.slice(..))).expect("there is room")
    };
    let (sums_at, terms_at, rgsw_at) = (at(&sum_words), at(&term_words), at(&rgsw_words));
    let plane = 2 * ring.kept().poly_words();
    let sum = Ciphertexts { bases: sums_at.slice(..), first: 0, step: 0, plane, count: 1 };
    let z = Ciphertexts { bases: terms_at.slice(..), ..sum };
    let products = ExternalProducts {
        round: 0,
        queries: 2,
        planes: 2,
        items: 1,
        out: sum,
        rgsw: rgsw_at.slice(..),
        y: sum,
        x: None,
        z,
    };
    for _ in 0..2 {
        ring::external_products(backend, &ring, &products).expect("the device works");
    }
    for (query, planes) in sums.iter_mut().enumerate() {
        for (sum, term) in planes.iter_mut().zip(&terms[query]) {
            for _ in 0..2 {
                *sum = external_product(kept, &rgsw[query], sum, gadget);
                kept.add(&mut sum.a, &term.a);
                kept.add(&mut sum.b, &term.b);
            }
        }
        let expected = planes.iter().flat_map(|c| [c.a.words(), c.b.words()].concat()).collect::<Vec<_>>();
        let same = *backend.read(&sum_words[query]).expect("the device works") == expected;
        assert!(same, "{}, query {query}", params.name());
    }
}

/// Queries whose coefficients are extreme, by every gadget of a level.
#[test]
fn extreme_queries_are_expanded() {
    for params in [INSECURE_RING_PLAIN, *INSECURE_PACK_PLAIN.ring(), INSECURE_RING_N256, ONION_M31, ONION_S] {
        backends(5).for_each(|backend| check_extremes(params, &backend));
    }
}

fn check_extremes(params: RingParams, backend: &Cuda) {
    let context = Arc::new(RingContext::new(params));
    let full = context.full();
    let gadgets = [params.levels()[0], params.square_gadget()];
    let queries =
        gadgets.map(|gadget| RlweCiphertext { a: extremes(full, gadget), b: extremes(full, gadget) });
    let rng = &mut Csprng::insecure_from_seed(5);
    let mut key = |gadget: &Gadget| KeySwitchKey {
        rows: (0..gadget.digits)
            .map(|_| RlweCiphertext { a: full.expand_uniform(rng), b: full.expand_uniform(rng) })
            .collect(),
    };
    let (levels, square) = (params.levels().iter().map(&mut key).collect(), key(&params.square_gadget()));
    let kept = context.kept();
    let pack = [(); 2].map(|()| {
        let rows = 0..params.pack_gadget().digits;
        rows.map(|_| RlwePair { a: kept.zero(), b: [kept.zero(), kept.zero()] }).collect()
    });
    let keys = EvaluationKeys { levels, square, pack, switch: None, private: None };
    let expected = Reference.expand(&context, &[&keys, &keys], &queries, 1, 1).expect(FITS);
    let ring = backend.open_ring(context.clone()).expect(FITS);
    let keys = backend.open_evaluation_keys(&ring, keys).expect(FITS);
    let expanded = backend.expand(&ring, &[&keys, &keys], &queries, 1, 1).expect(FITS);
    for (expected, actual) in expected.iter().zip(&expanded) {
        let read = |batch: &RlweBatch<Buffer<u32>>| backend.read(&batch.words).expect(FITS).into_owned();
        assert!(read(&actual.selectors) == expected.selectors.words[..], "{}", params.name());
        assert!(read(&actual.bits[0]) == expected.bits[0].words[..], "{}", params.name());
    }
}

/// Runs under the sanitizers: the steps of sets with and without a prime that is dropped, with gadgets of several
/// digits.
#[test]
fn small_steps_over_rings() {
    let sets = [INSECURE_RING_PLAIN, *INSECURE_PACK_PLAIN.ring()];
    let cases = sets.map(|params| RingCase::new(params, shape([3, 2, 3, 2, 2]), Residues::Random));
    let larger = [INSECURE_RING_N256, ONION_S];
    let larger = larger.map(|params| RingCase::new(params, shape([1, 1, 2, 1, 1]), Residues::Random));
    let cases: Vec<_> = cases.into_iter().chain(larger).collect();
    let backends: Vec<_> = small().into_iter().flat_map(by_stages).collect();
    backends.iter().for_each(|backend| cases.iter().for_each(|case| check(case, backend)));
    let shape = TfheShape { rows: 3, columns: 2, bits: 1, count: 1, queries: 1 };
    for set in [*INSECURE_TFHE_PLAIN.ring(), *INSECURE_PRIVKS_PLAIN.ring()] {
        let case = TfheCase::new(set, shape, Residues::Random);
        backends.iter().for_each(|backend| case.check(backend));
    }
    coverage::assert_launched(backends.iter().map(Cuda::device), coverage::GADGET);
}
