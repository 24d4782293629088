//! The clients of object stores and web servers.

use std::{env, error::Error, ops::Range, sync::Arc, time::Instant};

use futures_util::{StreamExt, TryStreamExt};
use hush_store::cancel::Cancelled;
use object_store::{
    GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, ObjectStoreScheme, PutPayload,
    RetryConfig, WriteMultipart, aws::AmazonS3Builder, azure::MicrosoftAzureBuilder,
    gcp::GoogleCloudStorageBuilder, path::Path,
};
use reqwest::{
    Client, Response, StatusCode,
    header::{CONTENT_RANGE, ETAG, HeaderMap, LAST_MODIFIED, RANGE},
};
use tokio::time::{sleep, timeout};

pub use super::policy::SourcePolicy;
use super::{
    AUTHORITY_AS_SERVER, Listed, Part, Patience, Refused, RemoteUrl, SILENCE, SILENT, Scheme, TOO_SOON,
    policy::forbidden,
    refused::{NAME, chain},
    settings::settings,
};

/// The number of retries by the client of a store itself. The callers retry too.
const RETRIES: usize = 2;
/// The least bytes of a part of an upload. A store accepts at most 10,000 parts.
const PART_BYTES: u64 = 8 << 20;
const MAX_PARTS: u64 = 10_000;
/// The most parts in flight.
const AT_A_TIME: usize = 8;

