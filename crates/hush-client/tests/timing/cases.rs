//! The cases: all that a client computes with a secret, from the samplers to the decoding of an answer.

use std::{hint::black_box, sync::Arc};

use hush_math::{
    constant_time::equal_mask,
    csprng::Csprng,
    samplers::{GaussianTable, sample_binary, sample_ternary},
};
use hush_protocol::{
    Protocol, Target,
    any_page::{Slots, TableParams},
    changes::{CHANGE_FINGERPRINT_BYTES, ChangeFormat},
    client::{ClientHalf, Given},
    keyword::{FilterKind, FilterParams, KeyDigest},
    ring_keys::RingKeys,
    slot::SlotFormat,
};
use hush_testkit::memcheck;

/// The words that a sampler writes.
const WORDS: usize = 4096;
/// Small tables, because valgrind is slow: what depends on a secret is the same in large ones.
const SLOTS: usize = 2048;
const COLUMNS: usize = 256;
/// The bytes of a slot: several slots in a plaintext, and several plaintexts; and few for protocols without plaintexts of slots.
const SLOT_BYTES: [usize; 2] = [512, 4];
/// Parameter sets with code that no default set has: plain matrices, ternary errors, several primes, whole queries.
const SETS: [&str; 4] =
    ["LWE_N1280_STD3_2_PLAIN", "FRODOPIR_N1774_TERNARY", "ONION_M31", "ONIONPIRV2_N2048_2X30_SEC113"];

/// Everything of a look-up that must not be told.
#[derive(Clone)]
pub(crate) struct Secret {
    seed: [u8; 32],
    index: [u8; 4],
    key: [u8; 16],
    is_found: [u8; 1],
    /// The seed of the answer, which the server knows: the secret is what it decodes to.
    pub(crate) answer: u64,
}

impl Secret {
    /// Returns the secret of the first class.
    pub(crate) fn fixed(is_found: bool) -> Self {
        Self {
            seed: [1; 32],
            index: [0; 4],
            key: *b"a key of 16 byte",
            is_found: [is_found.into()],
            answer: 1,
        }
    }

    /// Returns a random secret.
    pub(crate) fn random(rng: &mut Csprng) -> Self {
        let mut secret = Self::fixed(false);
        rng.fill_bytes(&mut secret.seed);
        rng.fill_bytes(&mut secret.index);
        rng.fill_bytes(&mut secret.key);
        secret.answer = rng.next_u64();
        secret
    }

    /// Declares all of it to be secret.
    pub(crate) fn mark(&mut self) {
        let Self { seed, index, key, is_found, answer: _ } = self;
        [&mut seed[..], &mut index[..], &mut key[..], &mut is_found[..]]
            .into_iter()
            .for_each(memcheck::mark_secret);
    }

    /// Returns a generator of secrets.
    fn rng(&self) -> Csprng {
        Csprng::from_secret_seed("hushdb test timing", &self.seed, "")
    }

    /// Returns a secret number below `range`. 0 in the first class.
    pub(crate) fn below(&self, range: u64) -> u64 {
        (u64::from(u32::from_le_bytes(self.index)) * range) >> 32
    }

    pub(crate) fn key(&self) -> &[u8; 16] {
        &self.key
    }

    /// Returns `there` if the record is found, else `absent`, without a branch.
    pub(crate) fn choose(&self, there: &[u8], absent: &[u8]) -> Vec<u8> {
        let mask = self.is_found[0].wrapping_neg();
        there.iter().zip(absent).map(|(a, b)| a & mask | b & !mask).collect()
    }
}

/// A piece of work that is watched or timed.
pub(crate) type Work = Box<dyn FnOnce()>;
/// A function that makes the work of a secret.
type Ready = Box<dyn Fn(&Secret) -> Work>;

/// Something that a client computes with a secret.
pub(crate) struct Case {
    pub(crate) name: String,
    /// Makes what is there before the look-up: the table, and the client's keys of a secret.
    pub(crate) start: Box<dyn Fn(&Secret) -> Ready>,
    pub(crate) is_planted: bool,
    /// The reason why the time may depend on the secret. Such a case is timed, not watched.
    pub(crate) told: Option<&'static str>,
}

impl Case {
    pub(crate) fn new<R: Fn(&Secret) -> Work + 'static>(
        name: impl Into<String>,
        start: impl Fn(&Secret) -> R + 'static,
    ) -> Self {
        let start = Box::new(move |secret: &Secret| Box::new(start(secret)) as Ready);
        Self { name: name.into(), start, is_planted: false, told: None }
    }

    pub(crate) fn planted(self) -> Self {
        Self { is_planted: true, ..self }
    }

    pub(crate) fn told(self, why: &'static str) -> Self {
        Self { told: Some(why), ..self }
    }
}

/// Returns the cases below a table: samplers, keys of tables, slots, and every protocol with each of its parameter sets.
pub(crate) fn all() -> Vec<Case> {
    let sampler = |name: &str, sample: fn(&mut Csprng, &mut [u32])| {
        Case::new(format!("sampler: {name}"), move |_| {
            move |secret: &Secret| {
                let mut rng = secret.rng();
                Box::new(move || {
                    let mut words = vec![0; WORDS];
                    sample(&mut rng, &mut words);
                    black_box(words);
                })
            }
        })
    };
    let mut cases = vec![
        sampler("ternary", sample_ternary),
        sampler("binary", sample_binary),
        sampler("gaussian", |rng, words| GaussianTable::new(3.2).add_to(rng, words)),
    ];
    cases.extend(FilterKind::ALL.map(support));
    cases.push(slots());
    for &protocol in Protocol::ALL {
        let default = protocol.page().default_set(SLOT_BYTES[0]);
        let others = SETS.into_iter().filter(|&set| set != default && protocol.page().has_set(set));
        others.chain([default]).for_each(|set| cases.extend(of_protocol(protocol, set)));
    }
    cases
}

