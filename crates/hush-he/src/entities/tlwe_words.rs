//! The words of a query before private key switching.

/// TLWE words with masks of [`crate::params::Tlwe::n`] entries each. Their phases are `b + <a, t>` modulo `2^bits`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlweWords {
    /// The masks: `[word][entry]`, each entry below `2^bits`.
    pub masks: Vec<u32>,
    /// A body for every word, below `2^bits`.
    pub bodies: Vec<u32>,
}
