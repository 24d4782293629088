//! What the server holds: tables by name, and everything that requests share.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Once, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::body::Bytes;
use hush_engine::{Blob, Engine, KeySpec};
use hush_protocol::wire::{QuerySizes, RequestShape};
use serde_json::value::RawValue;

use crate::{
    batch::Batcher, config::ServerConfig, error::ServerError, keys::Keys, limits::Budget, metrics::Metrics,
    throttle::Buckets,
};

/// The tables of a server, by name. Clones share the same tables, so that one clone can go to
/// [`crate::run`] and another can load tables in the background.
#[derive(Clone, Default)]
pub struct Tables {
    slots: Arc<RwLock<BTreeMap<String, Slot>>>,
}

/// A name with or without its table.
#[derive(Clone)]
pub(crate) enum Slot {
    /// Announced; its queries are answered 503 until it is there.
    Loading,
    /// Ready to answer.
    Resident(Arc<Table>),
}

impl Tables {
    /// No tables.
    pub fn new() -> Tables {
        Tables::default()
    }

    /// Announces a table that is still loading: the server is not ready until it is inserted.
    /// A resident table of that name goes.
    ///
    /// # Errors
    /// [`ServerError::TableName`] if the name cannot stand in a URL.
    pub fn announce(&self, name: &str) -> Result<(), ServerError> {
        self.set(name, Slot::Loading)
    }

    /// Makes a table resident, in place of one that was announced or of its previous epoch.
    /// Queries that are already under way on the previous epoch are still answered.
    ///
    /// # Errors
    /// [`ServerError::TableName`] if the name cannot stand in a URL, [`ServerError::Descriptor`] if
    /// the table's descriptor is not a JSON object.
    pub fn insert(&self, name: &str, engine: Arc<dyn Engine>) -> Result<(), ServerError> {
        let table = Table::new(name, engine)?;
        self.set(name, Slot::Resident(Arc::new(table)))
    }

    fn set(&self, name: &str, slot: Slot) -> Result<(), ServerError> {
        let allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-');
        if !(1..=64).contains(&name.len()) || !name.bytes().all(allowed) {
            return Err(ServerError::TableName { name: name.to_owned() });
        }
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        slots.insert(name.to_owned(), slot);
        Ok(())
    }

    pub(crate) fn slot(&self, name: &str) -> Option<Slot> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(crate) fn all(&self) -> Vec<(String, Slot)> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.iter().map(|(name, slot)| (name.clone(), slot.clone())).collect()
    }

    pub(crate) fn all_resident(&self) -> bool {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.values().all(|slot| matches!(slot, Slot::Resident(_)))
    }

    /// A resident table whose GPU has failed for good, and how.
    pub(crate) fn lost(&self) -> Option<(String, String)> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.iter().find_map(|(name, slot)| match slot {
            Slot::Loading => None,
            Slot::Resident(table) => Some((name.clone(), table.engine.lost()?)),
        })
    }

    /// The resident tables that need keys: which, and who can open them.
    pub(crate) fn with_keys(&self) -> Vec<(KeySpec, Arc<dyn Engine>)> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        let resident = slots.values().filter_map(|slot| match slot {
            Slot::Loading => None,
            Slot::Resident(table) => Some((table.keys.clone()?, table.engine.clone())),
        });
        resident.collect()
    }

    pub(crate) fn blob(&self, hash: &[u8; 32]) -> Option<Blob> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.values().find_map(|slot| match slot {
            Slot::Loading => None,
            Slot::Resident(table) => table.blobs.iter().find(|blob| blob.hash == *hash).cloned(),
        })
    }
}

/// A resident table: its engine, what the engine says about itself, and its queue.
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) engine: Arc<dyn Engine>,
    /// The descriptor, byte for byte.
    pub(crate) descriptor: Bytes,
    /// The same for embedding in another document.
    pub(crate) descriptor_value: Arc<RawValue>,
    /// `records` of the descriptor, if it says so.
    pub(crate) records: Option<u64>,
    pub(crate) epoch: [u8; 32],
    pub(crate) protocol: String,
    pub(crate) query: QuerySizes,
    pub(crate) answer_bytes: usize,
    pub(crate) max_batch: usize,
    /// Batches that are answered at once, at most; at least 1.
    pub(crate) batches_in_flight: usize,
    /// The keys that queries need, if any.
    pub(crate) keys: Option<KeySpec>,
    blobs: Vec<Blob>,
    pub(crate) batcher: Batcher,
}

impl Table {
    fn new(name: &str, engine: Arc<dyn Engine>) -> Result<Table, ServerError> {
        let refuse = |source| ServerError::Descriptor { table: name.to_owned(), source };
        let json = engine.descriptor_json();
        let value: Box<RawValue> = serde_json::from_slice(&json).map_err(refuse)?;
        let members: BTreeMap<String, &RawValue> = serde_json::from_str(value.get()).map_err(refuse)?;
        let records = members.get("records").and_then(|records| records.get().parse().ok());
        Ok(Table {
            name: name.to_owned(),
            descriptor: Bytes::from_owner(json),
            descriptor_value: value.into(),
            records,
            epoch: engine.epoch(),
            protocol: engine.protocol().to_owned(),
            query: engine.query_bytes(),
            answer_bytes: engine.answer_bytes(),
            max_batch: engine.max_batch().max(1),
            batches_in_flight: engine.backend().batches_in_flight(),
            keys: engine.keys(),
            blobs: engine.blobs(),
            engine,
            batcher: Batcher::default(),
        })
    }

    pub(crate) fn request_shape(&self, config: &ServerConfig) -> RequestShape<'_> {
        RequestShape {
            epoch: &self.epoch,
            protocol: &self.protocol,
            query: self.query,
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
    stopping: AtomicBool,
    /// That a GPU is lost is said once, however many queries it fails.
    lost_told: Once,
}

impl Server {
    pub(crate) fn new(tables: Tables, config: ServerConfig, keys: Keys) -> Server {
        Server {
            tables,
            metrics: Metrics::new(),
            keys,
            body_budget: Arc::new(Budget::new(config.max_body_memory)),
            buckets: config.throttle.map(Buckets::new),
            config,
            stopping: AtomicBool::new(false),
            lost_told: Once::new(),
        }
    }

    /// From now on the server says that it is not ready.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Logs that a GPU has failed for good.
    pub(crate) fn tell_lost(&self, reason: &str) {
        self.lost_told.call_once(|| {
            tracing::error!(
                reason,
                "the GPU has failed, and its tables answer nothing: start the server again"
            );
        });
    }

    pub(crate) fn is_ready(&self) -> bool {
        !self.stopping.load(Ordering::Relaxed) && self.tables.all_resident()
    }
}
