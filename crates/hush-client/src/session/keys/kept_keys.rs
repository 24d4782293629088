//! The records of evaluation keys that hosts store: the seed of the keys, and the history of their use.
//!
//! Hosts store a record of 88 bytes for each combination of server, route to it and parameter set. The rules are here, so
//! that all hosts apply the same.

use std::time::Duration;

use hush_math::{constant_time::equal_bytes, csprng::Csprng};
use zeroize::Zeroizing;

/// The seed of secret and evaluation keys. It is randomness from the operating system, and as secret as a key.
pub type Seed = Zeroizing<[u8; 32]>;

/// The time for which keys are used. It is limited because the server can link the queries under the same keys.
pub const LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);
/// The longest time by which a record may be ahead of the clock.
const CLOCK_SKEW: Duration = Duration::from_secs(24 * 3600);

/// The first bytes of a record.
const MAGIC: &[u8; 8] = b"hushkeys";
/// The number of bytes of a record that its checksum covers.
const CONTENT_BYTES: usize = 56;
/// The length of a record in bytes. A record has the magic bytes, the creation of the keys in seconds since 1970 (8 bytes),
/// the look-ups (4) and the flags (4), all little-endian, the seed (32), and the BLAKE3 hash of these and the record's
/// name. So a record is invalid under another name.
pub const RECORD_BYTES: usize = CONTENT_BYTES + 32;
/// The flag of keys that were uploaded to the server.
const UPLOADED: u32 = 1;
/// The flag of keys under which an answer did not decode.
const SUSPECT: u32 = 2;

/// Evaluation keys: their seed, their age, and the look-ups made with them.
#[derive(Clone)]
pub struct KeptKeys {
    seed: Seed,
    /// The creation of the keys, in seconds since 1970.
    made: u64,
    lookups: u32,
    flags: u32,
}

/// A session's request for keys, made to its host before look-ups are sent.
#[derive(Clone)]
pub struct KeyRequest {
    /// The name of the record.
    pub name: String,
    /// The keys that the session used last under this name.
    pub held: Option<KeptKeys>,
    /// The number of look-ups that are about to be sent, at most `limit`.
    pub lookups: u32,
    /// The most look-ups with the same keys.
    pub limit: u32,
}

/// An event that is recorded with keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyNote {
    /// The server accepted the keys.
    Uploaded,
    /// An answer to a query under the keys did not decode.
    Suspect,
}

/// Returns the name of the record for the parameter set `preset` at the server `origin`, reached by `route`. The name is a
/// hash, which does not reveal the server.
pub fn record_name(origin: &str, route: &str, preset: &str) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("hushdb client key record name");
    for part in [origin, route, preset] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    format!("{}.seed", hasher.finalize().to_hex())
}

impl KeyRequest {
    /// Returns whether `other` gets the same keys.
    pub fn is_like(&self, other: &Self) -> bool {
        let same_keys = match (&self.held, &other.held) {
            (Some(own), Some(others)) => own.is_same(others),
            (None, None) => true,
            _ => false,
        };
        same_keys && (&self.name, self.lookups, self.limit) == (&other.name, other.lookups, other.limit)
    }
}

impl KeptKeys {
    /// Creates new keys from the operating system's randomness (`crypto.getRandomValues` in a browser).
    ///
    /// # Panics
    /// If there is no source of randomness.
    fn fresh(now: u64) -> Self {
        let mut seed = Seed::default();
        Csprng::from_os().fill_bytes(&mut *seed);
        Self { seed, made: now, lookups: 0, flags: 0 }
    }