const CREDENTIALS: &str = "check the credentials in the environment, and what they allow";
const NO_CREDENTIALS: &str = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SKIP_SIGNATURE=true for what is public \
    (GOOGLE_SERVICE_ACCOUNT for gs://, AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY for az://)";
/// Words in the errors of the libraries that retrying cannot mend, and what to do.
const FOR_GOOD: [(&str, &str); 8] = [
    ("InvalidContentType", "it speaks http, not https: check how the URL, or AWS_ENDPOINT_URL, begins"),
    ("UnknownIssuer", "this system trusts nobody who signed its certificate: install that of its authority"),
    ("invalid peer certificate", "its operator must give it a certificate that is valid for its name"),
    ("too many redirects", "check the URL"),
    ("ExpiredToken", CREDENTIALS),
    ("403 Forbidden", CREDENTIALS),
    ("without LOCATION", "set AWS_REGION to the region of the bucket"),
    ("builder error", "correct the URL"),
];

/// The location of an object, or of a folder of objects.
#[derive(Clone)]
pub(crate) enum Remote {
    Store(Arc<dyn ObjectStore>, Path),
    Web(Client, ::url::Url),
}

impl Remote {
    /// Returns an object. Refuses a URL that names no object.
    pub(crate) fn object(url: &RemoteUrl, scheme: Scheme) -> Result<Self, Refused> {
        match Self::folder(url, scheme)? {
            Self::Store(_, path) if path.as_ref().is_empty() => {
                Err(Refused::new("it names no object", "correct the URL"))
            }
            object => Ok(object),
        }
    }

    /// Returns a folder, for [`Remote::child`]. Refuses a URL that its policy does not allow.
    pub(crate) fn folder(url: &RemoteUrl, scheme: Scheme) -> Result<Self, Refused> {
        // This installs the cryptography of this program. An error means that one is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let wrong = |error: &dyn Error| Refused::new(chain(error), "correct the URL");
        let text = url.secret();
        let parsed = ::url::Url::parse(text).map_err(|error| wrong(&error))?;
        if scheme == Scheme::Web {
            return Ok(Self::Web(url.policy().web_client(&parsed)?, parsed));
        }
        let (_, path) = ObjectStoreScheme::parse(&parsed).map_err(|error| wrong(&error))?;
        // The check comes before anything is read from the environment.
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

    /// Returns an object in this folder.
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

    /// Fetches a whole object of at most `limit` bytes.
    pub(crate) async fn whole(self, limit: u64) -> Result<Vec<u8>, Refused> {
        let part = self.part(0, None, None).await?;
        let (bytes, is_all) = part.collect(limit).await?;
        if is_all { Ok(bytes) } else { Err(Refused::new("it is too long", NAME)) }
    }

    /// Fetches a range of an object of `size` bytes. After an interruption, bytes that have arrived are not requested again.
    pub(crate) async fn range(self, range: Range<u64>, size: u64) -> Result<Vec<u8>, Refused> {
        let mut bytes = Vec::new();
        let mut patience = Patience::with_known();
        while let Err(refused) = self.clone().more_of(&range, size, &mut bytes).await {
            patience.reach(bytes.len() as u64);
            sleep(patience.after(refused, Instant::now())?).await;
        }
        Ok(bytes)
    }

    /// Requests the missing bytes of the range once.
    async fn more_of(self, range: &Range<u64>, size: u64, bytes: &mut Vec<u8>) -> Result<(), Refused> {
        let start = range.start + bytes.len() as u64;
        let length = (range.end - range.start) as usize;
        if bytes.len() == length {
            return Ok(());
        }
        let mut part = self.part(start, Some(range.end), None).await?;
        if part.size.is_some_and(|own| own != size) {
            return Err(Refused::changed());
        }
        if part.start == range.start {
            bytes.clear(); // A server without ranges sends the first bytes again.
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

    /// Requests a part, as [`Remote::get`]. Refuses a server that is silent.
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

    /// Requests the object from byte `start`, up to `end` if given. Refuses an object of another `version`, if given.
    async fn get(self, start: u64, end: Option<u64>, version: Option<String>) -> Result<Part, Refused> {
        match self {
            Self::Store(store, path) => {
                let range = match end {
                    Some(end) => Some(GetRange::Bounded(start..end)),
                    None => (start > 0).then_some(GetRange::Offset(start)),
                };
                let options = GetOptions { range, if_match: version, ..GetOptions::default() };
                let got = store.get_opts(&path, options).await.map_err(store_refused)?;
                let size = Some(got.meta.size);
                let version = got.meta.e_tag.clone();
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

    /// Lists the objects of this folder, without those of folders in it. Refuses a web server.
    pub(crate) async fn list(&self) -> Result<Vec<Listed>, Refused> {
        let Self::Store(store, folder) = self else { return Err(no_store()) };
        let all = store.list_with_delimiter(Some(folder)).await.map_err(store_refused)?;
        let listed = |meta: ObjectMeta| {
            let name = meta.location.filename()?.to_owned();
            Some(Listed { name, bytes: meta.size, modified: meta.last_modified.into() })
        };
        Ok(all.objects.into_iter().filter_map(listed).collect())
    }

    /// Removes an object.
    pub(crate) async fn remove(&self) -> Result<(), Refused> {
        let Self::Store(store, path) = self else { return Err(no_store()) };
        store.delete(path).await.map_err(store_refused)
    }

    /// Uploads an object, in parts if it is long. `put` is called with the number of bytes sent, and may cancel the upload.
    pub(crate) async fn put(
        &self,
        content: &[u8],
        put: &dyn Fn(u64) -> Result<(), Cancelled>,
    ) -> Result<Result<(), Refused>, Cancelled> {
        let Self::Store(store, path) = self else { return Ok(Err(no_store())) };
        let part = PART_BYTES.max((content.len() as u64).div_ceil(MAX_PARTS)) as usize;
        if content.len() <= part {
            let done = store.put(path, PutPayload::from(content.to_vec())).await;
            put(content.len() as u64)?;
            return Ok(done.map(drop).map_err(store_refused));
        }
        let mut upload = match store.put_multipart(path).await {
            Ok(upload) => WriteMultipart::new_with_chunk_size(upload, part),
            Err(error) => return Ok(Err(store_refused(error))),
        };
        for piece in content.chunks(part) {
            if let Err(error) = upload.wait_for_capacity(AT_A_TIME).await {
                return Ok(Err(store_refused(error)));
            }
            upload.write(piece);
            if let Err(cancelled) = put(piece.len() as u64) {
                // If this fails too, the store keeps useless parts until its own rules remove them.
                let _ = upload.abort().await;
                return Err(cancelled);
            }
        }
        Ok(upload.finish().await.map(drop).map_err(store_refused))
    }
}

fn no_store() -> Refused {
    Refused::new("a web server takes no tables", "name a place at s3://, gs:// or az://")
}

fn store_refused(error: object_store::Error) -> Refused {
    use object_store::Error as E;
    let advice = match error {
        E::NotFound { .. } => NAME,
        E::PermissionDenied { .. } | E::Unauthenticated { .. } => CREDENTIALS,
        E::Precondition { .. } | E::NotModified { .. } => return Refused::changed(),
        _ => return misconfigured(&chain(&error)).unwrap_or_else(|| Refused::again(&error)),
    };
    Refused::new(chain(&error), advice)
}

/// Returns the refusal for a problem that waiting cannot solve: in the environment, or with a server's certificate.
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
    // The libraries try the credentials of a cloud machine last.
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
        // A server without ranges sends the whole object.
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

/// Parses `bytes 5-9/10` or `bytes 5-9/*`. Returns the first byte and the length of the whole object.
fn content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, size) = text.strip_prefix("bytes ")?.split_once('/')?;
    Some((range.split_once('-')?.0.parse().ok()?, size.parse().ok()))
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
        // A network that is down for a while resolves no names, and a download continues after it.
        let unknown = store_refused(generic("dns error: failed to lookup address information"));
        assert_eq!(unknown.advice, None);
        assert!(unknown.last_advice("later").contains("the name of its host"));
    }
}
