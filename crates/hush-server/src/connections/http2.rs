//! HTTP/2 over one connection.

use std::{net::SocketAddr, pin::pin, time::Duration};

use axum::{Router, extract::ConnectInfo, http::Request};
use hyper::{body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
    time::{MissedTickBehavior, interval},
};
use tower::Service;

use crate::{
    config::ServerConfig,
    connections::{places::ConnectionPlace, streams::Streams},
};

/// The most bytes of the headers of a request, also over HTTP/1.
pub(crate) const MAX_HEADER_BYTES: usize = 32 << 10;
/// The bytes that a client may send ahead of the reader, on a stream and on all of a connection.
const WINDOW: u32 = 256 << 10;
/// The bytes of a response that may wait for the socket.
const SEND_BUFFER: usize = 256 << 10;
/// The longest wait for the client to confirm the end of an idle connection. A client may never confirm it.
const FAREWELL: Duration = Duration::from_secs(2);
/// The interval between checks of a connection.
const LOOK: Duration = Duration::from_secs(1);

/// Speaks HTTP/2 over a stream until the stream ends, the connection was idle for `header_timeout`, or the client reads an answer
/// too slowly. Once `stopped` turns true, only open requests are answered.
pub(crate) async fn speak<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    peer: SocketAddr,
    config: &ServerConfig,
    router: Router,
    place: ConnectionPlace,
    mut stopped: watch::Receiver<bool>,
) {
    let activity = place.activity.clone();
    let streams = Streams::new(activity.clone(), config.write_timeout);
    let asked = streams.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        let stream = asked.begin();
        request.extensions_mut().insert::<ConnectInfo<SocketAddr>>(ConnectInfo(peer));
        // A router is always ready.
        let answer = router.clone().call(request);
        async move { answer.await.map(|response| stream.answer(response)) }
    });
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(config.max_streams)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .max_header_list_size(MAX_HEADER_BYTES as u32)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_ending = false;
    loop {
        let is_to_end = tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "the connection failed");
                }
                return;
            }
            () = activity.told_to_close(), if !is_ending => true,
            _ = stopped.wait_for(|stopped| *stopped), if !is_ending => true,
            _ = look.tick() => {
                let rested = activity.idle_since().map_or(Duration::ZERO, |since| since.elapsed());
                if streams.are_overdue() || is_ending && rested > FAREWELL {
                    tracing::debug!("closed a connection: its client reads too slowly");
                    return;
                }
                !is_ending && rested > config.header_timeout
            }
        };
        if is_to_end {
            connection.as_mut().graceful_shutdown();
            is_ending = true;
        }
    }
}
