//! Objects of a store and files of a web server: one request, the bytes that come of it, and what pins the object meanwhile.

mod policy;
mod settings;
mod url;

use std::{
    env,
    error::Error,
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};
use object_store::{
    GetOptions, GetRange, ObjectStore, ObjectStoreScheme, RetryConfig, aws::AmazonS3Builder,
    azure::MicrosoftAzureBuilder, gcp::GoogleCloudStorageBuilder, path::Path,
};
use reqwest::{
    Client, Response, StatusCode,
    header::{CONTENT_RANGE, ETAG, HeaderMap, LAST_MODIFIED, RANGE},
};
use tokio::time::{sleep, timeout};

pub(crate) use crate::remote::url::Scheme;
pub use crate::remote::{policy::SourcePolicy, url::RemoteUrl};
use crate::remote::{policy::forbidden, settings::settings, url::without_secrets};

/// How long a server may be silent.
pub(crate) const SILENCE: Duration = Duration::from_secs(60);
/// How often it is asked again without a byte in between: one that has never answered, and one that has.
pub(crate) const FIRST_ATTEMPTS: u32 = 2;
const ATTEMPTS: u32 = 8;
/// How long after the first failure; after each further one twice as long.
const PAUSE: Duration = Duration::from_millis(200);
/// How long a download that breaks off goes on, beside the time that its bytes take at [`LEAST_RATE`].
const PATIENCE: Duration = Duration::from_secs(3600);
/// Bytes a second.
const LEAST_RATE: u64 = 4 << 10;
/// How long a web server may take to let a connection be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a store asks again by itself; who fetches does so too.
const RETRIES: usize = 2;

/// Where an object is, or a folder of them.
#[derive(Clone)]
pub(crate) enum Remote {
    Store(Arc<dyn ObjectStore>, Path),
    Web(Client, ::url::Url),
}

/// What a request gives.
pub(crate) struct Part {
    /// The byte of the object with which it starts.
    pub(crate) start: u64,
    /// Bytes of the whole object.
    pub(crate) size: Option<u64>,
    /// What is another if the object is.
    pub(crate) version: Option<String>,
    pub(crate) bytes: BoxStream<'static, Result<Bytes, Refused>>,
}

impl Part {
    /// The next bytes, of a server that is not silent; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Result<Bytes, Refused>> {
        timeout(SILENCE, self.bytes.next()).await.unwrap_or_else(|_| Some(Err(Refused::for_now(SILENT))))
    }

    /// The bytes up to `limit`, and whether these are all.
    async fn collect(mut self, limit: u64) -> Result<(Vec<u8>, bool), Refused> {
        let mut all = Vec::new();
        while let Some(bytes) = self.next().await {
            let bytes = bytes?;
            let room = limit as usize - all.len();
            all.extend_from_slice(&bytes[..bytes.len().min(room)]);
            if bytes.len() > room {
                return Ok((all, false));
            }
        }
        Ok((all, true))
    }
}

/// The attempts and the time that a download may take. Only bytes beyond all that were ever there are progress.
pub(crate) struct Patience {
    begun: Instant,
    /// The most bytes that were ever there.
    furthest: u64,
    /// Failures since that grew.
    failures: u32,
    /// How many of them there may be before the first byte.
    first_attempts: u32,
    /// The wait after the first failure.
    pub(crate) pause: Duration,
}

impl Patience {
    /// With a server that has not answered yet.
    pub(crate) fn with_new() -> Self {
        Self { first_attempts: FIRST_ATTEMPTS, ..Self::with_known() }
    }

    /// With a server that has answered before.
    fn with_known() -> Self {
        let begun = Instant::now();
        Self { begun, furthest: 0, failures: 0, first_attempts: ATTEMPTS, pause: PAUSE }
    }

    /// Notes how many bytes are there.
    pub(crate) fn reach(&mut self, here: u64) {
        if here > self.furthest {
            (self.furthest, self.failures) = (here, 0);
        }
    }

    /// Returns how long to wait after a failure at `now`, or the failure if another attempt is of no use, or enough were made.
    pub(crate) fn after(&mut self, refused: Refused, now: Instant) -> Result<Duration, Refused> {
        let attempts = if self.furthest == 0 { self.first_attempts } else { ATTEMPTS };
        let longest = PATIENCE + Duration::from_secs(self.furthest / LEAST_RATE);
        let is_enough = self.failures >= attempts || now.saturating_duration_since(self.begun) > longest;
        if is_enough || refused.advice.is_some() {
            return Err(refused);
        }
        self.failures += 1;
        Ok(self.pause * (1 << (self.failures - 1)))
    }

