//! The keys of a client of a protocol over rings: the secrets that it keeps, and the evaluation keys that it uploads.

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

/// The most look-ups that a client makes with the same evaluation keys, by default.
pub const LOOKUPS_PER_KEY: u32 = 256;

/// A client's secrets for one parameter set, and the evaluation keys derived from them.
pub struct RingKeys {
    context: RingContext,
    secrets: RingSecrets,
    upload: Vec<u8>,
    id: [u8; KEY_ID_BYTES],
}

impl RingKeys {
    /// Creates the keys from `seed`: 32 random bytes from the operating system, which the client keeps as a secret. The
    /// same seed gives the same keys, so they are uploaded once. Source: OnionPIRv2 section 3.5 (masks from a seed).
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

    /// Returns the rings of the parameter set.
    pub fn context(&self) -> &RingContext {
        &self.context
    }

    /// Returns the secrets, which never leave the client.
    pub fn secrets(&self) -> &RingSecrets {
        &self.secrets
    }

    /// Returns the secrets that decrypt an answer: of the first and of the second ciphertext of a pair.
    pub(crate) fn answer_secrets(&self) -> [&RlweSecret; 2] {
        [&self.secrets.query, &self.secrets.second]
    }

    /// Refuses a query that was made with other keys.
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

    /// Returns the BLAKE3 hash of [`RingKeys::upload`], by which queries name the keys.
    pub fn id(&self) -> [u8; KEY_ID_BYTES] {
        self.id
    }
}

/// Client: returns its keys.
pub(crate) fn given_keys(given: &Given) -> Result<Arc<RingKeys>, ProtocolError> {
    given.keys.clone().ok_or_else(|| ProtocolError::Keys("the client has none yet".into()))
}

/// Server: an RLWE set on a backend.
pub struct RingScheme<B: RingOps> {
    /// The parameter set.
    pub context: Arc<RingContext>,
    /// The backend's data of the ring.
    pub ring: B::Ring,
}

impl<B: RingOps> RingScheme<B> {
    /// Opens the set `params` on `backend`.
    ///
    /// # Errors
    /// [`ProtocolError::Ops`] if the backend cannot hold it.
    pub fn new(backend: &B, params: &RingParams) -> Result<Self, ProtocolError> {
        let context = Arc::new(RingContext::new(*params));
        let ring = backend.open_ring(context.clone())?;
        Ok(Self { context, ring })
    }

    /// Parses uploaded keys and opens them on the backend.
    ///
    /// # Errors
    /// The errors of [`open_upload`]. [`ProtocolError::Ops`] if the backend cannot hold the keys.
    pub fn open_keys(&self, backend: &B, body: &[u8]) -> Result<B::Keys, ProtocolError> {
        let keys = open_upload(&self.context, body)?;
        Ok(backend.open_evaluation_keys(&self.ring, keys)?)
    }
}

/// Returns the exact length of a parameter set's encoded [`wire::EvaluationKeys`], in bytes.
pub fn upload_bytes(params: &RingParams) -> usize {
    encoded_keys_bytes(params.name(), RING_SEED_BYTES, params.key_words_bytes())
}

/// Server: parses uploaded keys.
///
/// # Errors
/// [`ProtocolError::Length`] if the body does not have [`upload_bytes`] bytes, or a field has a wrong length.
/// [`ProtocolError::Keys`] if the message is malformed or for another set. [`ProtocolError::He`] if a coefficient is too large.
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
