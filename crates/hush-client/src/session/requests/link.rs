//! Requests with retries and bounded bodies.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use hush_protocol::{Code, wire};

use super::problem::{self, MAX_REFUSAL_BYTES};
use crate::session::{
    Event, Head, Host, Method, Need, Request, RetryPolicy, ServerUrl, SessionError, SessionOptions,
    TransportFailure,
    relay::{Relay, Relayed},
    task::Port,
};

/// A server, with the options and the route that all requests to it share.
pub(in crate::session) struct Context {
    pub(in crate::session) url: ServerUrl,
    pub(in crate::session) options: SessionOptions,
    pub(in crate::session) host: Arc<dyn Host>,
    /// The relay to the server. `None` sends requests directly.
    pub(in crate::session) relay: Option<Arc<Relay>>,
}

/// The link through which a task sends its requests.
pub(in crate::session) struct Link {
    context: Arc<Context>,
    port: Port,
    /// The time by the host's clock at which the call must end.
    deadline: Option<Duration>,
    /// The last response, if it came through a relay.
    relayed: Mutex<Option<Relayed>>,
    /// Whether look-ups of the call were answered.
    has_answers: AtomicBool,
}

impl Link {
    pub(in crate::session) fn new(context: &Arc<Context>, port: Port) -> Self {
        let deadline = context.options.timeout.map(|timeout| context.host.now().saturating_add(timeout));
        let relayed = Mutex::default();
        let has_answers = AtomicBool::new(false);
        Self { context: context.clone(), port, deadline, relayed, has_answers }
    }

    pub(in crate::session) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Marks that look-ups of the call were answered. From then on, the call waits for a server that is restarted.
    pub(in crate::session) fn note_answers(&self) {
        self.has_answers.store(true, Ordering::Relaxed);
    }

    pub(in crate::session) fn options(&self) -> &SessionOptions {
        &self.context.options
    }

    pub(in crate::session) fn host(&self) -> &dyn Host {
        &*self.context.host
    }

    pub(in crate::session) fn report(&self, event: &Event<'_>) {
        self.host().report(event);
    }

    /// Waits until the host can answer `need`.
    pub(in crate::session) async fn ready(&self, need: Need<'_>) {
        while !self.host().is_ready(&need) {
            self.port.wait(Duration::ZERO).await;
        }
    }