    /// The most bytes that were ever there.
    pub(crate) fn furthest(&self) -> u64 {
        self.furthest
    }
}

/// What a request gives, asked for again and again where it may go on.
///
/// # Errors
/// Why it does not, after so many `attempts`.
pub(crate) async fn persist<T, F>(attempts: u32, mut request: impl FnMut() -> F) -> Result<T, Refused>
where
    F: Future<Output = Result<T, Refused>>,
{
    for attempt in 0..attempts {
        match request().await {
            Err(Refused { advice: None, .. }) => sleep(PAUSE * (1 << attempt)).await,
            other => return other,
        }
    }
    request().await
}

/// Why there is no more.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) message: String,
    /// What to do; `None` where it may go on if it is asked again.
    pub(crate) advice: Option<&'static str>,
}

impl Refused {
    pub(crate) fn new(message: impl Into<String>, advice: &'static str) -> Self {
        Self { message: message.into(), advice: Some(advice) }
    }

    fn again(error: &dyn Error) -> Self {
        Self { message: chain(error), advice: None }
    }

    /// Adds how many bytes had come of how many, if another attempt might have gone on from there.
    pub(crate) fn so_far(mut self, here: u64, size: Option<u64>) -> Self {
        if self.advice.is_none() && here > 0 {
            let of = size.map_or_else(String::new, |size| format!(" of {size}"));
            self.message += &format!(" ({here}{of} bytes had come)");
        }
        self
    }

    /// It may go on.
    pub(crate) fn for_now(message: &str) -> Self {
        Self { message: message.into(), advice: None }
    }

    /// The object is not what it was.
    pub(crate) fn changed() -> Self {
        Self::new("it was changed while it was fetched", "begin again")
    }

