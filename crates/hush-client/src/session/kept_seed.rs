//! Seeds of evaluation keys as hosts keep them: one for each server and parameter set, for a month.
//!
//! 80 bytes, made and judged here, so that the rules are the same wherever they are kept.

use std::time::Duration;

use hush_math::csprng::Csprng;
use zeroize::Zeroizing;

use super::Seed;

const SEED_BYTES: usize = 32;
/// How long a seed is used. The server can tell the queries under one from all others, so it does not last for ever.
pub const LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);
/// How far ahead of the clock a seed's time may be.
const CLOCK_SKEW: Duration = Duration::from_secs(24 * 3600);

/// First bytes of a file.
const MAGIC: &[u8; 8] = b"hushseed";
/// The magic bytes, seconds since 1970 (little-endian) at which the seed was made, the seed, and the BLAKE3 of these
/// and the file's name: under another name a seed is of no use.
pub const FILE_BYTES: usize = 8 + 8 + SEED_BYTES + 32;

/// A new seed, of the operating system's randomness (`crypto.getRandomValues` in a browser).
///
/// # Panics
/// If there is no randomness.
pub fn fresh() -> Seed {
    let mut seed = Seed::default();
    Csprng::from_os().fill_bytes(&mut *seed);
    seed
}

/// A name for the seed of the parameter set `preset` at the server `origin`, which tells nobody which server it is for.
pub fn file_name(origin: &str, preset: &str) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("hushdb client seed file name");
    for part in [origin, preset] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    format!("{}.seed", hasher.finalize().to_hex())
}

/// What is kept under `name` of a seed that was `made` so many seconds after 1970.
pub fn encode(seed: &Seed, name: &str, made: u64) -> Zeroizing<[u8; FILE_BYTES]> {
    let mut bytes = Zeroizing::new([0; FILE_BYTES]);
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..16].copy_from_slice(&made.to_le_bytes());
    bytes[16..48].copy_from_slice(&**seed);
    let checksum = checksum(&bytes[..48], name);
    bytes[48..].copy_from_slice(checksum.as_bytes());
    bytes
}

/// The seed in what was kept under `name`, unless it is damaged, or old `now` (seconds after 1970).
pub fn parse(bytes: &[u8; FILE_BYTES], name: &str, now: u64) -> Option<Seed> {
    let (content, stored) = bytes.split_at(48);
    let sound = content.starts_with(MAGIC) && checksum(content, name) == *stored.as_array::<32>()?;
    let made = u64::from_le_bytes(*content[8..16].as_array()?);
    let young =
        now.saturating_sub(made) <= LIFETIME.as_secs() && made <= now.saturating_add(CLOCK_SKEW.as_secs());
    let mut seed = Seed::default();
    seed.copy_from_slice(&content[16..]);
    (sound && young).then_some(seed)
}

fn checksum(content: &[u8], name: &str) -> blake3::Hash {
    blake3::Hasher::new().update(content).update(name.as_bytes()).finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_good_under_its_name_and_for_its_time() {
        let (seed, now, day) = (fresh(), 1_000_000_000, CLOCK_SKEW.as_secs());
        assert!(parse(&encode(&seed, "a", now), "a", now).is_some_and(|kept| kept == seed));
        assert!(parse(&encode(&seed, "a", now + day), "a", now).is_some());
        assert!(parse(&encode(&seed, "a", now + day), "b", now).is_none());
        assert!(parse(&encode(&seed, "a", now + day + 1), "a", now).is_none());
        assert!(parse(&encode(&seed, "a", now - LIFETIME.as_secs()), "a", now).is_some());
        assert!(parse(&encode(&seed, "a", now - LIFETIME.as_secs() - 1), "a", now).is_none());
        assert!(parse(&encode(&seed, "a", u64::MAX), "a", now).is_none());
    }
}