    /// Returns the keys for `request` at the time `now` (seconds since 1970), with its look-ups counted. These are the
    /// `kept` keys, or else the keys that the session holds, or else new ones. Keys that are too old, or that would exceed
    /// the limit of look-ups, are replaced. Suspect keys are replaced too, except for a session that holds them: a failed
    /// decode must not change the next requests of this session.
    ///
    /// # Panics
    /// If new keys are needed and there is no source of randomness.
    pub fn draw(kept: Option<Self>, request: &KeyRequest, now: u64) -> Self {
        let known = kept.or_else(|| request.held.clone());
        let mut keys = known.filter(|keys| keys.serves(request, now)).unwrap_or_else(|| Self::fresh(now));
        keys.lookups = keys.lookups.saturating_add(request.lookups);
        keys
    }

    fn serves(&self, request: &KeyRequest, now: u64) -> bool {
        let is_young = now.saturating_sub(self.made) <= LIFETIME.as_secs()
            && self.made <= now.saturating_add(CLOCK_SKEW.as_secs());
        let is_held = request.held.as_ref().is_some_and(|held| held.is_same(self));
        is_young
            && self.lookups.saturating_add(request.lookups) <= request.limit
            && (is_held || self.flags & SUSPECT == 0)
    }

    /// Returns whether the look-ups of `request`, which these keys count, passed a multiple of a 16th of its limit. Hosts then make
    /// the record durable.
    pub fn passes_mark(&self, request: &KeyRequest) -> bool {
        let step = (request.limit / 16).max(1);
        self.lookups / step != self.lookups.saturating_sub(request.lookups) / step
    }

    /// Records an event of `keys`, if `self` has the same seed. Returns whether the record changed.
    pub fn note(&mut self, keys: &Self, note: KeyNote) -> bool {
        let flag = match note {
            KeyNote::Uploaded => UPLOADED,
            KeyNote::Suspect => SUSPECT,
        };
        let is_news = self.is_same(keys) && self.flags & flag == 0;
        if is_news {
            self.flags |= flag;
        }
        is_news
    }

    /// Returns the seed of the keys.
    pub fn seed(&self) -> &Seed {
        &self.seed
    }

    /// Returns the creation of the keys, in seconds since 1970.
    pub fn made(&self) -> u64 {
        self.made
    }

    /// Returns whether the keys were uploaded to the server.
    pub fn is_uploaded(&self) -> bool {
        self.flags & UPLOADED != 0
    }

    /// Returns whether both have the same seed.
    pub fn is_same(&self, other: &Self) -> bool {
        equal_bytes(&*self.seed, &*other.seed)
    }

    /// Returns the record to be stored under `name`.
    pub fn encode(&self, name: &str) -> Zeroizing<[u8; RECORD_BYTES]> {
        let mut bytes = Zeroizing::new([0; RECORD_BYTES]);
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..16].copy_from_slice(&self.made.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.lookups.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.flags.to_le_bytes());
        bytes[24..CONTENT_BYTES].copy_from_slice(&*self.seed);
        let checksum = checksum(&bytes[..CONTENT_BYTES], name);
        bytes[CONTENT_BYTES..].copy_from_slice(checksum.as_bytes());
        bytes
    }

    /// Decodes a record that was stored under `name`. Returns `None` if it is damaged.
    pub fn decode(bytes: &[u8; RECORD_BYTES], name: &str) -> Option<Self> {
        let (content, stored) = bytes.split_at(CONTENT_BYTES);
        if !content.starts_with(MAGIC) || checksum(content, name) != *stored.as_array::<32>()? {
            return None;
        }
        let mut seed = Seed::default();
        seed.copy_from_slice(&content[24..]);
        let word = |at: usize| Some(u32::from_le_bytes(*content[at..at + 4].as_array()?));
        let made = u64::from_le_bytes(*content[8..16].as_array()?);
        Some(Self { seed, made, lookups: word(16)?, flags: word(20)? })
    }
}