    /// Returns what to do when no attempt is left; `later` where nothing better is known.
    pub(crate) fn last_advice(&self, later: &'static str) -> &'static str {
        // A network that is down for a while has no names either, so that this is asked again first.
        let unknown_host = self
            .message
            .contains("dns error")
            .then_some("check the name of its host, and this machine's network");
        self.advice.or(unknown_host).unwrap_or(later)
    }

    /// Something that looks like a web page came in place of the object: servers send one to who has to sign in.
    pub(crate) fn page() -> Self {
        Self::new(
            "a web page came in place of the file",
            "give the URL of the file itself, and check who may read it",
        )
    }

    /// There is nothing of that name.
    pub(crate) fn is_missing(&self) -> bool {
        self.advice == Some(NAME)
    }
}

pub(crate) const SILENT: &str = "the server is silent";
pub(crate) const TOO_SOON: &str = "the server ended it too soon";
const CREDENTIALS: &str = "check the credentials in the environment, and what they allow";
/// What is wrong with a certificate that the TLS library calls `CaUsedAsEndEntity`, and what to do.
pub(crate) const AUTHORITY_AS_SERVER: (&str, &str) = (
    "the server's certificate is that of an authority, which signs others and is no server's",
    "its operator must make one with basicConstraints=critical,CA:FALSE",
);
const NO_CREDENTIALS: &str = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SKIP_SIGNATURE=true for what is public \
    (GOOGLE_SERVICE_ACCOUNT for gs://, AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY for az://)";
const NAME: &str = "check the name";
/// Words of the libraries for what asking again does not change, and what to do.
const FOR_GOOD: [(&str, &str); 7] = [
    ("InvalidContentType", "it speaks http, not https: check how the URL, or AWS_ENDPOINT_URL, begins"),
    ("UnknownIssuer", "this system trusts nobody who signed its certificate: install that of its authority"),
    ("invalid peer certificate", "its operator must give it a certificate that is valid for its name"),
    ("too many redirects", "check the URL"),
    ("ExpiredToken", CREDENTIALS),
    ("without LOCATION", "set AWS_REGION to the region of the bucket"),
    ("builder error", "correct the URL"),
];

impl Remote {
    /// An object.
    pub(crate) fn object(url: &RemoteUrl, scheme: Scheme) -> Result<Self, Refused> {
        match Self::folder(url, scheme)? {
            Self::Store(_, path) if path.as_ref().is_empty() => {
                Err(Refused::new("it names no object", "correct the URL"))
            }
            object => Ok(object),
        }
    }

    /// A folder, for [`Remote::child`]; refused if the policy of the URL does not allow it.
    pub(crate) fn folder(url: &RemoteUrl, scheme: Scheme) -> Result<Self, Refused> {
        // The one that this program has; another one may be in place already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let wrong = |error: &dyn Error| Refused::new(chain(error), "correct the URL");
        let text = url.secret();
        let parsed = ::url::Url::parse(text).map_err(|error| wrong(&error))?;
        if scheme == Scheme::Web {
            return Ok(Self::Web(url.policy().web_client(&parsed)?, parsed));
        }
        let (_, path) = ObjectStoreScheme::parse(&parsed).map_err(|error| wrong(&error))?;
        // Before anything of the environment is read.
        url.policy().check_object(scheme, &parsed, &path)?;
        let refused = |error: object_store::Error| Refused::new(chain(&error), CREDENTIALS);
        let retry = RetryConfig { max_retries: RETRIES, ..RetryConfig::default() };
        let store: Arc<dyn ObjectStore> = match scheme {
            Scheme::S3 => {
                let settings = settings("AWS_")?.into_iter();
                let builder = settings
                    .fold(AmazonS3Builder::new(), |builder, (name, value)| builder.with_config(name, value));
                Arc::new(builder.with_url(text).with_retry(retry).build().map_err(refused)?)
            }
            Scheme::Gcs => {
                let mut builder = GoogleCloudStorageBuilder::new();
                if let Ok(account) = env::var("SERVICE_ACCOUNT") {
                    builder = builder.with_service_account_path(account);
                }
                let settings = settings("GOOGLE_")?.into_iter();
                let builder =
                    settings.fold(builder, |builder, (name, value)| builder.with_config(name, value));
                Arc::new(builder.with_url(text).with_retry(retry).build().map_err(refused)?)
            }
            _ => {
                let mut builder = MicrosoftAzureBuilder::new();
                if let Ok(endpoint) = env::var("IDENTITY_ENDPOINT") {
                    builder = builder.with_msi_endpoint(endpoint);
                }
                let settings = settings("AZURE_")?.into_iter();
                let builder =
                    settings.fold(builder, |builder, (name, value)| builder.with_config(name, value));
                Arc::new(builder.with_url(text).with_retry(retry).build().map_err(refused)?)
            }
        };
        Ok(Self::Store(store, path))
    }

    /// An object in this folder.
    pub(crate) fn child(&self, name: &str) -> Self {
        match self {
            Self::Store(store, folder) => Self::Store(store.clone(), folder.clone().join(name)),
            Self::Web(client, folder) => {
                let mut url = folder.clone();
                // Every URL of a web server has a path.
                if let Ok(mut path) = url.path_segments_mut() {
                    path.pop_if_empty().push(name);
                }
                Self::Web(client.clone(), url)
            }
        }
    }

    /// All of an object of `limit` bytes at most.
    pub(crate) async fn whole(self, limit: u64) -> Result<Vec<u8>, Refused> {
        let part = self.part(0, None, None).await?;
        let (bytes, is_all) = part.collect(limit).await?;
        if is_all { Ok(bytes) } else { Err(Refused::new("it is too long", NAME)) }
    }

    /// So many bytes of an object of `size` bytes. After an interruption, bytes that have come are not asked for again.
    pub(crate) async fn range(self, range: Range<u64>, size: u64) -> Result<Vec<u8>, Refused> {
        let (mut bytes, mut patience) = (Vec::new(), Patience::with_known());
        while let Err(refused) = self.clone().more_of(&range, size, &mut bytes).await {
            patience.reach(bytes.len() as u64);
            sleep(patience.after(refused, Instant::now())?).await;
        }
        Ok(bytes)
    }

    /// Asks once for those bytes of the range that are missing.
    async fn more_of(self, range: &Range<u64>, size: u64, bytes: &mut Vec<u8>) -> Result<(), Refused> {
        let (start, length) = (range.start + bytes.len() as u64, (range.end - range.start) as usize);
        if bytes.len() == length {
            return Ok(());
        }
        let mut part = self.part(start, Some(range.end), None).await?;
        if part.size.is_some_and(|own| own != size) {
            return Err(Refused::changed());
        }
        if part.start == range.start {
            bytes.clear(); // Who does not know ranges sends the first ones again.
        } else if part.start != start {
            return Err(Refused::new(
                "the server sends no parts of files (HTTP ranges)",
                "choose one that does",
            ));
        }
        while let Some(next) = part.next().await {
            let next = next?;
            bytes.extend_from_slice(&next[..next.len().min(length - bytes.len())]);
            if bytes.len() == length {
                return Ok(());
            }
        }
        Err(Refused::for_now(TOO_SOON))
    }

    /// As [`Remote::get`], of a server that is not silent.
    pub(crate) async fn part(
        self,
        start: u64,
        end: Option<u64>,
        version: Option<String>,
    ) -> Result<Part, Refused> {
        timeout(SILENCE, self.get(start, end, version))
            .await
            .unwrap_or_else(|_| Err(Refused::for_now(SILENT)))
    }

    /// The object from byte `start` on, to `end` if that is given; as long as it is of `version`, if that is given.
    async fn get(self, start: u64, end: Option<u64>, version: Option<String>) -> Result<Part, Refused> {
        match self {
            Self::Store(store, path) => {
                let range = match end {
                    Some(end) => Some(GetRange::Bounded(start..end)),
                    None => (start > 0).then_some(GetRange::Offset(start)),
                };
                let options = GetOptions { range, if_match: version, ..GetOptions::default() };
                let got = store.get_opts(&path, options).await.map_err(store_refused)?;
                let (size, version) = (Some(got.meta.size), got.meta.e_tag.clone());
                let bytes = got.into_stream().map_err(store_refused).boxed();
                Ok(Part { start, size, version, bytes })
            }
            Self::Web(client, url) => {
                let mut request = client.get(url);
                match end {
                    Some(end) => {
                        request = request.header(RANGE, format!("bytes={start}-{}", end.saturating_sub(1)))
                    }
                    None if start > 0 => request = request.header(RANGE, format!("bytes={start}-")),
                    None => {}
                }
                let response = request.send().await.map_err(web_failed)?;
                web_part(response, start)
            }
        }
    }
}

/// Whether a file begins as a web page does.
pub(crate) fn is_page(head: &[u8]) -> bool {
    let head = head.trim_ascii_start();
    let begins = |start: &&[u8]| head.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start));
    [&b"<!doctype html"[..], b"<html"].iter().any(begins)
}

