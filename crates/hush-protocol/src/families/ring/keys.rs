//! The keys of a client of a protocol over rings: what it keeps, and what it uploads.

use std::sync::Arc;

use hush_he::{
    algorithms::{generate_keys, open_keys},
    entities::{EvaluationKeys, RingSecrets, RlweSecret},
    params::{RING_SEED_BYTES, RingContext, RingParams},
};
use hush_ops::contract::RingOps;
use prost::Message;

use crate::{
    ProtocolError,
    client::Given,
    wire::{self, KEY_ID_BYTES, decode_keys, encoded_keys_bytes},
};

/// The most look-ups that a client makes under the same evaluation keys, unless its user says otherwise.
pub const LOOKUPS_PER_KEY: u32 = 256;

/// A client's secrets for one parameter set, and the evaluation keys that follow from them.
pub struct RingKeys {
    context: RingContext,
    secrets: RingSecrets,
    upload: Vec<u8>,
    id: [u8; KEY_ID_BYTES],
}

impl RingKeys {
    /// Returns the keys that follow from `seed`, 32 bytes of the operating system's randomness that the client keeps like a key.
    /// The same seed gives the same keys, so that they are uploaded once. Source: OnionPIRv2 section 3.5 (masks from a seed).
    pub fn from_seed(params: &RingParams, seed: &[u8; 32]) -> Self {
        let context = RingContext::new(*params);
        let secrets = RingSecrets::from_seed(params, seed);
        let keys = generate_keys(&context, &secrets, seed);
        let message = wire::EvaluationKeys {
            version: wire::VERSION,
            preset: params.name().into(),
            seed: keys.seed.to_vec().into(),
            words: keys.words.into(),
        };
        let upload = message.encode_to_vec();
        let id = *blake3::hash(&upload).as_bytes();
        Self { context, secrets, upload, id }
    }

    /// Returns the rings.
    pub fn context(&self) -> &RingContext {
        &self.context
    }

    /// Returns the secrets, which never leave the client.
    pub fn secrets(&self) -> &RingSecrets {
        &self.secrets
    }

    /// Returns the secrets that answers are under: of the first and the second ciphertext of a pair.
    pub(crate) fn answer_secrets(&self) -> [&RlweSecret; 2] {
        [&self.secrets.query, &self.secrets.second]
    }

    /// Refuses what was made with other keys.
    pub(crate) fn check_id(&self, id: &[u8; KEY_ID_BYTES]) -> Result<(), ProtocolError> {
        if *id == self.id {
            Ok(())
        } else {
            Err(ProtocolError::Keys("the query was made with others".into()))
        }
    }

    /// Returns the encoded [`wire::EvaluationKeys`], of [`upload_bytes`] bytes.
    pub fn upload(&self) -> &[u8] {
        &self.upload
    }

    /// BLAKE3 of [`RingKeys::upload`]: what queries name the keys by.
    pub fn id(&self) -> [u8; KEY_ID_BYTES] {
        self.id
    }
}

/// Client: its keys.
pub(crate) fn given_keys(given: &Given) -> Result<Arc<RingKeys>, ProtocolError> {
    given.keys.clone().ok_or_else(|| ProtocolError::Keys("the client has none yet".into()))
}

/// Server: an RLWE set on a backend.
pub struct RingScheme<B: RingOps> {
    /// The set.
    pub context: Arc<RingContext>,
    /// The backend's tables.
    pub ring: B::Ring,
}

impl<B: RingOps> RingScheme<B> {
    /// Creates the set `params` on `backend`.
    ///
    /// # Errors
    /// [`ProtocolError::Ops`] if the backend cannot hold it.
    pub fn new(backend: &B, params: &RingParams) -> Result<Self, ProtocolError> {
        let context = Arc::new(RingContext::new(*params));
        let ring = backend.open_ring(context.clone())?;
        Ok(Self { context, ring })
    }

    /// Reads uploaded keys and makes them ready.
    ///
    /// # Errors
    /// As [`open_upload`], and [`ProtocolError::Ops`] if the backend cannot hold them.
    pub fn open_keys(&self, backend: &B, body: &[u8]) -> Result<B::Keys, ProtocolError> {
        let keys = open_upload(&self.context, body)?;
        Ok(backend.open_evaluation_keys(&self.ring, keys)?)
    }
}

/// Exact bytes of the encoded [`wire::EvaluationKeys`] of a parameter set.
pub fn upload_bytes(params: &RingParams) -> usize {
    encoded_keys_bytes(params.name(), RING_SEED_BYTES, params.key_words_bytes())
}

/// Server: reads uploaded keys.
///
/// # Errors
/// [`ProtocolError::Length`] if the body is not [`upload_bytes`] long or a field has another length;
/// [`ProtocolError::Keys`] if it is no such message or names another set; [`ProtocolError::He`] if a coefficient is
/// out of range.
pub fn open_upload(context: &RingContext, body: &[u8]) -> Result<EvaluationKeys, ProtocolError> {
    let params = context.params();
    let expected = upload_bytes(params);
    let actual = body.len();
    if expected != actual {
        return Err(ProtocolError::Length { what: "body of evaluation keys", expected, actual });
    }
    let keys = decode_keys(body.to_vec().into()).map_err(|error| ProtocolError::Keys(error.to_string()))?;
    if keys.preset != params.name() {
        let text = format!("they are for another parameter set than {}", params.name());
        return Err(ProtocolError::Keys(text));
    }
    let seed = keys.seed.as_ref().try_into().map_err(|_| ProtocolError::Length {
        what: "seed of evaluation keys",
        expected: RING_SEED_BYTES,
        actual: keys.seed.len(),
    })?;
    Ok(open_keys(context, seed, &keys.words)?)
}
