//! RLWE and RGSW ciphertexts. Convention: phase = b + a s.

use hush_math::poly::{Eval, Poly};

/// An RLWE ciphertext `(a, b)` in evaluation form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RlweCiphertext {
    /// The mask.
    pub a: Poly<Eval>,
    /// The half that carries the message.
    pub b: Poly<Eval>,
}

/// Two messages under one mask and two secrets: `b[i] + a s_i` is the phase of message i.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RlwePair {
    /// The common mask.
    pub a: Poly<Eval>,
    /// The halves that carry the messages.
    pub b: [Poly<Eval>; 2],
}

/// A key that switches from one secret to another: row k encrypts `g_k` times the old secret under the new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySwitchKey {
    /// A row for each digit of the gadget.
    pub rows: Vec<RlweCiphertext>,
}

/// An RGSW ciphertext of a bit m, for external products.
///
/// Source: VIPIR section 3.4 (hybrid); the bottom rows are made with a key for s^2 in place of RGSW(s).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RgswCiphertext {
    /// The rows that are multiplied by the digits of a. Row k has phase `m g_k s`.
    pub bottom: Vec<RlweCiphertext>,
    /// The rows that are multiplied by the digits of b. Row k has phase `m g_k`.
    pub top: Vec<RlweCiphertext>,
}