pub(crate) fn store_refused(error: object_store::Error) -> Refused {
    use object_store::Error as E;
    let advice = match error {
        E::NotFound { .. } => NAME,
        E::PermissionDenied { .. } | E::Unauthenticated { .. } => CREDENTIALS,
        E::Precondition { .. } | E::NotModified { .. } => return Refused::changed(),
        _ => return misconfigured(&chain(&error)).unwrap_or_else(|| Refused::again(&error)),
    };
    Refused::new(chain(&error), advice)
}

/// Returns what is wrong where waiting would not help: in the environment, or with a server's certificate.
fn misconfigured(said: &str) -> Option<Refused> {
    if said.contains("URL scheme is not allowed") {
        return Some(Refused::new(
            "its endpoint is http, without TLS",
            "use one with https, or set AWS_ALLOW_HTTP=true if nobody can listen on the way",
        ));
    }
    if said.contains("CaUsedAsEndEntity") {
        return Some(Refused::new(AUTHORITY_AS_SERVER.0, AUTHORITY_AS_SERVER.1));
    }
    // Where credentials of a machine in a cloud are, which are asked for last.
    let is_machines = said.contains("169.254.169.254") || said.contains("metadata.google.internal");
    if is_machines {
        let message = "there are no credentials in the environment, and this machine has none of its own";
        return Some(Refused::new(message, NO_CREDENTIALS));
    }
    let (_, advice) = FOR_GOOD.iter().find(|(words, _)| said.contains(words))?;
    Some(Refused::new(said, advice))
}

fn web_failed(error: reqwest::Error) -> Refused {
    let refused = forbidden(&error);
    let error = error.without_url();
    refused.or_else(|| misconfigured(&chain(&error))).unwrap_or_else(|| Refused::again(&error))
}

