//! The keys that a server needs of a client beside its queries.

use hush_math::poly::{Eval, Poly};

use super::{KeySwitchKey, RlweCiphertext, RlwePair};

/// The evaluation keys of one client, good for every table of its parameter set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluationKeys {
    /// For each level of the expansion tree, the key of its automorphism: from s(X^k) to s, modulo Q_e.
    pub levels: Vec<KeySwitchKey>,
    /// From s^2 to s, modulo Q_e: makes the bottom rows of RGSW ciphertexts.
    pub square: KeySwitchKey,
    /// From s to the two secrets of an answer, modulo Q_1: for i = 0, 1 a row for each digit, whose b\[i\] carries
    /// `g_k s`.
    pub pack: [Vec<RlwePair>; 2],
    /// From s to the secrets of the small ring, if answers are switched to one.
    pub switch: Option<RingSwitchKey>,
    /// From the secret of TLWE words to s, modulo Q_e, where queries have such: for every entry a ciphertext of `x t_i s`, which
    /// makes bottom rows, and one of `x t_i`, which makes top rows and selectors.
    pub private: Option<[Vec<RlweCiphertext>; 2]>,
}

/// From s to the secrets of a small ring, modulo Q_s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingSwitchKey {
    /// For every part i of s, the coefficients `i + j N / degree`, a row for each digit: the mask, as many polynomials as the rank;
    /// then the body, which carries `g_k s_i`.
    pub rows: Vec<Vec<Poly<Eval>>>,
}
