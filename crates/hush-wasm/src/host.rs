//! The host of a session, in memory. The driver may keep hints and records of keys somewhere else for later: it looks
//! for them when it is told to, between two steps.

use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use hush_client::session::{
    CacheError, CachedHint, CheckedHint, Event, Hint, Host, KeptKeys, KeyNote, KeyRequest, Need, PartialHint,
    kept_keys::RECORD_BYTES,
};
use hush_protocol::descriptor::BlobRef;
use js_sys::Date;
use serde_json::Value;
use wasm_bindgen::prelude::wasm_bindgen;
use zeroize::Zeroizing;

#[wasm_bindgen]
extern "C" {
    /// Milliseconds, by a clock that does not go back.
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn performance_now() -> f64;
}

type Hash = [u8; 32];

/// A hint that is all here, or the first bytes of one.
type Bytes = Arc<Vec<u8>>;

/// The host of all sessions of one server.
#[derive(Default)]
pub(crate) struct MemoryHost(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The events for the user, as JSON.
    events: Vec<Value>,
    /// The files that the driver is to look for.
    needed: Vec<Needed>,
    /// The files that the driver has found, until the session asks for them; `None` for those that it lacks.
    found: HashMap<Hash, Option<Vec<u8>>>,
    /// Hints of open tables.
    whole: HashMap<Hash, Weak<Vec<u8>>>,
    /// The parts of downloads that broke off.
    parts: HashMap<Hash, Bytes>,
    /// The files that the driver is to keep for later, if it keeps any.
    fresh: Vec<(Hash, Bytes)>,
    keeps_hints: bool,
    /// The kept files that are damaged.
    damaged: Vec<Hash>,
    /// Records of keys as they were last, by name.
    keys: HashMap<String, KeptKeys>,
    /// Requests for keys that sessions wait for.
    asked: Vec<KeyRequest>,
    /// Keys that were drawn for such requests.
    drawn: Vec<(KeyRequest, KeptKeys)>,
    /// Events of keys, by the names of their records, until the driver has kept them.
    notes: Vec<(String, KeptKeys, KeyNote)>,
    /// The greatest serial of each publication that was seen or kept.
    serials: HashMap<String, u64>,
    /// Serials that were seen, and what the driver has kept of their publications is not known yet.
    seen: HashMap<String, u64>,
    /// The driver gives the work up: nothing is looked for.
    is_abandoned: bool,
}

/// A file that the driver looks for.
#[derive(Clone, PartialEq)]
pub(crate) enum Needed {
    Hint(Hash),
    /// A record of keys, by its name.
    Keys(String),
    /// A serial, by its publication.
    Serial(String),
}

impl MemoryHost {
    pub(crate) fn new(keeps_hints: bool) -> Self {
        Self(Arc::new(Mutex::new(State { keeps_hints, ..State::default() })))
    }

    pub(crate) fn take_events(&self) -> Vec<Value> {
        mem::take(&mut self.state().events)
    }

    pub(crate) fn take_needed(&self) -> Vec<Needed> {
        mem::take(&mut self.state().needed)
    }

    pub(crate) fn take_fresh(&self) -> Vec<(Hash, Bytes)> {
        mem::take(&mut self.state().fresh)
    }

    pub(crate) fn take_damaged(&self) -> Vec<Hash> {
        mem::take(&mut self.state().damaged)
    }

    pub(crate) fn set_abandoned(&self, is_abandoned: bool) {
        let mut state = self.state();
        state.is_abandoned = is_abandoned;
        state.needed.clear();
        state.asked.clear();
    }

    /// Takes what the driver has kept of a hint.
    pub(crate) fn provide_hint(&self, hash: Hash, bytes: Option<Vec<u8>>) {
        self.state().found.insert(hash, bytes);
    }