    /// Returns the remaining time of the call. Returns `None` if it has no limit.
    fn time_left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_sub(self.host().now()))
    }

    /// Fails if the time of the call is over.
    fn in_time(&self) -> Result<(), TransportFailure> {
        match (self.time_left(), self.options().timeout) {
            (Some(Duration::ZERO), Some(timeout)) => {
                Err(TransportFailure::Timeout { phase: format!("the call may take {timeout:?}") })
            }
            _ => Ok(()),
        }
    }

    /// Runs `work` and adds its time to `seconds`.
    pub(in crate::session) fn timed<T>(&self, seconds: &mut f64, work: impl FnOnce() -> T) -> T {
        let start = self.host().now();
        let result = work();
        *seconds += self.seconds_since(start);
        result
    }

    pub(in crate::session) fn seconds_since(&self, start: Duration) -> f64 {
        self.host().now().saturating_sub(start).as_secs_f64()
    }

    /// Fetches a document of at most `limit` bytes, with retries.
    pub(in crate::session) async fn get(
        &self,
        path: &str,
        what: &'static str,
        limit: usize,
    ) -> Result<Vec<u8>, SessionError> {
        let mut retries = Retries::default();
        loop {
            let request = request(Method::Get, path, Vec::new(), limit as u64);
            match self.exchange(request, what, limit).await {
                Err(error) => retries.after(self, error).await?,
                document => return document,
            }
        }
    }

    /// Requests a file from byte `from` on, once. Returns the head of the response, which may still have the whole file.
    pub(in crate::session) async fn get_file(
        &self,
        path: &str,
        etag: &str,
        from: u64,
        limit: u64,
    ) -> Result<Head, SessionError> {
        let mut request = request(Method::Get, path, Vec::new(), limit);
        if from > 0 {
            request.headers = vec![("range", format!("bytes={from}-")), ("if-range", etag.to_owned())];
        }
        self.checked(request).await
    }

    /// Posts a body of the wire format, once. Returns the response, of at most `limit` bytes.
    pub(in crate::session) async fn post(
        &self,
        path: &str,
        body: Vec<u8>,
        limit: usize,
        is_last: bool,
    ) -> Result<Vec<u8>, SessionError> {
        let request = Request { is_last, ..request(Method::Post, path, body, limit as u64) };
        self.exchange(request, "an answer", limit).await
    }

    /// Puts a body of the wire format, once. Does not read the body of a successful response.
    pub(in crate::session) async fn put(&self, path: &str, body: Vec<u8>) -> Result<(), SessionError> {
        self.checked(request(Method::Put, path, body, 0)).await.map(drop)
    }

    /// Returns the next part of the last response's body, or `None` after its end.
    pub(in crate::session) async fn body_part(&self) -> Result<Option<Vec<u8>>, TransportFailure> {
        self.in_time()?;
        let Some(relay) = &self.context.relay else { return self.body_as_is().await };
        let Some(mut relayed) = self.put_relayed(None) else { return Ok(None) };
        let part = relayed.next(relay, self).await?;
        self.put_relayed(Some(relayed));
        Ok(part)
    }

    /// Sends a request, through the relay if there is one. Returns the head of its response.
    async fn send(&self, request: Request) -> Result<Head, TransportFailure> {
        let Some(relay) = &self.context.relay else { return self.send_as_is(request).await };
        let (head, relayed) = Relayed::begin(relay, self, request).await?;
        self.put_relayed(Some(relayed));
        Ok(head)
    }

    fn put_relayed(&self, relayed: Option<Relayed>) -> Option<Relayed> {
        std::mem::replace(&mut *self.relayed.lock().unwrap_or_else(PoisonError::into_inner), relayed)
    }

    /// Lets the driver send a request, without a relay.
    pub(in crate::session) async fn send_as_is(&self, request: Request) -> Result<Head, TransportFailure> {
        self.in_time()?;
        self.port.send(Request { time_left: self.time_left(), ..request }).await
    }

    /// Returns the next part of the body of the driver's last response.
    pub(in crate::session) async fn body_as_is(&self) -> Result<Option<Vec<u8>>, TransportFailure> {
        self.port.body().await
    }

    /// Returns the error for a response that no server of this API sends.
    pub(in crate::session) fn odd(&self, reason: impl Into<String>) -> SessionError {
        SessionError::NotHushDb { url: self.context.url.shown().to_owned(), reason: reason.into() }
    }

    async fn exchange(
        &self,
        request: Request,
        what: &'static str,
        limit: usize,
    ) -> Result<Vec<u8>, SessionError> {
        let head = self.checked(request).await?;
        self.body(&head, what, limit).await
    }

    /// Sends a request. Returns the head of the response if that is a success.
    async fn checked(&self, request: Request) -> Result<Head, SessionError> {
        let path = request.path.clone();
        let sent = request.body.len();
        let head = self.send(request).await.map_err(|failure| self.failure(failure))?;
        if !head.is_success() {
            return Err(self.refusal(&path, sent, &head).await);
        }
        match head.header("content-type") {
            Some(kind) if kind.trim_start().starts_with("text/html") => {
                Err(self.odd("a web page came in place of its answer, of something on the way"))
            }
            _ => Ok(head),
        }
    }

    /// Returns the error of a response that is not a success. The request had the path `path` and a body of `sent` bytes.
    async fn refusal(&self, path: &str, sent: usize, head: &Head) -> SessionError {
        let url = &self.context.url;
        if let Some(moved) = problem::moved(url, path, head) {
            return moved;
        }
        let odd = |reason| self.odd(reason);
        match self.body(head, "an error message", problem::refusal_limit(head.status)).await {
            Ok(body) => problem::refusal(url, sent, head, Some(&body), odd),
            Err(error @ SessionError::TooLong { .. }) => error,
            // The status is known even if the document is lost. A status that tells nothing leaves the loss to be told.
            Err(lost) => match problem::refusal(url, sent, head, None, odd) {
                SessionError::NotHushDb { .. } => lost,
                // The lost document has the server's reason. The status alone looks like that of a proxy.
                SessionError::Intermediary { .. } if problem::announces_problem(head) => lost,
                refused => refused,
            },
        }
    }

    async fn body(&self, head: &Head, what: &'static str, limit: usize) -> Result<Vec<u8>, SessionError> {
        let too_long = || SessionError::TooLong { what, limit: limit as u64 };
        if head.body_bytes.is_some_and(|bytes| bytes > limit as u64) {
            return Err(too_long());
        }
        let mut body = Vec::new();
        while let Some(part) = self.body_part().await.map_err(|failure| self.failure(failure))? {
            if part.len() > limit - body.len() {
                return Err(too_long());
            }
            body.extend_from_slice(&part);
        }
        Ok(body)
    }

    fn failure(&self, failure: TransportFailure) -> SessionError {
        let url = self.context.url.shown().to_owned();
        match failure {
            TransportFailure::Unreachable { reason, transient } => {
                SessionError::Unreachable { url, reason, transient }
            }
            TransportFailure::Timeout { phase } => SessionError::Timeout { url, phase },
            TransportFailure::Proxy { reason } => SessionError::Proxy { url, reason },
            TransportFailure::Tls { reason } => SessionError::Tls { url, reason },
            TransportFailure::Relay { reason } => SessionError::Relay { reason },
            TransportFailure::Odd { reason } => SessionError::NotHushDb { url, reason },
        }
    }
}

