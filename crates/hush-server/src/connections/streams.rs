//! The requests of one HTTP/2 connection: how many are open, and which client reads its answers too slowly.
//!
//! A client can stop the window of a stream while the connection goes on. The answer is then in memory, and nothing is pending at
//! the socket that `pace.rs` sees. So every response has a deadline: the time that a client needs that reads at the least rate.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    http::header::CONTENT_LENGTH,
    response::Response,
};
use hyper::body::{Body as _, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::connections::{pace::LEAST_RATE, places::Activity};

/// The open requests of one HTTP/2 connection.
pub(crate) struct Streams {
    activity: Arc<Activity>,
    patience: Duration,
    open: Mutex<OpenStreams>,
}

#[derive(Default)]
struct OpenStreams {
    /// The deadline of each response; `None` until the request is answered.
    until: HashMap<u64, Option<Instant>>,
    next: u64,
}

impl Streams {
    /// Creates an empty set. A response may take `patience` plus its size divided by [`LEAST_RATE`].
    pub(crate) fn new(activity: Arc<Activity>, patience: Duration) -> Arc<Streams> {
        Arc::new(Streams { activity, patience, open: Mutex::default() })
    }

    /// Adds a request that has come.
    pub(crate) fn begin(self: &Arc<Self>) -> RequestStream {
        let mut open = self.open.lock();
        let id = open.next;
        open.next += 1;
        open.until.insert(id, None);
        self.activity.asked();
        RequestStream { streams: self.clone(), id }
    }

    /// Returns whether a response is past its deadline.
    pub(crate) fn are_overdue(&self) -> bool {
        let now = Instant::now();
        self.open.lock().until.values().flatten().any(|until| *until < now)
    }
}

/// A request, until all of its response is written or given up.
pub(crate) struct RequestStream {
    streams: Arc<Streams>,
    id: u64,
}

impl RequestStream {
    /// Sets the deadline of a response. Returns the response with a body whose bytes keep the request open until they are
    /// written.
    pub(crate) fn answer(self, response: Response) -> Response<StreamBody> {
        let declared =
            response.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        let bytes: u64 = response.body().size_hint().exact().or(declared).unwrap_or(0);
        let time = self.streams.patience + Duration::from_secs_f64(bytes as f64 / LEAST_RATE);
        let until = Instant::now().checked_add(time);
        self.streams.open.lock().until.insert(self.id, until);
        let stream = Arc::new(self);
        response.map(|body| StreamBody { body, stream })
    }
}

impl Drop for RequestStream {
    fn drop(&mut self) {
        let mut open = self.streams.open.lock();
        open.until.remove(&self.id);
        if open.until.is_empty() {
            self.streams.activity.rest();
        }
    }
}

/// The body of a response, which keeps its request open.
pub(crate) struct StreamBody {
    body: Body,
    stream: Arc<RequestStream>,
}

/// Bytes of a response that are not written yet.
struct Unwritten {
    bytes: Bytes,
    _stream: Arc<RequestStream>,
}

impl AsRef<[u8]> for Unwritten {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl hyper::body::Body for StreamBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let stream = &self.stream;
        Poll::Ready(match polled {
            Some(Ok(frame)) => Some(Ok(
                frame.map_data(|bytes| Bytes::from_owner(Unwritten { bytes, _stream: stream.clone() }))
            )),
            other => other,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use futures_util::StreamExt;
    use http_body_util::BodyStream;
    use prometheus_client::metrics::gauge::Gauge;

    use super::*;
    use crate::connections::places::{ConnectionPlace, Connections};

    async fn place() -> ConnectionPlace {
        Connections::new(1, 1, Gauge::default()).place(IpAddr::from([10, 0, 0, 1]).into()).await.unwrap()
    }

    #[tokio::test]
    async fn a_response_is_under_way_until_its_last_byte_is_written() {
        let place = place().await;
        let streams = Streams::new(place.activity.clone(), Duration::ZERO);
        let first = streams.begin();
        let other = streams.begin();
        assert!(!place.activity.is_idle() && !streams.are_overdue(), "nobody has answered yet");
        let body = first.answer(Response::new(Body::from("answer"))).into_body();
        let frames: Vec<_> = BodyStream::new(body).collect().await;
        drop(other);
        // The body is gone, but its bytes are still there.
        assert!(!place.activity.is_idle());
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert!(streams.are_overdue());
        drop(frames);
        assert!(place.activity.is_idle() && !streams.are_overdue());
    }

    #[tokio::test]
    async fn a_long_response_has_more_time() {
        let place = place().await;
        let streams = Streams::new(place.activity.clone(), Duration::ZERO);
        let _short = streams.begin();
        let _long = streams.begin().answer(Response::new(Body::from(vec![0; 1 << 20])));
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert!(!streams.are_overdue());
    }
}
