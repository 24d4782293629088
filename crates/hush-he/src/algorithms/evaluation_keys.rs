//! Evaluation keys: made by a client, read by a server.

use hush_math::{
    csprng::Csprng,
    gadget::Gadget,
    poly::{Eval, Poly},
    ring::Ring,
    samplers::GaussianTable,
};
use zeroize::Zeroizing;

use super::{
    encrypt_rlwe::{encrypt_rlwe, error_table},
    round_coefficients::{round_coefficients, rounded_bytes, unround_coefficients},
};
use crate::{
    HeError,
    entities::{EvaluationKeys, KeySwitchKey, RingSecrets, RingSwitchKey, RlweCiphertext, RlwePair},
    params::{RING_SEED_BYTES, RingContext, Tlwe},
};

/// The evaluation keys as they travel: the seed of all masks, and the halves that carry the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeededKeys {
    /// The seed of the masks.
    pub seed: [u8; RING_SEED_BYTES],
    /// The halves b of all rows, packed without their low bits: [`crate::params::RingParams::key_words_bytes`] bytes.
    pub words: Vec<u8>,
}

/// Derives the evaluation keys from a client's seed. The same seed always gives the same keys.
///
/// Source: OnionPIRv2 sections 3.3 (keys of the expansion) and 3.5 (masks from a seed); a key for s^2 in place of RGSW(s).
pub fn generate_keys(context: &RingContext, secrets: &RingSecrets, seed: &[u8; 32]) -> SeededKeys {
    let params = context.params();
    let full = context.full();
    let kept = context.kept();
    let key_context = params.key_context();
    let mut writer = KeyWriter {
        errors: error_table(params),
        error_rng: Csprng::from_secret_seed("hushdb v1 2026 evaluation key errors", seed, &key_context),
        masks: Masks { seed: public_seed(seed, &key_context), row: 0 },
        dropped: params.key_dropped_bits(),
        words: Vec::with_capacity(params.key_words_bytes()),
    };
    let s = secrets.query.eval(full);
    for (level, gadget) in params.levels().iter().enumerate() {
        let image = Zeroizing::new(full.automorphism(&s, params.level_exponent(level)));
        writer.key_switch_key(full, &s, &image, *gadget);
    }
    let mut square = s.clone();
    full.mul(&mut square, &s);
    writer.key_switch_key(full, &s, &square, params.square_gadget());
    let s = secrets.query.eval(kept);
    let second = secrets.second.eval(kept);
    let zero = kept.zero();
    for carrier in 0..2 {
        for k in 0..params.pack_gadget().digits {
            let message = scaled(kept, &s, params.pack_gadget(), k);
            let messages = if carrier == 0 { [&*message, &zero] } else { [&zero, &*message] };
            writer.pair(kept, [&s, &second], messages);
        }
    }
    if let (Some(switch), Some(small)) = (params.switch(), context.switched()) {
        let new: Vec<_> = secrets.switched.iter().map(|secret| secret.eval(small)).collect();
        let parts = params.degree() / switch.degree();
        for part in 0..parts {
            let old = secrets.query.part(part, parts).eval(small);
            writer.switch_rows(small, &new, &old, switch.gadget());
        }
    }
    if let Some(tlwe) = params.tlwe() {
        let units: Vec<u128> =
            (0..tlwe.gadget().digits).map(|k| tlwe.unit(full.rns().product(), k)).collect();
        let one = full.forward(full.from_signed(&[&[1][..], &vec![0; params.degree() - 1]].concat()));
        let s = secrets.query.eval(full);
        for carrier in [&*s, &one] {
            for (&entry, &unit) in
                secrets.tlwe.iter().flat_map(|entry| units.iter().map(move |unit| (entry, unit)))
            {
                let message = times_constant(full, carrier, unit, entry);
                let mask = writer.masks.next(full);
                writer.body(full, &s, &mask, &message);
            }
        }
    }
    SeededKeys { seed: writer.masks.seed, words: writer.words }
}