fn web_part(response: Response, asked: u64) -> Result<Part, Refused> {
    let status = response.status();
    let headers = response.headers();
    let text = |headers: &HeaderMap, name| {
        headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
    };
    let (start, size) = match status {
        // Who does not know ranges sends all of it.
        StatusCode::OK => (0, response.content_length()),
        StatusCode::PARTIAL_CONTENT => {
            let range = text(headers, CONTENT_RANGE).unwrap_or_default();
            let (start, size) = content_range(&range)
                .filter(|&(start, _)| start == asked)
                .ok_or_else(|| Refused::new("the server sent another range", "fetch it in another way"))?;
            (start, size)
        }
        StatusCode::RANGE_NOT_SATISFIABLE => return Err(Refused::changed()),
        StatusCode::NOT_FOUND | StatusCode::GONE => return Err(Refused::new(status.to_string(), NAME)),
        status if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS => {
            return Err(Refused::new(status.to_string(), "check the URL, and who may read it"));
        }
        status => return Err(Refused { message: status.to_string(), advice: None }),
    };
    let version = text(headers, ETAG).or_else(|| text(headers, LAST_MODIFIED));
    let bytes = response.bytes_stream().map_err(web_failed).boxed();
    Ok(Part { start, size, version, bytes })
}

/// The first byte, and the bytes of all, of `bytes 5-9/10` or `bytes 5-9/*`.
fn content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, size) = text.strip_prefix("bytes ")?.split_once('/')?;
    Some((range.split_once('-')?.0.parse().ok()?, size.parse().ok()))
}

/// An error and what it came of, without what URLs in it keep secret.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    // What a server says may have several lines.
    without_secrets(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_environment_lacks_is_told_at_once() {
        let generic = |said: &'static str| object_store::Error::Generic { store: "S3", source: said.into() };
        for (said, message, advice) in [
            (
                "Error performing PUT http://169.254.169.254/latest/api/token in 1s",
                "there are no credentials",
                "AWS_SKIP_SIGNATURE=true",
            ),
            ("HTTP error: builder error: URL scheme is not allowed", "is http", "AWS_ALLOW_HTTP=true"),
        ] {
            let refused = store_refused(generic(said));
            assert!(refused.message.contains(message), "{}", refused.message);
            assert!(refused.advice.is_some_and(|own| own.contains(advice)));
        }
        assert_eq!(store_refused(generic("connection reset")).advice, None, "it may go on");
        // A network that is down for a while knows no names: a download goes on after it.
        let unknown = store_refused(generic("dns error: failed to lookup address information"));
        assert_eq!(unknown.advice, None);
        assert!(unknown.last_advice("later").contains("the name of its host"));
    }

    #[test]
    fn pages_are_told_from_files() {
        for page in ["<!DOCTYPE html>", " \n<html lang=en>", "<HTML>"] {
            assert!(is_page(page.as_bytes()), "{page}");
        }
        for file in ["", "k,v", "<xml/>", "{\"html\":1}"] {
            assert!(!is_page(file.as_bytes()), "{file}");
        }
    }

    #[test]
    fn the_same_bytes_again_are_no_progress() {
        let mut patience = Patience::with_new();
        let now = patience.begun;
        let mut fail = |here, now| {
            patience.reach(here);
            patience.after(Refused::for_now(TOO_SOON), now)
        };
        assert_eq!(fail(1000, now).unwrap(), PAUSE);
        for failures in 1..ATTEMPTS {
            assert_eq!(fail(u64::from(failures), now).unwrap(), PAUSE * (1 << failures));
        }
        assert!(fail(1000, now).is_err());
        assert_eq!(fail(1001, now).unwrap(), PAUSE, "one byte more is");
        let late = PATIENCE + Duration::from_secs(1);
        assert!(fail(1002, now + late).is_err(), "but not for ever");
        assert!(fail(1002 + LEAST_RATE, now + late).is_ok());
    }

    #[test]
    fn a_server_that_never_answers_is_given_up_soon() {
        let mut patience = Patience::with_new();
        let mut fail = || patience.after(Refused::for_now(SILENT), Instant::now());
        assert!((0..FIRST_ATTEMPTS).all(|_| fail().is_ok()) && fail().is_err());
        let mut patience = Patience::with_known();
        let mut fail = || patience.after(Refused::for_now(SILENT), Instant::now());
        assert!((0..ATTEMPTS).all(|_| fail().is_ok()) && fail().is_err());
        assert!(Patience::with_known().after(Refused::changed(), Instant::now()).is_err());
    }
}
