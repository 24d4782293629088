//! The state of the server: tables with their queues, and everything that requests share.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Once,
        atomic::{AtomicBool, Ordering},
    },
    time::SystemTime,
};

use axum::body::Bytes;
use hush_engine::{Blob, Engine, Served};
use hush_protocol::{Name, wire::RequestShape};
use serde_json::value::RawValue;

use crate::{
    access::{gateway::Gateway, tokens::Tokens},
    config::ServerConfig,
    error::ServerError,
    keys::Keys,
    metrics::Metrics,
    operator::Operator,
    page::Page,
    queue::{batch::Batcher, limits::Budget, throttle::Buckets},
    tables::Tables,
};

/// A resident table: its engine, and its queue.
pub(crate) struct ResidentTable {
    pub(crate) name: Name,
    pub(crate) engine: Arc<dyn Engine>,
    /// The descriptor, byte for byte.
    pub(crate) descriptor: Bytes,
    /// The descriptor for embedding in another document.
    pub(crate) descriptor_value: Arc<RawValue>,
    pub(crate) batcher: Batcher,
    /// The time at which the table became resident.
    pub(crate) since: SystemTime,
}

impl ResidentTable {
    /// Creates a resident table. Fails with [`ServerError::Descriptor`] if the descriptor is not a JSON object.
    pub(crate) fn new(name: &Name, engine: Arc<dyn Engine>) -> Result<ResidentTable, ServerError> {
        let json = engine.served().descriptor_json.clone();
        let refuse = |source| ServerError::Descriptor { table: name.to_string(), source };
        let value: Box<RawValue> = serde_json::from_slice(&json).map_err(refuse)?;
        let _: BTreeMap<String, &RawValue> = serde_json::from_str(value.get()).map_err(refuse)?;
        Ok(ResidentTable {
            name: name.clone(),
            descriptor: Bytes::from_owner(json),
            descriptor_value: value.into(),
            engine,
            batcher: Batcher::default(),
            since: SystemTime::now(),
        })
    }

    /// Returns the facts of the served table.
    pub(crate) fn served(&self) -> &Served {
        self.engine.served()
    }

    /// Returns the maximum number of queries of one scan, at least 1.
    pub(crate) fn max_batch(&self) -> usize {
        self.served().max_batch.max(1)
    }

    /// Returns a file of the table by its hash.
    pub(crate) fn blob(&self, hash: &[u8; 32]) -> Option<&Blob> {
        self.served().blobs.iter().find(|blob| blob.hash == *hash)
    }

    /// Returns the shape that a request to this table must have.
    pub(crate) fn request_shape(&self, config: &ServerConfig) -> RequestShape<'_> {
        RequestShape {
            asked: &self.served().asked,
            protocol: &self.served().protocol,
            query: self.served().query,
            max_queries: config.max_queries,
        }
    }
}

/// Everything that requests share.
pub(crate) struct Server {
    pub(crate) tables: Tables,
    pub(crate) config: ServerConfig,
    pub(crate) metrics: Metrics,
    pub(crate) keys: Keys,
    pub(crate) body_budget: Arc<Budget>,
    pub(crate) buckets: Option<Buckets>,
    /// The tokens that callers need; `None` lets anyone ask.
    pub(crate) tokens: Option<Arc<Tokens>>,
    /// The gateway, if there is one. It opens requests that come through a relay.
    pub(crate) gateway: Option<Arc<Gateway>>,
    /// The operator that fulfils the requests of the admin endpoints, if there is one.
    pub(crate) operator: Option<Arc<dyn Operator>>,
    /// The page for browsers, if there is one.
    pub(crate) page: Option<Arc<dyn Page>>,
    stopping: AtomicBool,
    /// Whether the loss of a GPU was reported: one report is enough, however many queries fail.
    lost_told: Once,
}

impl Server {
    pub(crate) fn new(
        tables: Tables,
        config: ServerConfig,
        keys: Keys,
        operator: Option<Arc<dyn Operator>>,
        tokens: Option<Arc<Tokens>>,
        gateway: Option<Arc<Gateway>>,
        page: Option<Arc<dyn Page>>,
    ) -> Server {
        Server {
            operator,
            page,
            tokens,
            gateway,
            metrics: Metrics::new(&tables),
            keys,
            body_budget: Arc::new(Budget::new(
                config.max_body_memory,
                config.share_of(config.max_body_memory),
            )),
            buckets: config.throttle.map(Buckets::new),
            config,
            stopping: AtomicBool::new(false),
            lost_told: Once::new(),
            tables,
        }
    }

    /// Marks the server as stopping. From now on it reports that it is not ready.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Logs that a GPU has failed for good. Only the first call writes a line.
    pub(crate) fn tell_lost(&self, reason: &str) {
        self.lost_told.call_once(|| {
            tracing::error!(
                reason,
                "the GPU has failed, and its tables answer no queries: restart the server"
            );
        });
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}
