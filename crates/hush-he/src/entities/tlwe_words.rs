//! The words of a query before private key switching.

/// TLWE words, of [`crate::params::Tlwe::n`] entries each: phases `b + <a, t>` modulo `2^bits`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlweWords {
    /// `[word][entry]`, below `2^bits`.
    pub masks: Vec<u32>,
    /// A body for every word, below `2^bits`.
    pub bodies: Vec<u32>,
}
