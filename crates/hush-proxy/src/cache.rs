//! Answers that are kept for a while, by their keys. A key that is kept is not looked up, so the server sees fewer look-ups.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use crate::{config::CacheSettings, tables::FoundRecord};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

/// The SHA-256 of a key, which is kept in its place.
type DigestOfKey = [u8; 32];

fn digest(key: &[u8]) -> DigestOfKey {
    Sha256::digest(key).into()
}

/// The answers of a route.
pub(crate) struct AnswerCache {
    most: usize,
    time: Duration,
    kept: Mutex<KeptAnswers>,
}

#[derive(Default)]
struct KeptAnswers {
    records: HashMap<DigestOfKey, (Instant, FoundRecord)>,
    /// The keys, the oldest first.
    order: VecDeque<(Instant, DigestOfKey)>,
}

impl AnswerCache {
    pub(crate) fn new(settings: CacheSettings) -> Self {
        let CacheSettings { entries, seconds } = settings;
        Self { most: entries, time: Duration::from_secs(seconds), kept: Mutex::default() }
    }

    /// Returns the answer for a key, if it is kept and not too old.
    pub(crate) fn get(&self, key: &[u8]) -> Option<FoundRecord> {
        let mut kept = self.kept.lock();
        kept.drop_old(self.time);
        kept.records.get(&digest(key)).map(|(_, record)| record.clone())
    }

    /// Keeps an answer. The oldest ones make room.
    pub(crate) fn put(&self, key: &[u8], record: FoundRecord) {
        let mut kept = self.kept.lock();
        kept.drop_old(self.time);
        let now = Instant::now();
        let key = digest(key);
        kept.order.push_back((now, key));
        kept.records.insert(key, (now, record));
        while kept.order.len() > self.most {
            kept.drop_oldest();
        }
    }
}

impl KeptAnswers {
    fn drop_old(&mut self, time: Duration) {
        while self.order.front().is_some_and(|(since, _)| since.elapsed() >= time) {
            self.drop_oldest();
        }
    }

    /// Drops the oldest answer, unless its key was answered again since.
    fn drop_oldest(&mut self) {
        let Some((since, key)) = self.order.pop_front() else { return };
        if self.records.get(&key).is_some_and(|(kept, _)| *kept == since) {
            self.records.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_answers_are_kept_for_a_while() {
        let cache = AnswerCache::new(CacheSettings { entries: 2, seconds: 3600 });
        cache.put(b"a", Some(b"1".to_vec().into()));
        cache.put(b"b", None);
        assert_eq!(cache.get(b"a"), Some(Some(b"1".to_vec().into())));
        assert_eq!((cache.get(b"b"), cache.get(b"c")), (Some(None), None));
        cache.put(b"a", None);
        cache.put(b"c", None);
        assert_eq!((cache.get(b"a"), cache.get(b"b"), cache.get(b"c")), (Some(None), None, Some(None)));
        let none = AnswerCache::new(CacheSettings { entries: 2, seconds: 0 });
        none.put(b"a", None);
        assert_eq!(none.get(b"a"), None);
    }
}
