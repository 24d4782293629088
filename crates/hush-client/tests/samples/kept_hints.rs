//! Hints that a host keeps in memory, whole or in part.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use hush_client::session::{CacheError, CachedHint, CheckedHint, Hint, PartialHint};
use hush_protocol::descriptor::BlobRef;

/// Hints by their hash. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct KeptHints(Arc<Mutex<HashMap<[u8; 32], Vec<u8>>>>);

impl KeptHints {
    pub(crate) fn put(&self, blake3: [u8; 32], bytes: &[u8]) {
        self.0.lock().unwrap().insert(blake3, bytes.to_vec());
    }

    pub(crate) fn get(&self, blake3: [u8; 32]) -> Option<Vec<u8>> {
        self.0.lock().unwrap().get(&blake3).cloned()
    }

    /// Returns a hint as a host's cache has it.
    pub(crate) fn cached(&self, blob: &BlobRef) -> CachedHint {
        let bytes = self.get(blob.blake3).unwrap_or_default();
        if let Some(whole) = CheckedHint::new(Arc::new(bytes.clone()), blob) {
            return CachedHint::Whole(whole);
        }
        CachedHint::Part(Box::new(Part { hints: self.clone(), blake3: blob.blake3, bytes }))
    }
}

/// A part of a hint, kept if it is dropped.
struct Part {
    hints: KeptHints,
    blake3: [u8; 32],
    bytes: Vec<u8>,
}

impl PartialHint for Part {
    fn present(&self) -> Result<u64, CacheError> {
        Ok(self.bytes.len() as u64)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), CacheError> {
        self.bytes.extend_from_slice(bytes);
        self.hints.put(self.blake3, &self.bytes);
        Ok(())
    }

    fn clear(&mut self) -> Result<(), CacheError> {
        self.bytes.clear();
        Ok(())
    }

    fn read(&self) -> Result<Hint, CacheError> {
        Ok(Arc::new(self.bytes.clone()))
    }

    fn keep(self: Box<Self>) -> Result<(), CacheError> {
        self.hints.put(self.blake3, &self.bytes);
        Ok(())
    }

    fn discard(self: Box<Self>) -> Result<(), CacheError> {
        self.hints.0.lock().unwrap().remove(&self.blake3);
        Ok(())
    }
}
