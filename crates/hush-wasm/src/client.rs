//! A server, and an open table of it.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use hush_client::{
    Choices, Found, KeyColumn, TableFacts, Wanted,
    session::{Server, ServerUrl, Session, SessionError, SessionOptions, kept_keys::RECORD_BYTES},
};
use hush_protocol::{
    Code,
    descriptor::Descriptor,
    sorted::found::{RowMatch, UnknownRowMatch},
};
use js_sys::{Array, BigInt, Uint8Array};
use serde::Serialize;
use wasm_bindgen::{JsCast, JsValue, prelude::wasm_bindgen};
use zeroize::{Zeroize, Zeroizing};

use crate::{
    error::{randomness, refused, thrown},
    host::MemoryHost,
    object::{json, object},
    work::Work,
};

/// The longest hint that is accepted unless the caller says otherwise, in bytes: a page has 4 GiB for everything.
const MAX_HINT_BYTES: u64 = 1 << 30;

/// A server: what a driver connects, and opens tables of.
#[wasm_bindgen]
pub struct Client {
    url: ServerUrl,
    /// The server, or the relay before it.
    peer: ServerUrl,
    options: SessionOptions,
    host: Arc<MemoryHost>,
    /// Once it is connected.
    server: Rc<RefCell<Option<Server>>>,
}

/// An open table.
#[wasm_bindgen]
pub struct OpenTable {
    host: Arc<MemoryHost>,
    /// The session; `None` while look-ups are under way.
    session: Rc<RefCell<Option<Session>>>,
}

#[derive(Serialize)]
struct About<'a> {
    name: &'a str,
    #[serde(flatten)]
    facts: TableFacts,
}

#[wasm_bindgen]
impl Client {
    /// Creates a server that is not asked yet. `choices` is a JSON document; `keeps_hints` is whether the driver keeps hints
    /// for later. Throws an error for an invalid URL or option, and for a token that would be sent without TLS.
    #[wasm_bindgen(constructor)]
    pub fn new(url: &str, choices: &str, keeps_hints: bool) -> Result<Self, JsValue> {
        let parsed = |url: &str| ServerUrl::parse(url).map_err(|error| thrown(&error));
        let url = parsed(url)?;
        let mut choices: Choices = serde_json::from_str(choices)
            .map_err(|error| refused(Code::Options, &format!("an option is of no use: {error}")))?;
        choices.max_hint.get_or_insert(MAX_HINT_BYTES);
        let peer = match &choices.relay {
            Some(relay) => parsed(relay)?,
            None if choices.token.is_some() && !url.is_https() && !url.is_loopback() => {
                return Err(thrown(&SessionError::TokenInTheOpen));
            }
            None => url.clone(),
        };
        let options = choices.session().map_err(|reason| refused(Code::Options, reason))?;
        let host = Arc::new(MemoryHost::new(keeps_hints));
        Ok(Self { url, peer, options, host, server: Rc::default() })
    }

    /// Returns the URL that paths are added to, the server's or the relay's.
    #[wasm_bindgen(getter)]
    pub fn url(&self) -> String {
        self.peer.as_str().to_owned()
    }

    /// Asks the server for its tables. Throws `no_randomness` without randomness; errors of requests come from the `Work`.
    pub fn connect(&self) -> Result<Work, JsValue> {
        randomness()?;
        let task = Server::connect(self.url.clone(), self.options.clone(), self.host.clone());
        let place = self.server.clone();
        Ok(Work::new(&self.host, task, move |server| {
            *place.borrow_mut() = Some(server.map_err(|error| thrown(&error))?);
            Ok(JsValue::UNDEFINED)
        }))
    }

    /// Returns the tables, as JSON.
    pub fn tables(&self) -> String {
        let server = self.server.borrow();
        let tables = server.as_ref().map_or(&[][..], Server::tables);
        json(&tables)
    }

    /// Opens a table, by name or the only one: the result is an `OpenTable`. Throws an error without randomness, or if `connect`
    /// has not ended.
    pub fn open(&self, name: Option<String>) -> Result<Work, JsValue> {
        randomness()?;
        let server = self.server.borrow();
        let server =
            server.as_ref().ok_or_else(|| refused(Code::ClientFailed, "the server is not connected"))?;
        let host = self.host.clone();
        Ok(Work::new(&self.host, server.open(name.as_deref()), move |session| {
            let session = session.map_err(|error| thrown(&error))?;
            Ok(OpenTable { host, session: Rc::new(RefCell::new(Some(session))) }.into())
        }))
    }

    /// Takes what the driver has kept of the hint of this hash, if it has. Throws an error for a hash without 64 hex digits.
    pub fn provide_hint(&self, hash: &str, bytes: Option<Uint8Array>) -> Result<(), JsValue> {
        let mut blake3 = [0; 32];
        hex::decode_to_slice(hash, &mut blake3)
            .map_err(|_| refused(Code::ClientFailed, "a hash has 64 hex digits"))?;
        self.host.provide_hint(blake3, bytes.map(|bytes| bytes.to_vec()));
        Ok(())
    }

