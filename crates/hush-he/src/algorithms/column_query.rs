//! Queries of column packing: a vector over LWE and the keys that pack its answer, both under one secret.

use hush_math::{
    constant_time::equal_mask,
    csprng::Csprng,
    poly::{Coeff, Eval, Poly},
    ring::Ring,
    samplers::GaussianTable,
};
use zeroize::Zeroizing;

use super::{
    encrypt_lwe::encrypt_lwe_vectors,
    encrypt_rlwe::{encrypt_rlwe, error_table},
    pack_query::SparseVector,
    round_coefficients::{round_coefficients, rounded_bytes, unround_coefficients},
    switch_to_power_of_two,
};
use crate::{
    HeError,
    codec::{pack_wide, packed_bytes, unpack_wide},
    entities::{ColumnKeys, ColumnMasks, OneTimeRingSecret, RingDecryptionKey},
    params::{ColumnParams, RingContext},
};

/// The exponent of the automorphism X -> X^5, to which the rotation key belongs.
pub const ROTATION: usize = 5;

/// Encrypts `vector` over LWE under `secret`, and makes the keys that pack the answer. Returns words modulo 2^32, the keys in
/// [`ColumnParams::key_bytes`] bytes, and the key that decrypts the answer.
///
/// | part | what | bits a coefficient |
/// |---|---|---|
/// | rotation key y | `-s w + e + g s(X^5)`, as fractions of Q | 46 |
/// | conjugation key z | `-s v + e + g s(X^-1)` | 42 |
/// | RGSW ciphertext, if there is an `exponent` p | rows `-s m_i + e_i + g X^p s`, `.. + g X^p` | 46 each |
///
/// `g` = 2^28. Constant time in secret, vector and exponent. Source: InsPIRe (packing keys, and the single
/// RGSW ciphertext of a power of X).
///
/// # Panics
/// If [`super::encrypt_lwe()`] panics, or if the exponent is not below 2N.
pub fn encrypt_column_query(
    params: &ColumnParams,
    context: &RingContext,
    masks: &ColumnMasks,
    secret: OneTimeRingSecret,
    vector: SparseVector<'_>,
    exponent: Option<usize>,
    rng: &mut Csprng,
) -> (Vec<u32>, Vec<u8>, RingDecryptionKey) {
    let [words] = encrypt_lwe_vectors(params.lwe(), &secret.lwe, [vector], rng);
    let ring = context.kept();
    let secret = secret.ring();
    let s = secret.eval(ring);
    let mut writer = Writer { ring, s: &s, errors: error_table(params.ring()), rng };
    let image = |exponent| Zeroizing::new(ring.automorphism(&s, exponent));
    let factor = params.ring().fold_gadget().log2_factor(0);
    let mut keys = Vec::with_capacity(params.key_bytes(exponent.is_some()));

    let y = writer.encrypt(masks.rotation(), image(ROTATION), factor);
    let y = switch_to_power_of_two(ring, &y, params.rotation_bits());
    pack_wide(y.into_iter().map(u128::from), params.rotation_bits(), &mut keys);

    let z = writer.encrypt(masks.conjugation(), image(2 * ring.degree() - 1), factor);
    round_coefficients(ring, &z, 0..ring.degree(), params.conjugation_dropped_bits(), &mut keys);

    if let Some(exponent) = exponent {
        let top = monomial(ring, exponent);
        let mut bottom = top.clone();
        ring.mul(&mut bottom, &s);
        for (mask, message) in masks.power().iter().zip([bottom, top]) {
            let row = writer.encrypt(mask, message, factor);
            round_coefficients(ring, &row, 0..ring.degree(), params.ring().key_dropped_bits(), &mut keys);
        }
    }
    (words, keys, RingDecryptionKey { secret })
}

/// Reads the keys of a query; `folds`: whether an RGSW ciphertext is among them.
///
/// # Errors
/// [`HeError::PackedLength`] if their length is not [`ColumnParams::key_bytes`], [`HeError::Coefficient`] if a coefficient is
/// not below Q.
pub fn open_column_keys(
    params: &ColumnParams,
    context: &RingContext,
    folds: bool,
    keys: &[u8],
) -> Result<ColumnKeys, HeError> {
    let expected = params.key_bytes(folds);
    let actual = keys.len();
    if expected != actual {
        return Err(HeError::PackedLength { expected, actual });
    }
    let ring = context.kept();
    let bits = params.rotation_bits();
    let (y, mut rest) = keys.split_at(packed_bytes(ring.degree(), bits));
    let rotation = unpack_wide(y, ring.degree(), bits)?.map(|word| (word as u64) << (64 - bits)).collect();
    let mut poly = |dropped: u32| -> Result<Poly<Coeff>, HeError> {
        let (head, tail) = rest.split_at(rounded_bytes(ring.rns(), ring.degree(), dropped));
        rest = tail;
        unround_coefficients(ring, head, 0..ring.degree(), ring.degree(), dropped)
    };
    let conjugation = poly(params.conjugation_dropped_bits())?;
    let mut row = || poly(params.ring().key_dropped_bits());
    let power = if folds { Some([row()?, row()?]) } else { None };
    Ok(ColumnKeys { rotation, conjugation, power })
}

