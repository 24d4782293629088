//! Tests of every filter, from keys to values.

use hush_math::csprng::Csprng;
use hush_ops::{reference::Reference, symbol::Symbol};
use proptest::prelude::*;

use super::*;

const FINGERPRINT: usize = 8;

fn digests(keys: std::ops::Range<u64>) -> Vec<KeyDigest> {
    keys.map(|key| KeyDigest::new(&[5; 32], &key.to_le_bytes()).unwrap()).collect()
}

/// Returns values of random payloads, each behind its key's fingerprint.
fn values(digests: &[KeyDigest], slot_bytes: usize) -> Vec<u8> {
    let mut values = vec![0; digests.len() * slot_bytes];
    Csprng::insecure_from_seed(1).fill_bytes(&mut values);
    for (digest, value) in digests.iter().zip(values.chunks_exact_mut(slot_bytes.max(1))) {
        let length = FINGERPRINT.min(slot_bytes);
        value[..length].copy_from_slice(digest.fingerprint(length));
    }
    values
}

/// Returns the result of a look-up.
fn look_up<S: Symbol>(
    params: FilterParams,
    digest: &KeyDigest,
    seed: u8,
    slots: &[S],
    slot_size: usize,
) -> Vec<S> {
    let support = params.support(digest, seed);
    assert!(support.windows(2).all(|pair| pair[0].0 < pair[1].0), "ascending slots");
    let mut value = vec![S::default(); slot_size];
    for (slot, coeff) in support {
        assert!((slot as usize) < params.slots);
        for (symbol, slot) in value.iter_mut().zip(&slots[slot as usize * slot_size..]) {
            *symbol = symbol.wrapping_add(S::from(coeff).wrapping_mul(*slot));
        }
    }
    value
}

/// Builds the filter of `keys` keys and looks all of them up.
fn round_trip(kind: FilterKind, keys: u64, slot_bytes: usize) -> (FilterParams, u8, Vec<u8>) {
    let params = FilterParams { kind, slots: kind.slots_for(keys as usize) };
    let digests = digests(0..keys);
    let values = values(&digests, slot_bytes);
    let mut slots = vec![0xaa; params.slots * slot_bytes];
    let seed = params.build(&digests, &values, slot_bytes, &Reference, &mut slots);
    let seed = seed.unwrap_or_else(|error| panic!("{kind}, {keys} keys: {error}"));
    for (digest, value) in digests.iter().zip(values.chunks_exact(slot_bytes.max(1))) {
        assert_eq!(look_up(params, digest, seed, &slots, slot_bytes), value, "{kind}, {keys} keys");
    }
    (params, seed, slots)
}

#[test]
fn every_key_is_found_whatever_the_size() {
    for kind in FilterKind::ALL {
        for keys in (0..20).chain([33, 63, 64, 65, 100, 130, 200, 255, 256, 300, 1000, 1777]) {
            let (_, seed, _) = round_trip(kind, keys, 9);
            assert!(seed < 64, "{kind}, {keys} keys: seed {seed}, the sizing is too tight");
        }
    }
}

#[test]
fn every_slot_size() {
    for kind in FilterKind::ALL {
        for slot_bytes in [0, 1, 14, 40, 1040] {
            round_trip(kind, 200, slot_bytes);
        }
    }
}

#[test]
fn words_are_found_modulo_every_power_of_two() {
    const SIZE: usize = 5;
    for kind in FilterKind::ALL {
        for keys in [0, 1, 2, 30, 64, 200, 245] {
            let params = FilterParams { kind, slots: kind.slots_for(keys) };
            let digests = digests(0..keys as u64);
            let mut rng = Csprng::insecure_from_seed(2);
            let values: Vec<u32> = (0..keys * SIZE).map(|_| rng.next_u32()).collect();
            let mut slots = vec![7; params.slots * SIZE];
            let seed = params.build(&digests, &values, SIZE, &Reference, &mut slots).unwrap();
            assert_eq!(
                params.build::<u8>(&digests, &[], 0, &Reference, &mut []),
                Ok(seed),
                "{kind}: one seed"
            );
            for bits in [8, 22, 32] {
                let mask = u32::MAX >> (32 - bits);
                let masked: Vec<u32> = slots.iter().map(|slot| slot & mask).collect();
                for (digest, value) in digests.iter().zip(values.chunks_exact(SIZE)) {
                    let sums = look_up(params, digest, seed, &masked, SIZE);
                    assert!(sums.iter().zip(value).all(|(sum, value)| (sum ^ value) & mask == 0), "{kind}");
                }
            }
        }
    }
}

#[test]
fn absent_keys_have_wrong_fingerprints() {
    for kind in FilterKind::ALL {
        let (params, seed, slots) = round_trip(kind, 500, 12);
        for digest in digests(1000..3000) {
            let value = look_up(params, &digest, seed, &slots, 12);
            assert_ne!(&value[..FINGERPRINT], digest.fingerprint(FINGERPRINT), "{kind}");
        }
    }
}