/// Reads evaluation keys.
///
/// # Errors
/// [`HeError::PackedLength`] if the length is not [`crate::params::RingParams::key_words_bytes`]; [`HeError::Coefficient`] if a
/// coefficient is not below its modulus.
pub fn open_keys(
    context: &RingContext,
    seed: &[u8; RING_SEED_BYTES],
    words: &[u8],
) -> Result<EvaluationKeys, HeError> {
    let expected = context.params().key_words_bytes();
    let actual = words.len();
    if expected != actual {
        return Err(HeError::PackedLength { expected, actual });
    }
    let params = context.params();
    let full = context.full();
    let kept = context.kept();
    let mut reader =
        KeyReader { masks: Masks { seed: *seed, row: 0 }, dropped: params.key_dropped_bits(), words };
    let levels = params.levels().iter().map(|gadget| reader.key_switch_key(full, *gadget));
    let levels = levels.collect::<Result<_, _>>()?;
    let square = reader.key_switch_key(full, params.square_gadget())?;
    let mut rows = || (0..params.pack_gadget().digits).map(|_| reader.pair(kept)).collect::<Result<_, _>>();
    let pack = [rows()?, rows()?];
    let switch = params.switch().zip(context.switched()).map(|(switch, small)| {
        let count = params.degree() / switch.degree() * switch.gadget().digits;
        let rows = (0..count).map(|_| reader.switch_row(small, switch.rank())).collect::<Result<_, _>>()?;
        Ok(RingSwitchKey { rows })
    });
    let switch = switch.transpose()?;
    let mut private = |tlwe: &Tlwe| -> Result<Vec<RlweCiphertext>, HeError> {
        (0..tlwe.key_rows())
            .map(|_| Ok(RlweCiphertext { a: reader.masks.next(full), b: reader.body(full)? }))
            .collect()
    };
    let private = params.tlwe().map(|tlwe| Ok([private(tlwe)?, private(tlwe)?])).transpose()?;
    Ok(EvaluationKeys { levels, square, pack, switch, private })
}

fn public_seed(seed: &[u8; 32], key_context: &str) -> [u8; RING_SEED_BYTES] {
    let mut public = [0; RING_SEED_BYTES];
    Csprng::from_secret_seed("hushdb v1 2026 evaluation key mask seed", seed, key_context)
        .fill_bytes(&mut public);
    public
}

/// Returns `g_k x`.
fn scaled(ring: &Ring, x: &Poly<Eval>, gadget: Gadget, k: usize) -> Zeroizing<Poly<Eval>> {
    let mut message = Zeroizing::new(x.clone());
    ring.mul_power_of_two(&mut message, gadget.log2_factor(k));
    message
}

/// Returns `x factor entry` for a small signed entry, in constant time in `entry`.
fn times_constant(ring: &Ring, x: &Poly<Eval>, factor: u128, entry: u32) -> Zeroizing<Poly<Eval>> {
    let mut message = Zeroizing::new(x.clone());
    for (limb, p) in ring.moduli().iter().enumerate() {
        let factor = p.mul(ring.rns().reduce(factor, limb), p.reduce_signed(i64::from(entry as i32)));
        message.limb_mut(limb).iter_mut().for_each(|word| *word = p.mul(*word, factor));
    }
    message
}

/// The masks of all rows, each row from its own stream.
struct Masks {
    seed: [u8; RING_SEED_BYTES],
    row: u64,
}

impl Masks {
    fn next(&mut self, ring: &Ring) -> Poly<Eval> {
        self.row += 1;
        ring.expand_uniform(&mut Csprng::public("hushdb v1 2026 evaluation key masks", &self.seed, self.row))
    }
}

struct KeyWriter {
    errors: Option<GaussianTable>,
    error_rng: Csprng,
    masks: Masks,
    dropped: u32,
    words: Vec<u8>,
}

impl KeyWriter {
    /// Writes the rows of a key from `old` to `s`. Row k is `(r, -r s + e + g_k old)`.
    fn key_switch_key(&mut self, ring: &Ring, s: &Poly<Eval>, old: &Poly<Eval>, gadget: Gadget) {
        for k in 0..gadget.digits {
            let mask = self.masks.next(ring);
            self.body(ring, s, &mask, &scaled(ring, old, gadget, k));
        }
    }

