//! Objects of a store and files of a web server: one request, the bytes that come of it, and what pins the object meanwhile.

use std::{error::Error, sync::Arc, time::Duration};

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
use url::Url;

use super::url::{InputUrl, Scheme, without_secrets};

/// How long a web server may take to let a connection be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a store asks again by itself; who fetches does so too.
const RETRIES: usize = 2;

/// Where an object is.
#[derive(Clone)]
pub(super) enum Remote {
    Store(Arc<dyn ObjectStore>, Path),
    Web(Client, Url),
}

/// What a request gives.
pub(super) struct Part {
    /// The byte of the object with which it starts.
    pub(super) start: u64,
    /// Bytes of the whole object.
    pub(super) size: Option<u64>,
    /// What is another if the object is.
    pub(super) version: Option<String>,
    pub(super) bytes: BoxStream<'static, Result<Bytes, Refused>>,
}

/// Why there is no more.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) message: String,
    /// What to do; `None` where it may go on if it is asked again.
    pub(super) advice: Option<&'static str>,
}

impl Refused {
    fn new(message: impl Into<String>, advice: &'static str) -> Self {
        Self { message: message.into(), advice: Some(advice) }
    }

    fn again(error: &dyn Error) -> Self {
        Self { message: chain(error), advice: None }
    }

    /// It may go on.
    pub(super) fn for_now(message: &str) -> Self {
        Self { message: message.into(), advice: None }
    }

    /// The object is not what it was.
    pub(super) fn changed() -> Self {
        Self::new("it was changed while it was fetched", "run the build again")
    }
}

const CREDENTIALS: &str = "check the credentials in the environment, and what they allow";
const NAME: &str = "check the name";

impl Remote {
    pub(super) fn of(url: &InputUrl, scheme: Scheme) -> Result<Self, Refused> {
        // The one that this program has; another one may be in place already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let wrong = |error: &dyn Error| Refused::new(chain(error), "correct the URL");
        let text = url.secret();
        let parsed = Url::parse(text).map_err(|error| wrong(&error))?;
        if scheme == Scheme::Web {
            let client = Client::builder().connect_timeout(CONNECT_TIMEOUT).build();
            return Ok(Self::Web(client.map_err(|error| wrong(&error))?, parsed));
        }
        let (_, path) = ObjectStoreScheme::parse(&parsed).map_err(|error| wrong(&error))?;
        if path.as_ref().is_empty() {
            return Err(Refused::new("it names no object", "correct the URL"));
        }
        let refused = |error: object_store::Error| Refused::new(chain(&error), CREDENTIALS);
        let retry = RetryConfig { max_retries: RETRIES, ..RetryConfig::default() };
        let store: Arc<dyn ObjectStore> = match scheme {
            Scheme::S3 => {
                let builder = AmazonS3Builder::from_env().with_url(text).with_retry(retry);
                Arc::new(builder.build().map_err(refused)?)
            }
            Scheme::Gcs => {
                let builder = GoogleCloudStorageBuilder::from_env().with_url(text).with_retry(retry);
                Arc::new(builder.build().map_err(refused)?)
            }
            _ => {
                let builder = MicrosoftAzureBuilder::from_env().with_url(text).with_retry(retry);
                Arc::new(builder.build().map_err(refused)?)
            }
        };
        Ok(Self::Store(store, path))
    }

    /// The object from byte `start` on, as long as it is of `version`, if that is given.
    pub(super) async fn get(self, start: u64, version: Option<String>) -> Result<Part, Refused> {
        match self {
            Self::Store(store, path) => {
                let range = (start > 0).then_some(GetRange::Offset(start));
                let options = GetOptions { range, if_match: version, ..GetOptions::default() };
                let got = store.get_opts(&path, options).await.map_err(store_refused)?;
                let (size, version) = (Some(got.meta.size), got.meta.e_tag.clone());
                let bytes = got.into_stream().map_err(store_refused).boxed();
                Ok(Part { start, size, version, bytes })
            }
            Self::Web(client, url) => {
                let mut request = client.get(url);
                if start > 0 {
                    request = request.header(RANGE, format!("bytes={start}-"));
                }
                let response = request.send().await.map_err(web_failed)?;
                web_part(response, start)
            }
        }
    }
}

fn store_refused(error: object_store::Error) -> Refused {
    use object_store::Error as E;
    let advice = match error {
        E::NotFound { .. } => NAME,
        E::PermissionDenied { .. } | E::Unauthenticated { .. } => CREDENTIALS,
        E::Precondition { .. } | E::NotModified { .. } => return Refused::changed(),
        _ => return Refused::again(&error),
    };
    Refused::new(chain(&error), advice)
}

fn web_failed(error: reqwest::Error) -> Refused {
    Refused::again(&error.without_url())
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
    without_secrets(&text)
}