/// Creates a request. The limit of the response's body must allow an error of any status, so it may exceed `limit`.
fn request(method: Method, path: &str, body: Vec<u8>, limit: u64) -> Request {
    let headers = match method {
        Method::Get => Vec::new(),
        Method::Post | Method::Put => vec![("content-type", wire::CONTENT_TYPE.to_owned())],
    };
    let max_response_bytes = limit.max(MAX_REFUSAL_BYTES as u64);
    Request {
        method,
        path: path.to_owned(),
        headers,
        body,
        max_response_bytes,
        is_last: false,
        time_left: None,
    }
}

/// The failures of a request so far.
#[derive(Default)]
pub(in crate::session) struct Retries {
    /// The number of failures that count as attempts.
    failed: u32,
    /// The number of all failures, including those while a server loads its table.
    waits: u32,
    /// The time at which the server first reported that it is loading, or was lost.
    warming_since: Option<Duration>,
}

impl Retries {
    /// Waits before the next attempt. Returns the error instead if it is permanent, if all attempts were used, or if the
    /// wait is longer than the policy or the time of the call allows.
    pub(in crate::session) async fn after(
        &mut self,
        link: &Link,
        error: SessionError,
    ) -> Result<(), SessionError> {
        let has_answers = link.has_answers.load(Ordering::Relaxed);
        // A server that answered before may be restarting, or its connection may be cut. A new connection may succeed.
        let may_pass = error.is_transient() || (has_answers && matches!(error, SessionError::Timeout { .. }));
        if !may_pass {
            return Err(error);
        }
        link.in_time().map_err(|failure| link.failure(failure))?;
        let RetryPolicy { attempts, first_wait, max_wait, max_warming } = link.options().retry;
        let backoff = first_wait.saturating_mul(2u32.saturating_pow(self.waits));
        let wait = error.retry_after().max(backoff.min(max_wait));
        let enough = if error.code() == Code::Warming || has_answers {
            let now = link.host().now();
            now.saturating_sub(*self.warming_since.get_or_insert(now)).saturating_add(wait) > max_warming
        } else {
            self.failed += 1;
            self.failed >= attempts
        };
        if enough || wait > max_wait || link.time_left().is_some_and(|left| wait >= left) {
            return Err(error);
        }
        self.waits += 1;
        link.report(&Event::Retry { error: &error, wait });
        link.port.wait(wait).await;
        Ok(())
    }
}
