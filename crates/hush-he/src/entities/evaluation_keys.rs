//! The keys of a client that a server needs beside the client's queries.

use hush_math::poly::{Eval, Poly};

use super::{KeySwitchKey, RlweCiphertext, RlwePair};

/// The evaluation keys of one client, good for every table of its parameter set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluationKeys {
    /// For each level of the expansion tree, the key of its automorphism: from s(X^k) to s, modulo Q_e.
    pub levels: Vec<KeySwitchKey>,
    /// The key from s^2 to s, modulo Q_e. It makes the bottom rows of RGSW ciphertexts.
    pub square: KeySwitchKey,
    /// The keys from s to the two secrets of an answer, modulo Q_1. Key i (0 or 1) has a row for each digit k, whose b\[i\]
    /// carries `g_k s`.
    pub pack: [Vec<RlwePair>; 2],
    /// The key from s to the secrets of the small ring; `None` if answers are not switched.
    pub switch: Option<RingSwitchKey>,
    /// The key from the secret t of TLWE words to s, modulo Q_e; `None` if queries have none. For every entry and digit, the first
    /// list has a ciphertext of `x_k t_i s` (for bottom rows), the second one of `x_k t_i` (for top rows and selectors).
    pub private: Option<[Vec<RlweCiphertext>; 2]>,
}

/// A key from s to the secrets of a small ring, modulo Q_s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingSwitchKey {
    /// For every part i of s (the coefficients `i + j N / degree`) and every digit k, a row: `rank` polynomials of the mask, then
    /// the body, which carries `g_k s_i`.
    pub rows: Vec<Vec<Poly<Eval>>>,
}
