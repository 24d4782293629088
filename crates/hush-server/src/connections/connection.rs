//! A connection, over TCP or TLS: timeouts, byte counts, orderly close.

use std::{
    future::poll_fn,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{Router, extract::ConnectInfo, http::Request, response::Response};
use futures_util::TryFutureExt;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::TcpStream,
    sync::watch,
    time::{Instant, Sleep},
};
use tower::Service;

use crate::{
    connections::{
        http2::{self, MAX_HEADER_BYTES},
        pace::Pace,
        places::{Activity, ConnectionPlace, WatchedBody},
        tls::{self, Tls},
    },
    state::Server,
};

/// The longest time for which the rest of a refused request is read and discarded after the response.
const LINGER: Duration = Duration::from_secs(1);

/// Serves one connection until it ends. Once `stopped` turns true, or another connection needs the slot, only the request in
/// flight is still answered.
pub(crate) async fn serve(
    tcp: TcpStream,
    tls: Option<Arc<Tls>>,
    server: Arc<Server>,
    router: Router,
    place: ConnectionPlace,
    mut stopped: watch::Receiver<bool>,
) {
    let Ok(peer) = tcp.peer_addr() else { return };
    // A response is written in few large pieces: waiting to merge them only adds delay.
    if let Err(error) = tcp.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let header_timeout = server.config.header_timeout;
    let stream = MeteredStream::new(tcp, server.clone(), place.activity.clone());
    let Some(tls) = tls else {
        return speak(stream, peer, header_timeout, router, place, stopped).await;
    };
    let shake_hands = tokio::time::timeout(header_timeout, tls.acceptor().accept(stream));
    let shaken = tokio::select! {
        shaken = shake_hands => shaken,
        () = place.activity.told_to_close() => return,
        _ = stopped.wait_for(|stopped| *stopped) => return,
    };
    match shaken {
        Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(tls::HTTP_2) => {
            http2::speak(stream, peer, &server.config, router, place, stopped).await;
        }
        Ok(Ok(stream)) => speak(stream, peer, header_timeout, router, place, stopped).await,
        Ok(Err(error)) => tracing::debug!(%error, "the TLS handshake failed"),
        Err(_) => tracing::debug!("the TLS handshake took too long"),
    }
}

/// Speaks HTTP/1.1 over a stream until it ends.
async fn speak<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    peer: SocketAddr,
    header_timeout: Duration,
    router: Router,
    place: ConnectionPlace,
    mut stopped: watch::Receiver<bool>,
) {
    let activity = place.activity.clone();
    let asked = activity.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        asked.asked();
        request.extensions_mut().insert::<ConnectInfo<SocketAddr>>(ConnectInfo(peer));
        let activity = asked.clone();
        // A router is always ready.
        router
            .clone()
            .call(request)
            .map_ok(|response: Response| response.map(|body| WatchedBody::new(body, activity)))
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .max_header_size(MAX_HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut ended = tokio::select! {
        ended = poll_fn(|cx| connection.poll_without_shutdown(cx)) => Some(ended),
        () = activity.told_to_close() => {
            if activity.is_idle() {
                return;
            }
            None
        }
        _ = stopped.wait_for(|stopped| *stopped) => None,
    };
    if ended.is_none() {
        Pin::new(&mut connection).graceful_shutdown();
        ended = Some(poll_fn(|cx| connection.poll_without_shutdown(cx)).await);
    }
    if let Some(Err(error)) = ended {
        tracing::debug!(%error, "the connection failed");
    }
    linger(connection.into_parts().io.into_inner()).await;
    drop(place);
}

/// The response to a client whose share of connections is in use.
const REFUSAL: &[u8] =
    b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// Sends a client that has no slot the response 429, if the socket takes it at once. The caller closes the connection.
pub(crate) fn refuse(tcp: &TcpStream) {
    tracing::debug!("refused a connection: its address has as many as its share allows");
    let _ = tcp.try_write(REFUSAL);
}

/// Closes a stream in order: ends the output, then discards input for at most [`LINGER`]. A socket that is dropped with unread
/// input is reset, and a client that still sends a refused request would lose the response.
async fn linger(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let read_rest = async {
        stream.shutdown().await?;
        let mut discarded = vec![0; 16 << 10];
        while stream.read(&mut discarded).await? > 0 {}
        io::Result::Ok(())
    };
    // The client may be gone or go on sending: either way the socket closes now.
    let _ = tokio::time::timeout(LINGER, read_rest).await;
}

/// A TCP stream that counts bytes and fails if the peer reads too slowly.
struct MeteredStream {
    tcp: TcpStream,
    server: Arc<Server>,
    pace: Pace,
    activity: Arc<Activity>,
    /// The write that is pending: the time since when, and a timer for how much longer it may be.
    pending: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl MeteredStream {
    fn new(tcp: TcpStream, server: Arc<Server>, activity: Arc<Activity>) -> MeteredStream {
        let pace = Pace::new(server.config.write_timeout);
        MeteredStream { tcp, server, pace, activity, pending: None }
    }

    /// Counts the outcome of a write. A write that is pending for longer than the pace allows fails with `TimedOut`.
    fn wrote(&mut self, cx: &mut Context<'_>, write: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(outcome) = write {
            let waited = self.pending.take().map_or(Duration::ZERO, |(since, _)| since.elapsed());
            if let Ok(bytes) = outcome {
                self.pace.wrote(bytes, waited);
                self.server.metrics.sent.inc_by(bytes as u64);
            }
            return Poll::Ready(outcome);
        }
        let left = self.pace.left();
        let (_, too_slow) =
            self.pending.get_or_insert_with(|| (Instant::now(), Box::pin(tokio::time::sleep(left))));
        ready!(too_slow.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for MeteredStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = ready!(Pin::new(&mut self.tcp).poll_read(cx, buffer));
        self.server.metrics.received.inc_by((buffer.filled().len() - before) as u64);
        Poll::Ready(outcome)
    }
}

impl AsyncWrite for MeteredStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.tcp).poll_write(cx, bytes);
        self.wrote(cx, write)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.tcp).poll_write_vectored(cx, pieces);
        self.wrote(cx, write)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The HTTP side flushes once it has written all that it had.
        self.activity.flushed();
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}
