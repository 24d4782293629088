//! Bearer tokens: who may ask, for what, and how much.
//!
//! A token is `hush_ID_SECRET`. The file has only the hash of the secret, from which nobody can compute the token. Lists and logs
//! name a token by its ID.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use hush_protocol::Name;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::time::Instant;
use zeroize::Zeroizing;

use crate::{
    config::Throttle,
    queue::throttle::Buckets,
    renewed::{FileBytes, Renewed, Source, read_file},
};

const VERSION: u32 = 1;
/// Bytes of a token's ID and of its secret.
const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;
/// The beginning of every token, by which scanners find leaked ones.
const PREFIX: &str = "hush";
/// The longest file that is read: a token takes some 300 bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// A purpose of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Look-ups of records.
    Query,
    /// The admin endpoints, and metrics.
    Admin,
}

/// A token, as the file has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// The ID of the token.
    pub id: String,
    /// The owner of the token, for the operator.
    pub name: String,
    /// The BLAKE3 hash of the secret.
    #[serde(with = "hex::serde")]
    hash: [u8; 32],
    /// The scopes of the token.
    pub scopes: Vec<Scope>,
    /// The tables that the token is for; `None` is all tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tables: Option<Vec<Name>>,
    /// The time at which the token expires, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// The queries a second that the token may make.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queries_per_second: Option<u32>,
    /// The most requests of the token that are answered at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<usize>,
    /// The sustained bytes a second of the bodies of the token's requests and responses. A minute's bytes may come at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<u32>,
}

impl Token {
    /// The number of random bytes that a token is made of, from a cryptographic source.
    pub const RANDOM_BYTES: usize = ID_BYTES + SECRET_BYTES;

    /// Creates a token of random bytes. Returns it with the text that proves it, which is kept nowhere.
    pub fn new(
        name: &str,
        random: &[u8; Self::RANDOM_BYTES],
        scopes: Vec<Scope>,
    ) -> (Self, Zeroizing<String>) {
        let (id, secret) = random.split_at(ID_BYTES);
        let id = hex::encode(id);
        let text = Zeroizing::new(format!("{PREFIX}_{id}_{}", *Zeroizing::new(hex::encode(secret))));
        let hash = *blake3::hash(secret).as_bytes();
        let name = name.to_owned();
        let tables = None;
        let expires = None;
        let queries_per_second = None;
        let in_flight = None;
        let bytes_per_second = None;
        let token =
            Self { id, name, hash, scopes, tables, expires, queries_per_second, in_flight, bytes_per_second };
        (token, text)
    }

    /// Returns whether the token has expired at `now`.
    pub fn has_expired(&self, now: SystemTime) -> bool {
        let now = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.expires.is_some_and(|end| end <= now)
    }
}

/// Why a file of tokens cannot be used.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "each text says what its variant is")]
pub enum TokenError {
    #[error("cannot read the tokens in {}: {reason}: hushdb token create makes the file", path.display())]
    File { path: PathBuf, reason: String },
    #[error("{} is no file of tokens ({reason}): hushdb token create makes one", path.display())]
    Format { path: PathBuf, reason: String },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenDocument {
    version: u32,
    tokens: Vec<Token>,
}

/// Returns the tokens in a file. Fails with [`TokenError::File`] if the file cannot be read or has more than 64 MiB. Fails with
/// [`TokenError::Format`] if it is malformed, has another version, or has a token with a limit of 0.
pub fn read_tokens(path: &Path) -> Result<Vec<Token>, TokenError> {
    parse(&bytes_of(path)?, path)
}

/// Returns the text of a file of tokens.
pub fn text_of_tokens(tokens: Vec<Token>) -> String {
    let text = serde_json::to_string_pretty(&TokenDocument { version: VERSION, tokens }).expect("plain data");
    text + "\n"
}

fn bytes_of(path: &Path) -> Result<FileBytes, TokenError> {
    read_file(path, MAX_FILE_BYTES).map_err(|reason| TokenError::File { path: path.to_owned(), reason })
}

fn parse(bytes: &[u8], path: &Path) -> Result<Vec<Token>, TokenError> {
    let refused = |reason: String| TokenError::Format { path: path.to_owned(), reason };
    let TokenDocument { version, tokens } =
        serde_json::from_slice(bytes).map_err(|error| refused(error.to_string()))?;
    if version != VERSION {
        return Err(refused(format!("it has version {version}, and this program reads {VERSION}")));
    }
    if let Some(token) = tokens.iter().find(|token| {
        [token.queries_per_second, token.bytes_per_second].contains(&Some(0)) || token.in_flight == Some(0)
    }) {
        return Err(refused(format!("the limits of {} are 0", token.id)));
    }
    Ok(tokens)
}

/// The tokens of a server, which are read again when their file changes.
pub struct Tokens(Renewed<TokenFile>);

struct TokenFile(PathBuf);

/// A token in use, with its counts.
pub(crate) struct Grant {
    pub(crate) token: Token,
    in_flight: Arc<AtomicUsize>,
    buckets: Option<Buckets<()>>,
    bytes: Option<Buckets<()>>,
}

/// Why a request is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The request has no token.
    Missing,
    /// The server does not know the token.
    Unknown,
    /// The token has expired.
    Expired,
    /// The token lacks the scope.
    Scope,
}

