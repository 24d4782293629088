//! The connections of one listener: their number is bounded, and an idle one keeps no other out.

use std::{
    collections::{HashMap, hash_map::Entry},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use tokio::{sync::Notify, time::Instant};

use crate::access::client::ClientAddress;

/// The longest wait for the file descriptor of an idle connection that was told to close.
const CLOSING: Duration = Duration::from_millis(100);

/// The slots for the connections of one listener.
pub(crate) struct Connections {
    limit: usize,
    /// The most connections of one client.
    share: usize,
    open: Mutex<OpenConnections>,
    /// Wakes a task that waits for a slot, once a slot is free or its connection idle.
    changed: Notify,
    /// The number of connections, those included that were told to close.
    gauge: Gauge,
}

#[derive(Default)]
struct OpenConnections {
    activities: HashMap<u64, Arc<Activity>>,
    of_client: HashMap<ClientAddress, usize>,
    next: u64,
}

impl Connections {
    pub(crate) fn new(limit: usize, share: usize, gauge: Gauge) -> Arc<Connections> {
        Arc::new(Connections { limit, share, open: Mutex::default(), changed: Notify::new(), gauge })
    }

    /// Allocates a slot for a connection of `client`. If all slots are in use, the connection that has been idle for longest is
    /// told to close, and its slot is free. If none is idle, this waits. Returns `None` if the client has its share and none of
    /// its connections is idle.
    pub(crate) async fn place(self: &Arc<Self>, client: ClientAddress) -> Option<ConnectionPlace> {
        loop {
            let changed = self.changed.notified();
            {
                let mut open = self.open.lock();
                let has_share = self.share < self.limit && open.of(client) >= self.share;
                if has_share && !open.close_idle(|activity| activity.client == client) {
                    return None;
                }
                if open.activities.len() < self.limit || open.close_idle(|_| true) {
                    return Some(ConnectionPlace::new(self, &mut open, client));
                }
            }
            changed.await;
        }
    }

    /// Tells the connection that has been idle for longest to close, and waits at most [`CLOSING`] for its file descriptor.
    /// Returns whether there was one.
    pub(crate) async fn close_idle(&self) -> bool {
        let changed = self.changed.notified();
        let was_idle = self.open.lock().close_idle(|_| true);
        if was_idle {
            // The wake-up may be of another connection, or late: the caller tries again either way.
            let _ = tokio::time::timeout(CLOSING, changed).await;
        }
        was_idle
    }
}

impl OpenConnections {
    fn of(&self, client: ClientAddress) -> usize {
        self.of_client.get(&client).copied().unwrap_or(0)
    }

    /// Tells the connection that has been idle for longest to close, of those for which `may_close` holds, and frees its slot.
    /// Returns whether there was one.
    fn close_idle(&mut self, may_close: impl Fn(&Activity) -> bool) -> bool {
        let candidates = self.activities.iter().filter(|(_, activity)| may_close(activity));
        let idle = candidates.filter_map(|(&id, activity)| Some((activity.idle_since()?, id)));
        let Some((_, id)) = idle.min() else { return false };
        let activity = self.remove(id).expect("it was among them");
        activity.close.notify_one();
        true
    }

    /// Frees a slot.
    fn remove(&mut self, id: u64) -> Option<Arc<Activity>> {
        let activity = self.activities.remove(&id)?;
        if let Entry::Occupied(mut count) = self.of_client.entry(activity.client) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        Some(activity)
    }
}

/// The slot of one connection. A drop frees it, even after a panic.
pub(crate) struct ConnectionPlace {
    connections: Arc<Connections>,
    id: u64,
    pub(crate) activity: Arc<Activity>,
}

impl ConnectionPlace {
    fn new(
        connections: &Arc<Connections>,
        open: &mut OpenConnections,
        client: ClientAddress,
    ) -> ConnectionPlace {
        let id = open.next;
        let connections = connections.clone();
        let phase = Mutex::new(ConnectionPhase::Idle(Instant::now()));
        let activity =
            Arc::new(Activity { client, phase, close: Notify::new(), connections: connections.clone() });
        open.next += 1;
        open.activities.insert(id, activity.clone());
        *open.of_client.entry(client).or_insert(0) += 1;
        connections.gauge.inc();
        ConnectionPlace { connections, id, activity }
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        // The entry is gone already if the connection was told to close.
        self.connections.open.lock().remove(self.id);
        self.connections.gauge.dec();
        self.connections.changed.notify_one();
    }
}

/// The state of one connection.
pub(crate) struct Activity {
    client: ClientAddress,
    phase: Mutex<ConnectionPhase>,
    close: Notify,
    connections: Arc<Connections>,
}

#[derive(Clone, Copy)]
enum ConnectionPhase {
    /// No request is open, or only a part of its headers has come. Holds the time since when.
    Idle(Instant),
    /// A request is being answered.
    Asked,
    /// The response is complete, but not all of it is written.
    Answered,
}

impl Activity {
    /// Notes that the headers of a request have come.
    pub(crate) fn asked(&self) {
        *self.phase.lock() = ConnectionPhase::Asked;
    }

    /// Notes that all output is written. If the response is complete, the connection is idle.
    pub(crate) fn flushed(&self) {
        let mut phase = self.phase.lock();
        if matches!(*phase, ConnectionPhase::Answered) {
            *phase = ConnectionPhase::Idle(Instant::now());
            drop(phase);
            self.connections.changed.notify_one();
        }
    }

    /// Notes that no request is open and all output is written: the connection is idle.
    pub(crate) fn rest(&self) {
        *self.phase.lock() = ConnectionPhase::Idle(Instant::now());
        self.connections.changed.notify_one();
    }

    /// Waits until the connection is told to close, since another one needs its slot.
    pub(crate) async fn told_to_close(&self) {
        self.close.notified().await;
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.idle_since().is_some()
    }

    pub(crate) fn idle_since(&self) -> Option<Instant> {
        match *self.phase.lock() {
            ConnectionPhase::Idle(since) => Some(since),
            ConnectionPhase::Asked | ConnectionPhase::Answered => None,
        }
    }
}

/// The body of a response. Its drop notes that the response is complete.
pub(crate) struct WatchedBody {
    body: Body,
    activity: Arc<Activity>,
}

impl WatchedBody {
    pub(crate) fn new(body: Body, activity: Arc<Activity>) -> WatchedBody {
        WatchedBody { body, activity }
    }
}

impl hyper::body::Body for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for WatchedBody {
    fn drop(&mut self) {
        *self.activity.phase.lock() = ConnectionPhase::Answered;
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn client(last: u8) -> ClientAddress {
        IpAddr::from([10, 0, 0, last]).into()
    }

    fn answer(place: &ConnectionPlace) {
        place.activity.asked();
        drop(WatchedBody::new(Body::empty(), place.activity.clone()));
        place.activity.flushed();
    }

    async fn is_told(place: &ConnectionPlace) -> bool {
        tokio::time::timeout(Duration::from_millis(1), place.activity.told_to_close()).await.is_ok()
    }

    #[tokio::test]
    async fn the_one_that_was_idle_for_longest_makes_room() {
        let connections = Connections::new(3, 3, Gauge::default());
        let first = connections.place(client(1)).await.unwrap();
        let second = connections.place(client(1)).await.unwrap();
        let third = connections.place(client(2)).await.unwrap();
        second.activity.asked();
        answer(&first);
        let fourth = connections.place(client(3)).await.unwrap();
        assert!(is_told(&third).await && !is_told(&first).await && !is_told(&second).await);
        assert_eq!(connections.gauge.get(), 4);
        drop(third);
        assert_eq!((connections.gauge.get(), connections.open.lock().activities.len()), (3, 3));
        drop((first, second, fourth));
        assert!(connections.open.lock().of_client.is_empty());
    }

    #[tokio::test]
    async fn a_place_is_waited_for_while_all_are_busy() {
        let connections = Connections::new(1, 1, Gauge::default());
        let first = connections.place(client(1)).await.unwrap();
        first.activity.asked();
        let waiting = tokio::spawn({
            let connections = connections.clone();
            async move { connections.place(client(2)).await.is_some() }
        });
        tokio::task::yield_now().await;
        // A response that is complete and not yet written is not idle.
        drop(WatchedBody::new(Body::empty(), first.activity.clone()));
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        first.activity.flushed();
        assert!(waiting.await.unwrap() && is_told(&first).await);
    }

    #[tokio::test]
    async fn an_idle_connection_leaves_its_file() {
        let connections = Connections::new(3, 3, Gauge::default());
        assert!(!connections.close_idle().await);
        let busy = connections.place(client(1)).await.unwrap();
        let idle = connections.place(client(1)).await.unwrap();
        busy.activity.asked();
        assert!(connections.close_idle().await && is_told(&idle).await && !is_told(&busy).await);
        assert!(!connections.close_idle().await);
    }

    #[tokio::test]
    async fn a_client_has_its_share() {
        let connections = Connections::new(4, 2, Gauge::default());
        let busy = connections.place(client(1)).await.unwrap();
        let idle = connections.place(client(1)).await.unwrap();
        busy.activity.asked();
        let third = connections.place(client(1)).await.unwrap();
        assert!(is_told(&idle).await);
        third.activity.asked();
        assert!(connections.place(client(1)).await.is_none());
        assert!(connections.place(client(2)).await.is_some());
    }
}