    fn pair(&mut self, ring: &Ring, secrets: [&Poly<Eval>; 2], messages: [&Poly<Eval>; 2]) {
        let mask = self.masks.next(ring);
        for (s, message) in secrets.into_iter().zip(messages) {
            self.body(ring, s, &mask, message);
        }
    }

    /// Writes the rows of a key to the small ring, without dropping bits. Row k is `(r_0, .., -sum_z r_z t_z + e + g_k old)`.
    fn switch_rows(&mut self, ring: &Ring, new: &[Zeroizing<Poly<Eval>>], old: &Poly<Eval>, gadget: Gadget) {
        for k in 0..gadget.digits {
            let mut message = scaled(ring, old, gadget, k);
            let (last, others) = new.split_last().expect("a rank of at least one");
            for secret in others {
                let mut product = Zeroizing::new(self.masks.next(ring));
                ring.mul(&mut product, secret);
                ring.sub(&mut message, &product);
            }
            let mask = self.masks.next(ring);
            let b = encrypt_rlwe(ring, last, &mask, &message, self.errors.as_ref(), &mut self.error_rng);
            round_coefficients(ring, &b, 0..ring.degree(), 0, &mut self.words);
        }
    }

    fn body(&mut self, ring: &Ring, s: &Poly<Eval>, mask: &Poly<Eval>, message: &Poly<Eval>) {
        let b = encrypt_rlwe(ring, s, mask, message, self.errors.as_ref(), &mut self.error_rng);
        round_coefficients(ring, &b, 0..ring.degree(), self.dropped, &mut self.words);
    }
}

struct KeyReader<'a> {
    masks: Masks,
    dropped: u32,
    words: &'a [u8],
}

impl KeyReader<'_> {
    fn key_switch_key(&mut self, ring: &Ring, gadget: Gadget) -> Result<KeySwitchKey, HeError> {
        let rows =
            (0..gadget.digits).map(|_| Ok(RlweCiphertext { a: self.masks.next(ring), b: self.body(ring)? }));
        Ok(KeySwitchKey { rows: rows.collect::<Result<_, _>>()? })
    }

    fn pair(&mut self, ring: &Ring) -> Result<RlwePair, HeError> {
        Ok(RlwePair { a: self.masks.next(ring), b: [self.body(ring)?, self.body(ring)?] })
    }

    fn switch_row(&mut self, ring: &Ring, rank: usize) -> Result<Vec<Poly<Eval>>, HeError> {
        let mut row: Vec<_> = (0..rank).map(|_| self.masks.next(ring)).collect();
        row.push(self.rounded(ring, 0)?);
        Ok(row)
    }

    fn body(&mut self, ring: &Ring) -> Result<Poly<Eval>, HeError> {
        self.rounded(ring, self.dropped)
    }

    fn rounded(&mut self, ring: &Ring, dropped: u32) -> Result<Poly<Eval>, HeError> {
        let bytes = rounded_bytes(ring.rns(), ring.degree(), dropped);
        let (head, rest) = self.words.split_at(bytes);
        self.words = rest;
        let b = unround_coefficients(ring, head, 0..ring.degree(), ring.degree(), dropped)?;
        Ok(ring.forward(b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::ONION_S;

    #[test]
    fn no_mask_comes_twice() {
        let seeds = [([1; 32], "a"), ([1; 32], "b"), ([2; 32], "a")];
        let ring = ONION_S.kept_ring();
        let mut masks = Vec::new();
        for (seed, context) in seeds {
            let mut rows = Masks { seed: public_seed(&seed, context), row: 0 };
            masks.extend((0..3).map(|_| rows.next(&ring).limb(0).to_vec()));
        }
        let count = masks.len();
        masks.sort_unstable();
        masks.dedup();
        assert_eq!(masks.len(), count);
    }
}