    /// Takes the record that the driver has kept under `name`, if it has. Notes there what became of keys, and draws what sessions
    /// have asked for. Returns the record to be kept from now on, if that is another one.
    pub(crate) fn provide_keys(
        &self,
        name: &str,
        kept: Option<&[u8]>,
    ) -> Option<Zeroizing<[u8; RECORD_BYTES]>> {
        let mut state = self.state();
        let now = seconds_since_1970();
        let kept = kept.and_then(|kept| KeptKeys::decode(kept.as_array()?, name));
        let mut keys = kept.or_else(|| state.keys.get(name).cloned());
        let mut is_news = false;
        for (_, noted, note) in state.notes.extract_if(.., |note| note.0 == name) {
            is_news |= keys.as_mut().is_some_and(|keys| keys.note(&noted, note));
        }
        let asked: Vec<_> = state.asked.extract_if(.., |request| request.name == name).collect();
        for request in asked {
            let drawn = KeptKeys::draw(keys, &request, now);
            state.drawn.push((request, drawn.clone()));
            (keys, is_news) = (Some(drawn), true);
        }
        let keys = keys?;
        let record = is_news.then(|| keys.encode(name));
        state.keys.insert(name.to_owned(), keys);
        record
    }

    /// Returns the names of records in which something is to be noted.
    pub(crate) fn noted_keys(&self) -> Vec<String> {
        let mut names: Vec<_> = self.state().notes.iter().map(|(name, ..)| name.clone()).collect();
        names.dedup();
        names
    }