impl Source for TokenFile {
    type Value = HashMap<String, Arc<Grant>>;
    type Error = TokenError;

    fn read(&self) -> Result<Vec<FileBytes>, TokenError> {
        Ok(vec![bytes_of(&self.0)?])
    }

    /// Parses the tokens of the file. Unchanged tokens keep their counts.
    fn parse(&self, files: &[FileBytes], before: Option<&Self::Value>) -> Result<Self::Value, TokenError> {
        Ok(parse(&files[0], &self.0)?
            .into_iter()
            .map(|token: Token| {
                let known =
                    before.and_then(|before| before.get(&token.id)).filter(|grant| grant.token == token);
                (token.id.clone(), known.cloned().unwrap_or_else(|| Grant::new(token)))
            })
            .collect())
    }
}

impl Tokens {
    /// Reads a file of tokens. Fails as [`read_tokens`] does.
    pub fn open(path: &Path) -> Result<Arc<Self>, TokenError> {
        Ok(Arc::new(Self(Renewed::open(TokenFile(path.to_owned()))?)))
    }

    /// Reads the file again. If it holds no tokens, the current tokens stay, and the log says why.
    pub fn take_up(&self) {
        self.0.take_up("tokens");
    }

    /// Returns the token of an `Authorization` header, if it is for `scope`. Fails with [`Refusal`] if the header is missing, or
    /// if its token is unknown, has expired, or lacks the scope.
    pub(crate) fn check(&self, header: Option<&[u8]>, scope: Scope) -> Result<Arc<Grant>, Refusal> {
        let header = header.ok_or(Refusal::Missing)?;
        let text = std::str::from_utf8(header).map_err(|_| Refusal::Unknown)?;
        let (kind, token) = text.split_once(' ').ok_or(Refusal::Unknown)?;
        if !kind.eq_ignore_ascii_case("bearer") {
            return Err(Refusal::Unknown);
        }
        let (id, secret) = parts(token.trim()).ok_or(Refusal::Unknown)?;
        let grant = self.0.current().get(id).cloned().ok_or(Refusal::Unknown)?;
        // Hashes compare in constant time.
        if blake3::hash(&*secret) != blake3::Hash::from_bytes(grant.token.hash) {
            return Err(Refusal::Unknown);
        }
        if grant.token.has_expired(SystemTime::now()) {
            return Err(Refusal::Expired);
        }
        if grant.token.scopes.contains(&scope) { Ok(grant) } else { Err(Refusal::Scope) }
    }
}

/// Returns the ID and the secret of a token.
fn parts(token: &str) -> Option<(&str, Zeroizing<[u8; SECRET_BYTES]>)> {
    let (id, secret) = token.strip_prefix(PREFIX)?.strip_prefix('_')?.split_once('_')?;
    let mut bytes = Zeroizing::new([0; SECRET_BYTES]);
    hex::decode_to_slice(secret, &mut *bytes).ok()?;
    Some((id, bytes))
}

impl Grant {
    fn new(token: Token) -> Arc<Self> {
        let buckets = token
            .queries_per_second
            .map(|rate| Buckets::new(Throttle { queries_per_second: rate, burst: rate.saturating_mul(4) }));
        let bytes = token
            .bytes_per_second
            .map(|rate| Buckets::new(Throttle { queries_per_second: rate, burst: rate.saturating_mul(60) }));
        Arc::new(Self { token, in_flight: Arc::default(), buckets, bytes })
    }

    /// Admits a request with a query. Fails with the seconds after which the client may try again.
    pub(crate) fn enter(&self) -> Result<InFlight, u64> {
        let entered = InFlight(self.in_flight.clone());
        let others = self.in_flight.fetch_add(1, Ordering::Relaxed);
        if self.token.in_flight.is_some_and(|most| others >= most) {
            return Err(1);
        }
        self.buckets.as_ref().map_or(Ok(()), |buckets| buckets.admit((), Instant::now()))?;
        Ok(entered)
    }