#[test]
fn a_build_depends_on_the_set_of_keys_only() {
    for kind in FilterKind::ALL {
        let (params, seed, slots) = round_trip(kind, 300, 16);
        assert_eq!(round_trip(kind, 300, 16), (params, seed, slots.clone()));
        let mut digests = digests(0..300);
        digests.reverse();
        let reversed: Vec<u8> =
            values(&self::digests(0..300), 16).chunks(16).rev().flatten().copied().collect();
        let mut again = vec![0; slots.len()];
        assert_eq!(params.build(&digests, &reversed, 16, &Reference, &mut again), Ok(seed));
        for digest in &digests {
            assert_eq!(look_up(params, digest, seed, &again, 16), look_up(params, digest, seed, &slots, 16));
        }
    }
}

#[test]
fn a_tight_block_is_retried_under_other_seeds() {
    for kind in FilterKind::ALL {
        let keys = kind.capacity(400) as u64 + 2;
        let seeds = (0..40).map(|set| {
            let digests = digests(1000 * set..1000 * set + keys);
            FilterParams { kind, slots: 400 }.build::<u8>(&digests, &[], 0, &Reference, &mut [])
        });
        let seeds: Vec<u8> =
            seeds.map(|seed| seed.unwrap_or_else(|error| panic!("{kind}: {error}"))).collect();
        assert!(seeds.iter().any(|&seed| seed > 0), "{kind} was never retried");
    }
}

#[test]
fn what_cannot_be_built_is_refused() {
    for kind in FilterKind::ALL {
        let build = |keys: &[KeyDigest], slots, out: &mut [u8]| {
            FilterParams { kind, slots }.build(keys, &vec![1; keys.len()], 1, &Reference, out)
        };
        let mut keys = digests(0..20);
        assert_eq!(build(&keys, 19, &mut [0; 19]), Err(FilterError::NoSeed { keys: 20, slots: 19 }));
        assert!(matches!(build(&keys, 80, &mut [0; 79]), Err(FilterError::Shape { expected: 80, .. })));
        assert_eq!(build(&keys[..1], 0, &mut []), Err(FilterError::NoSeed { keys: 1, slots: 0 }));
        assert_eq!(build(&[], 0, &mut []), Ok(0));
        keys.push(keys[3].clone());
        assert_eq!(build(&keys, 80, &mut [0; 80]), Err(FilterError::DuplicateKey));
    }
}

#[test]
fn supports_stay_inside_any_filter() {
    // The client takes the number of slots from a descriptor, so no number may make it panic.
    for kind in FilterKind::ALL {
        for slots in (0..40).chain([63, 64, 65, 255, 256, 257, 1 << 20, u32::MAX as usize]) {
            for digest in digests(0..10) {
                let support = FilterParams { kind, slots }.support(&digest, 3);
                assert!(support.iter().all(|&(slot, _)| (slot as usize) < slots), "{kind}, {slots} slots");
                assert!(slots == 0 || !support.is_empty());
            }
        }
    }
}

#[test]
fn sizes_are_as_documented() {
    for (kind, slots, thousandths) in [
        (FilterKind::Band256, 1 << 15, 1025),
        (FilterKind::Band128, 1 << 15, 1040),
        (FilterKind::Fuse3, 1 << 20, 1130),
        (FilterKind::Fuse4, 1 << 20, 1080),
    ] {
        let capacity = kind.capacity(slots);
        assert!(capacity * thousandths >= slots * 1000, "{kind}: {capacity} keys in {slots} slots");
    }
}

#[test]
fn large_blocks_are_built_at_the_documented_size() {
    round_trip(FilterKind::Band256, FilterKind::Band256.capacity(1 << 15) as u64, 1);
    round_trip(FilterKind::Fuse3, 1 << 20, 1);
    round_trip(FilterKind::Fuse4, 1 << 20, 1);
}

#[test]
fn names_round_trip() {
    for kind in FilterKind::ALL {
        assert_eq!(kind.name().parse(), Ok(kind));
        assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{kind}\""));
        assert_eq!(serde_json::from_str::<FilterKind>(&format!("\"{kind}\"")).unwrap(), kind);
    }
    assert_eq!("band100".parse::<FilterKind>(), Err(UnknownFilter { name: "band100".into() }));
}

proptest! {
    #[test]
    fn capacity_is_the_inverse_of_slots_for(keys in 0usize..200_000, kind in 0usize..6) {
        let kind = FilterKind::ALL[kind];
        let slots = kind.slots_for(keys);
        prop_assert!(slots > 0 && kind.capacity(slots) >= keys);
        prop_assert!(kind.slots_for(keys + 1) >= slots);
        prop_assert!(kind.slots_for(kind.capacity(slots) + 1) > slots);
    }

    #[test]
    fn any_block_can_be_built(first: u32, keys in 0u64..400, extra in 0usize..50, kind in 0usize..6) {
        let kind = FilterKind::ALL[kind];
        let params = FilterParams { kind, slots: kind.slots_for(keys as usize) + extra };
        let digests = digests(u64::from(first)..u64::from(first) + keys);
        let values = values(&digests, 3);
        let mut slots = vec![0; params.slots * 3];
        let seed = params.build(&digests, &values, 3, &Reference, &mut slots).unwrap();
        for (digest, value) in digests.iter().zip(values.chunks_exact(3)) {
            prop_assert_eq!(look_up(params, digest, seed, &slots, 3), value);
        }
    }
}
