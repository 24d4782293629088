//! A table in parts that are all in this process.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use hush_engine::{
    Backends, Engine, Silent,
    parts::{PartEngine, Share, Source, Unavailable, Workers, open_head, open_part},
};
use hush_store::snapshot::Verify;
use prost::bytes::Bytes;

use super::Folder;

/// Parts in this process, each in a thread: what goes to them and comes back are the bytes that other processes would get.
pub(crate) struct Here {
    pub(crate) parts: Vec<Arc<dyn PartEngine>>,
    pub(crate) gone: AtomicBool,
    pub(crate) batches: AtomicUsize,
    /// The change to the reply of the last part.
    pub(crate) spoil: Mutex<Option<Spoil>>,
    /// Bytes of every part's last reply.
    pub(crate) replied: Mutex<Vec<usize>>,
}

pub(crate) type Spoil = fn(Vec<u8>) -> Vec<u8>;

impl Here {
    /// Parts of these weights, on `backends`.
    pub(crate) fn open(folder: &Folder, weights: &[u32], backends: &Backends) -> Arc<Self> {
        let parts = (0..weights.len()).map(|index| {
            let share = Share { index, weights: weights.to_vec() };
            open_part(&source(folder), &share, backends, &Silent).unwrap()
        });
        Self::of(parts.collect())
    }

    pub(crate) fn of(parts: Vec<Arc<dyn PartEngine>>) -> Arc<Self> {
        Arc::new(Self {
            parts,
            gone: AtomicBool::new(false),
            batches: AtomicUsize::new(0),
            spoil: Mutex::new(None),
            replied: Mutex::default(),
        })
    }
}

impl Workers for Here {
    fn scan(&self, batch: Bytes) -> Result<Vec<Bytes>, Unavailable> {
        self.batches.fetch_add(1, Ordering::Relaxed);
        if self.gone.load(Ordering::Relaxed) {
            return Err(Unavailable { part: 1, reason: "its process is gone".into() });
        }
        let mut replies: Vec<Bytes> = thread::scope(|scope| {
            let scans: Vec<_> =
                self.parts.iter().map(|part| scope.spawn(|| part.scan(batch.clone()).into())).collect();
            scans.into_iter().map(|scan| scan.join().unwrap()).collect()
        });
        *self.replied.lock().unwrap() = replies.iter().map(Bytes::len).collect();
        if let Some(spoil) = *self.spoil.lock().unwrap() {
            let last = replies.pop().unwrap();
            replies.push(spoil(last.into()).into());
        }
        Ok(replies)
    }
}

pub(crate) fn source(folder: &Folder) -> Source {
    Source::Folder(folder.table(), Verify::Full)
}

/// Returns the head of the table, on the CPU.
pub(crate) fn head(folder: &Folder, workers: &Arc<Here>, backends: &Backends) -> Arc<dyn Engine> {
    open_head(&source(folder), workers.clone(), backends.cpu().clone()).unwrap()
}