struct Writer<'a> {
    ring: &'a Ring,
    s: &'a Poly<Eval>,
    errors: Option<GaussianTable>,
    rng: &'a mut Csprng,
}

impl Writer<'_> {
    /// Returns `-s mask + e + 2^factor message`.
    fn encrypt(&mut self, mask: &Poly<Eval>, mut message: Zeroizing<Poly<Eval>>, factor: u32) -> Poly<Coeff> {
        self.ring.mul_power_of_two(&mut message, factor);
        encrypt_rlwe(self.ring, self.s, mask, &message, self.errors.as_ref(), self.rng)
    }
}

/// Returns X^`exponent`. Constant time in `exponent`: every coefficient is visited.
fn monomial(ring: &Ring, exponent: usize) -> Zeroizing<Poly<Eval>> {
    let degree = ring.degree();
    assert!(exponent < 2 * degree, "an exponent below {}", 2 * degree);
    let coefficients = Zeroizing::new(
        (0..degree)
            .map(|at: usize| {
                let plus = 1 & equal_mask(at as u32, exponent as u32);
                let minus = equal_mask((at + degree) as u32, exponent as u32);
                plus | minus
            })
            .collect::<Vec<u32>>(),
    );
    Zeroizing::new(ring.forward(ring.from_signed(&coefficients)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        entities::{MatrixDomain, PublicMatrix, PublicSeed},
        params::{COLPACK_N2048_Q52, INSECURE_COLPACK_N256},
    };

    /// Checks that the phase of every key is its message plus a small error.
    #[test]
    fn keys_encrypt_images_of_the_secret() {
        for params in [INSECURE_COLPACK_N256, COLPACK_N2048_Q52] {
            let context = RingContext::new(*params.ring());
            let seed = PublicSeed([1; 32]);
            let ring = context.kept();
            let masks = ColumnMasks::new(&context, &seed);
            let a = PublicMatrix::new(seed, params.lwe().matrix_shape(MatrixDomain::First, 100));
            let rng = &mut Csprng::insecure_from_seed(8);
            let exponent = ring.degree() + 3;
            let secret = OneTimeRingSecret::sample(&params, rng);
            let (_, bytes, key) =
                encrypt_column_query(&params, &context, &masks, secret, (&a, &[(7, 1)]), Some(exponent), rng);
            assert_eq!(bytes.len(), params.key_bytes(true));
            let keys = open_column_keys(&params, &context, true, &bytes).expect("keys of the set");
            let s = key.secret.eval(ring);
            let y = fractions_modulo(ring, &keys.rotation);
            let power_of_x = monomial(ring, exponent);
            let mut bottom = power_of_x.clone();
            ring.mul(&mut bottom, &s);
            let z = ring.forward(keys.conjugation);
            let [lower, upper] = keys.power.expect("asked for").map(|b| ring.forward(b));
            let [lower_mask, upper_mask] = masks.power();
            for (b, mask, message, std) in [
                (y, masks.rotation(), &ring.automorphism(&s, 5), 18.8),
                (z, masks.conjugation(), &ring.automorphism(&s, 2 * ring.degree() - 1), 295.6),
                (lower, lower_mask, &*bottom, 18.8),
                (upper, upper_mask, &*power_of_x, 18.8),
            ] {
                let mut error = b;
                ring.mul_add(&mut error, mask, &s);
                let mut message = message.clone();
                ring.mul_power_of_two(&mut message, 28);
                ring.sub(&mut error, &message);
                let error = ring.inverse(error);
                let mut square = 0f64;
                for i in 0..ring.degree() {
                    let centred = ring.rns().lift_centred(|limb| error.limb(limb)[i]) as f64;
                    square += centred.powi(2);
                }
                let measured = (square / ring.degree() as f64).sqrt();
                assert!((measured / std - 1.0).abs() < 0.2, "{measured} for {std}");
            }
        }
    }

    fn fractions_modulo(ring: &Ring, fractions: &[u64]) -> Poly<Eval> {
        let q = ring.rns().product();
        let value = |&fraction: &u64| (u128::from(fraction) * q + (1 << 63)) >> 64;
        let words = (0..ring.limbs())
            .flat_map(|limb| fractions.iter().map(move |f| (limb, value(f) % q)))
            .map(|(limb, value)| ring.rns().reduce(value, limb));
        ring.forward(Poly::from_words(words.collect(), ring.degree()))
    }

    #[test]
    fn foreign_keys_are_refused() {
        let params = INSECURE_COLPACK_N256;
        let context = RingContext::new(*params.ring());
        let open = |folds, bytes: &[u8]| open_column_keys(&params, &context, folds, bytes);
        let length = params.key_bytes(true);
        assert!(open(true, &vec![0; length]).is_ok());
        assert!(matches!(open(false, &vec![0; length]), Err(HeError::PackedLength { .. })));
        assert!(matches!(open(true, &vec![0; length - 1]), Err(HeError::PackedLength { .. })));
        assert!(matches!(open(true, &[]), Err(HeError::PackedLength { .. })));
        assert_eq!(open(true, &vec![0xff; length]), Err(HeError::Coefficient { index: 0 }));
    }
}