/// The slots of a key in its block's filter.
fn support(kind: FilterKind) -> Case {
    Case::new(format!("key: slots, {kind}"), move |_| {
        move |secret: &Secret| {
            let key = *secret.key();
            Box::new(move || {
                let digest = KeyDigest::new(&[5; 32], &key).unwrap();
                black_box(FilterParams { kind, slots: COLUMNS }.support(&digest, 3));
            })
        }
    })
}

/// The comparison of fingerprints that differ in one byte, in a slot of the base and in one of the changes.
fn slots() -> Case {
    Case::new("slot: fingerprints", |_| {
        let format = SlotFormat::for_values(CHANGE_FINGERPRINT_BYTES as u8, 10, 40);
        let changes = ChangeFormat::new(40, 40);
        move |secret: &Secret| {
            let digest = KeyDigest::new(&[5; 32], secret.key()).unwrap();
            let own = digest.fingerprint(CHANGE_FINGERPRINT_BYTES).to_vec();
            let place = secret.below(own.len() as u64) as u32;
            let other = (0..).zip(&own).map(|(at, byte)| byte ^ equal_mask(at, place) as u8);
            let other: Vec<u8> = other.chain([20]).collect();
            let slot = |bytes: usize| [&other[..], &vec![7; bytes - other.len()]].concat();
            let (base, change) = (slot(format.slot_bytes()), slot(changes.slot_bytes()));
            Box::new(move || {
                black_box(format.is_damaged(&own, &base));
                black_box(format.decode_head(&own, &base));
                black_box(changes.is_damaged(&own, &change));
                black_box(changes.decode(&own, &change));
            })
        }
    })
}

/// The client's half of a protocol: its keys, its queries by position and by key, and its decoding.
fn of_protocol(protocol: Protocol, preset: &'static str) -> Vec<Case> {
    let page = protocol.page();
    let [large, small] = SLOT_BYTES.map(|slot_bytes| {
        let slots = Slots { count: SLOTS, slot_bytes, by_key: false };
        page.table(preset, page.shape(preset, slots, Some(COLUMNS)).unwrap())
    });
    let table = large.ok().filter(|table| table.facts().lanes > 1).unwrap_or_else(|| small.unwrap());
    let name = format!("{protocol} {preset}");
    let mut cases = Vec::new();
    if table.facts().is_local() {
        return cases; // A look-up in the client's own copy: nothing is sent.
    }
    if let Some(set) = table.facts().keys {
        cases.push(Case::new(format!("{name}: keys"), move |_| {
            move |secret: &Secret| {
                let seed = secret.seed;
                Box::new(move || {
                    black_box(RingKeys::from_seed(&set, &seed));
                })
            }
        }));
    }
    for filter in [None, Some(FilterKind::Fuse3), Some(FilterKind::Band64)] {
        let table = table.clone();
        let by = filter.map_or("position", FilterKind::name);
        cases.push(Case::new(format!("{name}: query, {by}"), move |secret| {
            let (half, table) = (client(&table, secret), table.clone());
            move |secret: &Secret| {
                let (half, target, mut rng) = (half.clone(), target(&table, secret, filter), secret.rng());
                Box::new(move || {
                    black_box(half.query(target, &mut rng));
                })
            }
        }));
    }
    cases.push(Case::new(format!("{name}: decoding"), move |secret| {
        let (half, table) = (client(&table, secret), table.clone());
        move |secret: &Secret| {
            let (_, pending) = half.query(target(&table, secret, None), &mut secret.rng());
            let (half, answer) = (half.clone(), answer(table.facts().answer_bytes, secret.answer));
            Box::new(move || {
                assert!(black_box(half.recover(&pending, &answer)).is_ok(), "an answer of the right length");
            })
        }
    }));
    cases
}

fn client(table: &TableParams, secret: &Secret) -> Arc<dyn ClientHalf> {
    let facts = table.facts();
    let mut given = Given::new(hush_he::entities::PublicSeed([7; 32]));
    given.hint = Some(Arc::new(answer(facts.hint_bytes as usize, 3)));
    given.whitening = facts.is_whitened.then_some([9; 32]);
    given.keys = facts.keys.map(|set| Arc::new(RingKeys::from_seed(&set, &secret.seed)));
    table.client(&given).unwrap().into()
}

/// Returns the target of the secret position, or of the secret key in a block of the secret position.
fn target(table: &TableParams, secret: &Secret, filter: Option<FilterKind>) -> Target {
    let shape = table.facts().shape;
    let columns = match filter {
        None => vec![(secret.below(shape.columns as u64) as u32, 1)],
        Some(kind) => {
            let digest = KeyDigest::new(&[5; 32], secret.key()).unwrap();
            FilterParams { kind, slots: shape.columns }.support(&digest, 3)
        }
    };
    Target { columns, block: secret.below(shape.blocks as u64) as usize }
}

/// Returns random bytes that are public.
fn answer(bytes: usize, seed: u64) -> Vec<u8> {
    let mut answer = vec![0; bytes];
    Csprng::insecure_from_seed(seed).fill_bytes(&mut answer);
    answer
}