    /// Admits a request if the token has bytes left. Fails with the seconds after which the client may try again. The bytes of
    /// the request are charged later, when they are known.
    pub(crate) fn enter_bytes(&self) -> Result<(), u64> {
        self.bytes.as_ref().map_or(Ok(()), |bytes| bytes.admit((), Instant::now()))
    }

    /// Charges the token for the bytes of a request and of its response.
    pub(crate) fn charge_bytes(&self, bytes: u64) {
        if let Some(buckets) = &self.bytes {
            buckets.charge((), usize::try_from(bytes).unwrap_or(usize::MAX), Instant::now());
        }
    }

    /// Charges the token for the queries of a request beyond the first.
    pub(crate) fn charge(&self, queries: usize) {
        if let Some(buckets) = &self.buckets {
            buckets.charge((), queries, Instant::now());
        }
    }
}

/// A request in flight, until it is dropped.
pub(crate) struct InFlight(Arc<AtomicUsize>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn header(text: &str) -> String {
        format!("Bearer {text}")
    }

    #[test]
    fn a_token_is_checked_against_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens.json");
        let (alice, text) = Token::new("alice", &[1; 40], vec![Scope::Query]);
        let (mut old, old_text) = Token::new("old", &[2; 40], vec![Scope::Query, Scope::Admin]);
        old.expires = Some(1);
        fs::write(&path, text_of_tokens(vec![alice, old])).unwrap();
        assert!(!fs::read_to_string(&path).unwrap().contains(&text[22..]));
        let tokens = Tokens::open(&path).unwrap();
        let check = |header: Option<&str>, scope| {
            tokens.check(header.map(str::as_bytes), scope).map(|grant| grant.token.name.clone())
        };
        assert_eq!(check(Some(&header(&text)), Scope::Query), Ok("alice".into()));
        assert_eq!(check(Some(&format!("bearer  {}", *text)), Scope::Query), Ok("alice".into()));
        assert_eq!(check(Some(&header(&text)), Scope::Admin), Err(Refusal::Scope));
        assert_eq!(check(Some(&header(&old_text)), Scope::Query), Err(Refusal::Expired));
        assert_eq!(check(None, Scope::Query), Err(Refusal::Missing));
        let mut wrong = text.to_string();
        wrong.replace_range(text.len() - 1.., if text.ends_with('0') { "1" } else { "0" });
        for header in
            [&header(&wrong), &header("hush_00_11"), "Basic YTpi", "Bearer", "", &header(&text[..70])]
        {
            assert_eq!(check(Some(header), Scope::Query), Err(Refusal::Unknown), "{header}");
        }
        // A revoked token is refused, and a malformed file changes nothing.
        fs::write(&path, "{").unwrap();
        tokens.take_up();
        assert!(check(Some(&header(&text)), Scope::Query).is_ok());
        fs::write(&path, text_of_tokens(Vec::new())).unwrap();
        tokens.take_up();
        assert_eq!(check(Some(&header(&text)), Scope::Query), Err(Refusal::Unknown));
    }

    #[test]
    fn a_token_has_limits_of_its_own() {
        let (mut token, _) = Token::new("a", &[1; 40], vec![Scope::Query]);
        (token.in_flight, token.queries_per_second) = (Some(2), Some(1));
        let grant = Grant::new(token);
        let first = grant.enter().ok().unwrap();
        let second = grant.enter().ok().unwrap();
        assert_eq!(grant.enter().err(), Some(1));
        drop((first, second));
        // Two queries of the burst of four are left.
        grant.charge(3);
        assert_eq!(grant.enter().err(), Some(2));
        assert_eq!(grant.in_flight.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_token_has_bytes() {
        let (mut token, _) = Token::new("a", &[1; 40], vec![Scope::Query]);
        token.bytes_per_second = Some(100);
        let grant = Grant::new(token);
        // The bytes of a minute are there, and one request may take more.
        assert_eq!(grant.enter_bytes(), Ok(()));
        grant.charge_bytes(7000);
        assert_eq!(grant.enter_bytes(), Err(11));
        let (free, _) = Token::new("a", &[1; 40], vec![Scope::Query]);
        let free = Grant::new(free);
        free.charge_bytes(u64::MAX);
        assert_eq!(free.enter_bytes(), Ok(()));
    }
}
