//! Cryptographic randomness: ChaCha20 keyed by the operating system, or by a public, domain-separated seed.

use chacha20::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};

/// A ChaCha20 generator. One type serves secrets (keyed by the OS) and public expansion (keyed by a domain). Its state
/// is wiped when it is dropped. Sources: Bernstein, "ChaCha, a variant of Salsa20"; BLAKE3, in its key derivation mode.
pub struct Csprng(ChaCha20Rng);

impl Csprng {
    /// Returns a generator keyed with 32 bytes from the operating system (`crypto.getRandomValues` in a browser).
    ///
    /// # Panics
    /// If the operating system cannot provide randomness, since nothing safe can be done then.
    pub fn from_os() -> Self {
        let mut key = zeroize::Zeroizing::new([0u8; 32]);
        getrandom::fill(key.as_mut()).expect("the operating system gives randomness");
        Self(ChaCha20Rng::from_seed(*key))
    }

    /// Returns a deterministic generator for *public* values: key = BLAKE3-derive(`domain`, `context`), ChaCha20 stream
    /// number `stream`. Different domains, contexts or streams give independent output.
    pub fn public(domain: &str, context: &[u8], stream: u64) -> Self {
        let mut rng = ChaCha20Rng::from_seed(blake3::derive_key(domain, context));
        rng.set_stream(stream);
        Self(rng)
    }

    /// Returns a generator of *secrets* that a client keeps as one 32-byte seed: key = BLAKE3-derive(`domain`, `seed`,
    /// `context`).
    pub fn from_secret_seed(domain: &str, seed: &[u8; 32], context: &str) -> Self {
        let mut hasher = zeroize::Zeroizing::new(blake3::Hasher::new_derive_key(domain));
        hasher.update(seed).update(context.as_bytes());
        let key = zeroize::Zeroizing::new(*hasher.finalize().as_bytes());
        Self(ChaCha20Rng::from_seed(*key))
    }

    /// Returns a generator from a fixed seed, for tests and known-answer vectors only.
    pub fn insecure_from_seed(seed: u64) -> Self {
        Self(ChaCha20Rng::seed_from_u64(seed))
    }

    /// Returns the next uniform 32-bit word.
    pub fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// Returns the next uniform 64-bit word.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Fills `out` with uniform bytes.
    pub fn fill_bytes(&mut self, out: &mut [u8]) {
        self.0.fill_bytes(out);
    }

    /// Fills `out` with uniform 32-bit words (little-endian from the byte stream, so the same on every machine).
    pub fn fill_u32(&mut self, out: &mut [u32]) {
        let mut bytes = [0u8; 4096];
        for chunk in out.chunks_mut(1024) {
            let bytes = &mut bytes[..4 * chunk.len()];
            self.0.fill_bytes(bytes);
            for (word, quad) in chunk.iter_mut().zip(bytes.chunks_exact(4)) {
                *word = u32::from_le_bytes([quad[0], quad[1], quad[2], quad[3]]);
            }
        }
    }
}