    /// Takes the serial that the driver has kept of a publication. Returns what is to be kept in its place, if that is greater.
    pub(crate) fn provide_serial(&self, publication: &str, kept: Option<&str>) -> Option<String> {
        let kept = kept.and_then(|kept| kept.parse().ok());
        let mut state = self.state();
        let seen = state.seen.remove(publication).unwrap_or_default();
        let newest = state.serials.entry(publication.to_owned()).or_default();
        *newest = seen.max(*newest).max(kept.unwrap_or_default());
        (kept < Some(*newest)).then(|| newest.to_string())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn seconds_since_1970() -> u64 {
    (Date::now() / 1000.0) as u64
}

impl State {
    fn has(&mut self, need: &Need<'_>) -> Result<(), Needed> {
        match need {
            Need::Hint(blob) => {
                let hash = &blob.blake3;
                let here = self.found.contains_key(hash)
                    || self.parts.contains_key(hash)
                    || self.whole.get(hash).is_some_and(|hint| hint.strong_count() > 0);
                if here { Ok(()) } else { Err(Needed::Hint(*hash)) }
            }
            Need::Keys(request) => {
                if self.drawn.iter().any(|(drawn, _)| drawn.is_like(request)) {
                    return Ok(());
                }
                self.asked.push((*request).clone());
                Err(Needed::Keys(request.name.clone()))
            }
            &Need::Serial { publication, serial } => {
                if self.serials.get(publication).is_some_and(|newest| *newest >= serial) {
                    return Ok(());
                }
                let seen = self.seen.entry(publication.to_owned()).or_default();
                *seen = serial.max(*seen);
                Err(Needed::Serial(publication.to_owned()))
            }
        }
    }

    /// Returns the whole hint, if an open table has it, or the driver has kept it.
    fn whole(&mut self, blob: &BlobRef) -> Option<CheckedHint> {
        let shared = self.whole.get(&blob.blake3).and_then(Weak::upgrade);
        let kept = self.found.remove(&blob.blake3).flatten();
        let (hint, is_kept) = match (shared, kept) {
            (Some(hint), _) => (hint, false),
            (None, Some(kept)) => (Arc::new(kept), true),
            (None, None) => return None,
        };
        let checked = CheckedHint::new(hint.clone(), blob);
        if checked.is_some() {
            self.whole.insert(blob.blake3, Arc::downgrade(&hint));
        } else if is_kept {
            self.damaged.push(blob.blake3);
        }
        checked
    }
}

impl Host for MemoryHost {
    fn now(&self) -> Duration {
        Duration::from_secs_f64(performance_now().max(0.0) / 1000.0)
    }

    fn date(&self) -> Duration {
        Duration::from_secs(seconds_since_1970())
    }

    fn report(&self, event: &Event<'_>) {
        let told = serde_json::to_value(event).expect("names, numbers and text always have a JSON form");
        let mut state = self.state();
        match state.events.last_mut() {
            // Only the newest of what the driver has not seen.
            Some(last) if last["kind"] == told["kind"] && told["kind"] == "hint_progress" => *last = told,
            _ => state.events.push(told),
        }
    }

    fn is_ready(&self, need: &Need<'_>) -> bool {
        let mut state = self.state();
        if state.is_abandoned {
            return true;
        }
        let Err(needed) = state.has(need) else { return true };
        if !state.needed.contains(&needed) {
            state.needed.push(needed);
        }
        false
    }

    fn hint(&self, blob: &BlobRef) -> Result<CachedHint, CacheError> {
        let mut state = self.state();
        if state.is_abandoned {
            return Err("given up".into());
        }
        if let Some(hint) = state.whole(blob) {
            return Ok(CachedHint::Whole(hint));
        }
        let bytes = state.parts.remove(&blob.blake3).unwrap_or_default();
        Ok(CachedHint::Part(Box::new(Part { state: self.0.clone(), blob: blob.clone(), bytes: Some(bytes) })))
    }

    fn keys(&self, request: &KeyRequest) -> Result<KeptKeys, CacheError> {
        let mut state = self.state();
        if state.is_abandoned {
            return Err("given up".into());
        }
        let drawn = state.drawn.iter().position(|(drawn, _)| drawn.is_like(request));
        let drawn = drawn.ok_or("the driver has given no keys")?;
        Ok(state.drawn.swap_remove(drawn).1)
    }

    fn note(&self, name: &str, keys: &KeptKeys, note: KeyNote) -> Result<(), CacheError> {
        let mut state = self.state();
        if let Some(known) = state.keys.get_mut(name) {
            known.note(keys, note);
        }
        state.notes.push((name.to_owned(), keys.clone(), note));
        Ok(())
    }

    fn newest_serial(&self, publication: &str, _: u64) -> Result<u64, CacheError> {
        let state = self.state();
        if state.is_abandoned {
            return Err("given up".into());
        }
        let newest = state.serials.get(publication).copied();
        newest.ok_or_else(|| "the driver has not said which serial it has kept".into())
    }
}

/// A hint while it is downloaded. What there is of it goes back to the host if the download breaks off.
struct Part {
    state: Arc<Mutex<State>>,
    blob: BlobRef,
    /// The bytes so far; `None` once the hint is whole, or of no use.
    bytes: Option<Bytes>,
}

impl Part {
    fn bytes(&mut self) -> &mut Vec<u8> {
        Arc::make_mut(self.bytes.get_or_insert_default())
    }
}

impl PartialHint for Part {
    fn present(&self) -> Result<u64, CacheError> {
        Ok(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), CacheError> {
        let whole = self.blob.bytes;
        let present = self.bytes();
        // All at once, so that nothing is moved: the session accepts no hint that is longer than the caller allows.
        let missing =
            usize::try_from(whole).unwrap_or(usize::MAX).saturating_sub(present.len()).max(bytes.len());
        present.try_reserve_exact(missing).map_err(|_| {
            format!(
                "there is no memory for a hint of {whole} bytes: ask for a table without a hint, such as colpack"
            )
        })?;
        present.extend_from_slice(bytes);
        Ok(())
    }

    fn clear(&mut self) -> Result<(), CacheError> {
        self.bytes().clear();
        Ok(())
    }

    fn read(&self) -> Result<Hint, CacheError> {
        Ok(self.bytes.clone().unwrap_or_default())
    }

    fn keep(mut self: Box<Self>) -> Result<(), CacheError> {
        let Some(bytes) = self.bytes.take() else { return Ok(()) };
        let mut state = lock(&self.state);
        state.whole.insert(self.blob.blake3, Arc::downgrade(&bytes));
        if state.keeps_hints {
            state.fresh.push((self.blob.blake3, bytes));
        }
        Ok(())
    }

    fn discard(mut self: Box<Self>) -> Result<(), CacheError> {
        self.bytes = None;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let Some(bytes) = self.bytes.take().filter(|bytes| !bytes.is_empty()) else { return };
        lock(&self.state).parts.insert(self.blob.blake3, bytes);
    }
}
