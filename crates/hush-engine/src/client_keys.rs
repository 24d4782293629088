//! What all tables with evaluation keys do alike.

use std::sync::Arc;

use hush_he::params::{RingContext, RingParams};
use hush_ops::{OpsError, contract::RingOps};
use hush_protocol::{
    ProtocolError,
    ring_keys::{open_upload, upload_bytes},
};

use crate::{Backend, ClientKeys, EngineError, KeySpec};

/// The keys of a parameter set, opened by a backend.
pub(crate) fn key_spec(ring: &RingParams, backend: Backend) -> KeySpec {
    KeySpec { preset: ring.name().into(), bytes: upload_bytes(ring), backend }
}

/// Reads uploaded keys and makes them ready.
pub(crate) fn open_client_keys<B>(
    backend: &B,
    ring: &B::Ring,
    context: &RingContext,
    body: &[u8],
) -> Result<ClientKeys, EngineError>
where
    B: RingOps,
    B::Keys: 'static,
{
    let refuse = |error: ProtocolError| EngineError::Keys { reason: error.to_string() };
    let keys = open_upload(context, body).map_err(refuse)?;
    let keys = backend.open_evaluation_keys(ring, keys).map_err(|error| match error {
        OpsError::Backend { .. } => EngineError::Internal(error.to_string()),
        error => refuse(error.into()),
    })?;
    Ok(ClientKeys(Arc::new(keys)))
}

/// The keys of a batch as the backend holds them.
pub(crate) fn downcast<B>(keys: &[Option<ClientKeys>]) -> Result<Vec<&B::Keys>, EngineError>
where
    B: RingOps,
    B::Keys: 'static,
{
    let no_keys = |index| EngineError::Query { index, reason: "it comes without evaluation keys".into() };
    let opened = keys.iter().enumerate().map(|(index, keys)| {
        keys.as_ref().and_then(|keys| keys.0.downcast_ref::<B::Keys>()).ok_or_else(|| no_keys(index))
    });
    opened.collect()
}

/// The error of an answer, by who is to blame.
pub(crate) fn refuse_query(error: ProtocolError) -> EngineError {
    match error {
        ProtocolError::Query { index, source } => EngineError::Query { index, reason: source.to_string() },
        error => EngineError::Internal(error.to_string()),
    }
}