fn checksum(content: &[u8], name: &str) -> blake3::Hash {
    blake3::Hasher::new().update(content).update(name.as_bytes()).finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000_000_000;

    fn request(held: Option<&KeptKeys>, lookups: u32) -> KeyRequest {
        KeyRequest { name: "a".into(), held: held.cloned(), lookups, limit: 10 }
    }

    fn drawn(kept: &KeptKeys, held: Option<&KeptKeys>, lookups: u32, now: u64) -> KeptKeys {
        KeptKeys::draw(Some(kept.clone()), &request(held, lookups), now)
    }

    #[test]
    fn a_record_is_good_under_its_name() {
        let mut keys = KeptKeys::draw(None, &request(None, 3), NOW);
        assert!(!keys.is_uploaded());
        assert!(keys.note(&keys.clone(), KeyNote::Uploaded) && !keys.note(&keys.clone(), KeyNote::Uploaded));
        let kept = KeptKeys::decode(&keys.encode("a"), "a").unwrap();
        assert!(kept.is_same(&keys) && kept.is_uploaded());
        assert_eq!((kept.made(), kept.lookups), (NOW, 3));
        assert!(KeptKeys::decode(&keys.encode("a"), "b").is_none());
        let mut damaged = keys.encode("a");
        damaged[16] ^= 1;
        assert!(KeptKeys::decode(&damaged, "a").is_none());
    }

    #[test]
    fn keys_serve_for_their_time() {
        let day = CLOCK_SKEW.as_secs();
        let keys = KeptKeys::draw(None, &request(None, 1), NOW);
        for (now, stay) in [
            (NOW, true),
            (NOW + LIFETIME.as_secs(), true),
            (NOW + LIFETIME.as_secs() + 1, false),
            (NOW - day, true),
            (NOW - day - 1, false),
        ] {
            assert_eq!(drawn(&keys, None, 1, now).is_same(&keys), stay, "{now}");
            assert_eq!(drawn(&keys, Some(&keys), 1, now).is_same(&keys), stay, "{now}");
        }
        let damaged = KeptKeys { made: u64::MAX, ..keys.clone() };
        assert!(!drawn(&damaged, None, 1, NOW).is_same(&keys));
    }

    #[test]
    fn keys_serve_so_many_look_ups() {
        let first = KeptKeys::draw(None, &request(None, 4), NOW);
        let second = drawn(&first, Some(&first), 6, NOW);
        assert!(second.is_same(&first) && second.lookups == 10);
        for held in [None, Some(&second)] {
            let third = drawn(&second, held, 1, NOW);
            assert!(!third.is_same(&second) && !third.is_uploaded() && third.lookups == 1);
        }
        // If nothing is stored, the session counts by itself.
        assert!(!KeptKeys::draw(None, &request(Some(&second), 1), NOW).is_same(&second));
        assert!(KeptKeys::draw(None, &request(Some(&first), 6), NOW).is_same(&first));
        // Another process may have created new keys.
        let other = KeptKeys::draw(None, &request(None, 1), NOW);
        assert!(drawn(&other, Some(&first), 1, NOW).is_same(&other));
    }

    #[test]
    fn suspect_keys_serve_the_sessions_that_hold_them() {
        let mut keys = KeptKeys::draw(None, &request(None, 1), NOW);
        let held = keys.clone();
        assert!(keys.note(&held, KeyNote::Suspect));
        assert!(drawn(&keys, Some(&held), 1, NOW).is_same(&keys));
        assert!(!drawn(&keys, None, 1, NOW).is_same(&keys));
        let others = KeptKeys::draw(None, &request(None, 1), NOW);
        assert!(!drawn(&keys, Some(&others), 1, NOW).is_same(&keys));
        assert!(!keys.note(&others, KeyNote::Uploaded) && !keys.is_uploaded());
    }

    #[test]
    fn every_route_has_its_record() {
        let names = [
            record_name("o", "", "p"),
            record_name("o", "r", "p"),
            record_name("or", "", "p"),
            record_name("o", "p", ""),
        ];
        for (at, name) in names.iter().enumerate() {
            assert!(names[..at].iter().all(|other| other != name));
        }
    }
}
