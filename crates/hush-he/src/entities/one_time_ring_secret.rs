//! A ring secret, good for one query.

use hush_math::csprng::Csprng;

use super::{OneTimeLweSecret, RlweSecret};
use crate::params::ColumnParams;

/// A fresh ternary ring secret s, whose coefficients are the LWE secret too.
///
/// All queries of a table share its public matrix and masks. Two queries under one secret would leak their difference, and so would
/// two parts of a query with one mask. Hence the secret is not `Clone`, and one call ([`crate::algorithms::encrypt_column_query`])
/// makes all parts of a query, consumes the secret, and returns a key that can only decrypt. The secret is wiped when dropped.
///
/// ```compile_fail
/// use hush_he::{algorithms::encrypt_column_query, entities::*, params::*};
/// use hush_math::csprng::Csprng;
/// let (params, mut rng) = (COLPACK_N2048_Q52, Csprng::from_os());
/// let context = RingContext::new(*params.ring());
/// let (seed, shape) = (PublicSeed([1; 32]), params.lwe().matrix_shape(MatrixDomain::First, 1));
/// let (a, masks) = (PublicMatrix::new(seed, shape), ColumnMasks::new(&context, &seed));
/// let secret = OneTimeRingSecret::sample(&params, &mut rng);
/// let first = encrypt_column_query(&params, &context, &masks, secret, (&a, &[(0, 1)]), None, &mut rng);
/// let second = encrypt_column_query(&params, &context, &masks, secret, (&a, &[(0, 2)]), None, &mut rng);
/// ```
///
/// ```compile_fail
/// # use hush_he::{entities::*, params::*};
/// # use hush_math::csprng::Csprng;
/// let secret = OneTimeRingSecret::sample(&COLPACK_N2048_Q52, &mut Csprng::from_os());
/// let copy = secret.clone();
/// ```
///
/// With a secret for each query the same lines compile:
///
/// ```
/// # use hush_he::{algorithms::encrypt_column_query, entities::*, params::*};
/// # use hush_math::csprng::Csprng;
/// # let (params, mut rng) = (COLPACK_N2048_Q52, Csprng::from_os());
/// # let context = RingContext::new(*params.ring());
/// # let (seed, shape) = (PublicSeed([1; 32]), params.lwe().matrix_shape(MatrixDomain::First, 1));
/// # let (a, masks) = (PublicMatrix::new(seed, shape), ColumnMasks::new(&context, &seed));
/// let secret = OneTimeRingSecret::sample(&params, &mut rng);
/// let first = encrypt_column_query(&params, &context, &masks, secret, (&a, &[(0, 1)]), None, &mut rng);
/// let secret = OneTimeRingSecret::sample(&params, &mut rng);
/// let second = encrypt_column_query(&params, &context, &masks, secret, (&a, &[(0, 2)]), None, &mut rng);
/// ```
pub struct OneTimeRingSecret {
    pub(crate) lwe: OneTimeLweSecret,
}

impl OneTimeRingSecret {
    /// Samples a secret of `params`.
    pub fn sample(params: &ColumnParams, rng: &mut Csprng) -> Self {
        Self { lwe: OneTimeLweSecret::sample(params.lwe(), rng) }
    }

    pub(crate) fn ring(&self) -> RlweSecret {
        RlweSecret::from_words(self.lwe.words())
    }
}

/// The remainder of an [`OneTimeRingSecret`] after encryption: it decrypts the answer. Nothing outside this crate
/// encrypts under it.
pub struct RingDecryptionKey {
    pub(crate) secret: RlweSecret,
}

impl RingDecryptionKey {
    /// Returns the secret, for [`crate::algorithms::decrypt_response()`].
    pub fn secret(&self) -> &RlweSecret {
        &self.secret
    }
}