    /// Takes the record of keys that the driver has kept under this name, if it has. Returns the record to be kept in its place, if
    /// it has changed. Throws `no_randomness` without randomness.
    pub fn provide_keys(&self, name: &str, kept: Option<Uint8Array>) -> Result<Option<Uint8Array>, JsValue> {
        let kept = kept.filter(|kept| kept.length() as usize == RECORD_BYTES);
        let mut kept = kept.map(|kept| kept.to_vec());
        randomness()?;
        let record = self.host.provide_keys(name, kept.as_deref());
        kept.zeroize();
        Ok(record.map(|record| Uint8Array::from(&record[..])))
    }

    /// Returns the names of records of keys in which something is to be noted: each is to be given to `provide_keys`.
    pub fn noted_keys(&self) -> Vec<String> {
        self.host.noted_keys()
    }

    /// Takes the serial that the driver has kept under this name, if it has. Returns what is to be kept in its place, if that is
    /// greater.
    pub fn provide_serial(&self, name: &str, kept: Option<String>) -> Option<String> {
        self.host.provide_serial(name, kept.as_deref())
    }

    /// Returns the hints that were downloaded since the last call: `{hash, bytes}` each. To be kept, if the driver keeps anything.
    pub fn fresh_hints(&self) -> Array {
        let fresh = self.host.take_fresh().into_iter();
        let shown = fresh.map(|(hash, bytes): ([u8; 32], Arc<Vec<u8>>)| {
            object([("hash", hex::encode(hash).into()), ("bytes", Uint8Array::from(&bytes[..]).into())])
        });
        shown.collect()
    }

    /// Returns the hashes of hints that the driver has kept and are damaged, since the last call.
    pub fn damaged_hints(&self) -> Array {
        self.host.take_damaged().into_iter().map(|hash| JsValue::from(hex::encode(hash))).collect()
    }
}

#[wasm_bindgen]
impl OpenTable {
    /// Returns the facts of the table, as JSON. Throws an error while look-ups are under way.
    pub fn about(&self) -> Result<String, JsValue> {
        let session = self.session.borrow();
        let session = session.as_ref().ok_or_else(busy)?;
        Ok(json(&About { name: session.name(), facts: session.table().into() }))
    }

    /// Returns the cost of the table, as JSON. Throws an error while look-ups are under way.
    pub fn stats(&self) -> Result<String, JsValue> {
        let session = self.session.borrow();
        Ok(json(&session.as_ref().ok_or_else(busy)?.stats()))
    }

    /// Prepares queries. Returns how many are ready. Throws an error without randomness, if the table's protocol prepares nothing,
    /// and while look-ups are under way.
    pub fn prepare(&mut self, count: usize) -> Result<usize, JsValue> {
        randomness()?;
        let mut session = self.session.borrow_mut();
        session.as_mut().ok_or_else(busy)?.prepare(count).map_err(|error| thrown(&error))
    }

    /// Looks records up. Bytes are a key, an array is the columns of a key, each bytes or a bigint, and a bigint is the only column
    /// of a key or a position. `rows` is the match in a sorted table, if there is one. The result is an array of bytes or null, one
    /// of each. Throws an error without randomness, for a key that does not fit the table, and while other look-ups are under way.
    pub fn look_up(&mut self, wanted: Array, rows: Option<String>) -> Result<Work, JsValue> {
        randomness()?;
        let mut place = self.session.borrow_mut();
        let descriptor = place.as_ref().ok_or_else(busy)?.table().descriptor();
        let by = rows.as_deref().unwrap_or("exact").parse();
        let by: RowMatch = by.map_err(|error: UnknownRowMatch| refused(Code::Options, &error.to_string()))?;
        let wanted = wanted.iter().map(|one| Ok(self::wanted(&one, descriptor)?.matching(by)));
        let wanted = wanted.collect::<Result<Vec<_>, JsValue>>()?;
        let session = place.take().ok_or_else(busy)?;
        let place = self.session.clone();
        Ok(Work::new(&self.host, session.into_look_up(wanted), move |(session, found)| {
            *place.borrow_mut() = Some(session);
            let found = found.map_err(|error| thrown(&error))?;
            Ok(found.into_iter().map(value).collect::<Array>().into())
        }))
    }
}

fn wanted(given: &JsValue, descriptor: &Descriptor) -> Result<Wanted, JsValue> {
    if let Some(key) = given.dyn_ref::<Uint8Array>() {
        return Ok(Wanted::Key(key.to_vec()));
    }
    let columns = match given.dyn_ref::<Array>() {
        Some(columns) => columns.iter().map(|one| column(&one)).collect::<Result<_, _>>()?,
        None => vec![column(given)?],
    };
    Wanted::of_columns(columns, descriptor).map_err(|error| thrown(&error.into()))
}

fn column(given: &JsValue) -> Result<KeyColumn, JsValue> {
    if let Some(bytes) = given.dyn_ref::<Uint8Array>() {
        return Ok(KeyColumn::Bytes(Zeroizing::new(bytes.to_vec())));
    }
    let number = given.dyn_ref::<BigInt>().and_then(|number| i128::try_from(number.clone()).ok());
    number.map(KeyColumn::Number).ok_or_else(|| refused(Code::BadKey, "a number in a key is less than 2^127"))
}

/// Returns the value, which is wiped here: the caller has a copy of its own.
fn value(found: Found) -> JsValue {
    let Some(mut value) = found else { return JsValue::NULL };
    let copy = Uint8Array::from(&value[..]);
    value.zeroize();
    copy.into()
}

fn busy() -> JsValue {
    refused(Code::ClientFailed, "look-ups are under way")
}
