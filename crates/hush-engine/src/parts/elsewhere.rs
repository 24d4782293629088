//! The shares of a table that other processes have.

use std::sync::Arc;

use hush_protocol::{hosted::Contribution, wire::Query};
use prost::{Message, bytes::Bytes};

use super::{
    Workers,
    message::{Batch, Keys, Reply, Said},
};
use crate::EngineError;

/// The number of times that a batch is sent to the parts: the second time with the keys that one of them does not have.
const ATTEMPTS: usize = 2;

/// The parts of a table that `workers` reaches.
pub(crate) struct Elsewhere {
    pub(super) workers: Arc<dyn Workers>,
}

impl Elsewhere {
    /// Has all parts scan a batch. `keys` are those of the client of each query as they were uploaded; empty if the protocol has
    /// none.
    pub(crate) fn scan(
        &self,
        epoch: &[u8; 32],
        queries: &[Query],
        keys: &[&Bytes],
    ) -> Result<Vec<Contribution<Vec<u32>>>, EngineError> {
        let mut batch = Batch { epoch: epoch.to_vec().into(), queries: queries.to_vec(), keys: Vec::new() };
        for _ in 0..ATTEMPTS {
            let replies = self.workers.scan(batch.encode_to_vec().into());
            let replies = replies.map_err(|error| EngineError::Unavailable { reason: error.to_string() })?;
            let mut partials = Vec::new();
            let mut missing = Vec::new();
            for (part, reply) in replies.into_iter().enumerate() {
                match said(part, reply)? {
                    Said::Scanned(scanned) => {
                        partials.extend(scanned.partials.iter().map(|contribution| contribution.partial()));
                    }
                    Said::Missing(keys) => missing.extend(keys.ids),
                    Said::Refused(query) => {
                        let index = query.index as usize;
                        let reason = query.reason;
                        return Err(EngineError::Query { index, reason });
                    }
                    Said::Failed(reason) => return Err(failed(part, &reason)),
                }
            }
            if missing.is_empty() {
                return Ok(partials);
            }
            // All named keys are sent, as a part that has some may have dropped them meanwhile.
            let mut named: Vec<Keys> = queries
                .iter()
                .zip(keys)
                .map(|(query, body)| Keys { id: query.key_id.clone(), body: (*body).clone() })
                .collect();
            named.sort_unstable_by(|a, b| a.id.cmp(&b.id));
            named.dedup_by(|a, b| a.id == b.id);
            batch.keys = named;
        }
        Err(EngineError::Internal("a part does not take the keys that it asks for".into()))
    }
}

fn said(part: usize, reply: Bytes) -> Result<Said, EngineError> {
    let reply = Reply::decode(reply).map_err(|error| failed(part, &error.to_string()))?;
    reply.said.ok_or_else(|| failed(part, "it says nothing"))
}

fn failed(part: usize, reason: &str) -> EngineError {
    EngineError::Internal(format!("part {part}: {reason}"))
}
