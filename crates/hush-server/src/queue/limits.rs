//! Reading a body within a size, a time and a memory budget.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, header::CONTENT_LENGTH},
};
use futures_util::TryStreamExt;
use parking_lot::Mutex;

use crate::{access::client::ClientAddress, problem::Problem, state::Server};

/// The least memory that is allocated for a body, in bytes, unless the body cannot become as long.
const FIRST_ALLOCATION: usize = 64 << 10;

/// The memory budget that all requests and their answers share.
pub(crate) struct Budget {
    /// The most bytes that one client may have of it.
    share: usize,
    state: Mutex<LimitState>,
}

struct LimitState {
    free: usize,
    /// The bytes that each client holds; a client that holds none has no entry.
    taken: HashMap<ClientAddress, usize>,
}

impl Budget {
    pub(crate) fn new(bytes: usize, share: usize) -> Budget {
        Budget { share, state: Mutex::new(LimitState { free: bytes, taken: HashMap::new() }) }
    }

    /// Takes `bytes` for a client, or nothing. Fails as [`Reservation::grow`] does.
    fn take(&self, client: ClientAddress, bytes: usize) -> Result<(), Problem> {
        let mut state = self.state.lock();
        let taken = state.taken.get(&client).copied().unwrap_or(0);
        let Some(free) = state.free.checked_sub(bytes) else {
            return Err(Problem::overloaded("the memory for requests and answers is used up"));
        };
        if bytes > self.share.saturating_sub(taken) {
            return Err(Problem::used_up("memory for requests and answers"));
        }
        state.free = free;
        state.taken.insert(client, taken + bytes);
        Ok(())
    }

    fn give_back(&self, client: ClientAddress, bytes: usize) {
        let mut state = self.state.lock();
        state.free += bytes;
        if let Entry::Occupied(mut taken) = state.taken.entry(client) {
            *taken.get_mut() -= bytes;
            if *taken.get() == 0 {
                taken.remove();
            }
        }
    }
}

/// The part of the budget that one request holds. A drop gives it back.
pub(crate) struct Reservation {
    budget: Arc<Budget>,
    client: ClientAddress,
    taken: usize,
}

impl Reservation {
    /// Creates a reservation that holds nothing.
    fn none(budget: &Arc<Budget>, client: ClientAddress) -> Reservation {
        Reservation { budget: budget.clone(), client, taken: 0 }
    }

    /// Returns another reservation of the same client, which holds nothing.
    pub(crate) fn another(&self) -> Reservation {
        Reservation::none(&self.budget, self.client)
    }

    /// Moves `bytes` of this reservation into a new one, or all of it if it has less.
    pub(crate) fn split(&mut self, bytes: usize) -> Reservation {
        let taken = bytes.min(self.taken);
        self.taken -= taken;
        let mut part = self.another();
        part.taken = taken;
        part
    }

    /// Takes `bytes` more of the budget, or nothing.
    ///
    /// # Errors
    /// `throttled` if the client has its share, `overloaded` if the budget does not have as much.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Problem> {
        self.budget.take(self.client, bytes)?;
        self.taken += bytes;
        Ok(())
    }

    /// Gives all but `bytes` back to the budget.
    fn shrink(&mut self, bytes: usize) {
        let excess = self.taken.saturating_sub(bytes);
        self.budget.give_back(self.client, excess);
        self.taken -= excess;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.give_back(self.client, self.taken);
    }
}

/// A body that is being read. Its capacity, not its length, counts against the budget.
struct BodyBuffer {
    bytes: Vec<u8>,
    memory: Reservation,
    /// The most bytes that may come: the length that the client declared, or the limit.
    most: usize,
}

impl BodyBuffer {
    /// Appends a chunk. The capacity grows with the bytes that have come, at most by doubling: a large `Content-Length` alone
    /// takes no memory away from others. Fails with `too_large` beyond `most`, or as [`Reservation::grow`] does.
    fn append(&mut self, chunk: &[u8]) -> Result<(), Problem> {
        if chunk.len() > self.most - self.bytes.len() {
            return Err(Problem::body_too_large(self.most));
        }
        let needed = self.bytes.len() + chunk.len();
        if needed > self.memory.taken {
            let doubled = self.memory.taken.saturating_mul(2).max(FIRST_ALLOCATION);
            let capacity = needed.max(doubled.min(self.most));
            self.memory.grow(capacity - self.memory.taken)?;
            let reserved = self.bytes.try_reserve_exact(capacity - self.bytes.len());
            reserved.map_err(|_| Problem::overloaded("there is no memory for the request"))?;
        }
        self.bytes.extend_from_slice(chunk);
        Ok(())
    }

    fn finish(mut self) -> (Bytes, Reservation) {
        self.bytes.shrink_to_fit();
        self.memory.shrink(self.bytes.len());
        (self.bytes.into(), self.memory)
    }
}

/// Reads a body of at most `limit` bytes. Returns it with the memory that it takes. A body that declares more is refused before
/// any of it is read. A body that turns out to be longer is refused as soon as it does.
///
/// # Errors
/// `too_large`, `throttled`, `overloaded`, `timeout`, or `invalid_request` if the client breaks off.
pub(crate) async fn read_body(
    server: &Server,
    client: ClientAddress,
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<(Bytes, Reservation), Problem> {
    let limit = limit.min(server.config.share_of(server.config.max_body_memory));
    let declared: Option<u64> =
        headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let most = match declared {
        Some(declared) if declared > limit as u64 => return Err(Problem::body_too_large(limit)),
        Some(declared) => declared as usize,
        None => limit,
    };
    let mut buffer =
        BodyBuffer { bytes: Vec::new(), memory: Reservation::none(&server.body_budget, client), most };
    let read = async {
        let mut chunks = body.into_data_stream();
        while let Some(chunk) = chunks.try_next().await.map_err(|_| Problem::broken_body())? {
            buffer.append(&chunk)?;
        }
        Ok(())
    };
    match tokio::time::timeout(server.config.body_timeout, read).await {
        Ok(outcome) => outcome?,
        Err(_) => return Err(Problem::body_timeout(server.config.body_timeout)),
    }
    Ok(buffer.finish())
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::problem::Code;

    fn client(last: u8) -> ClientAddress {
        IpAddr::from([10, 0, 0, last]).into()
    }

    /// Returns a budget that a single client may use up.
    fn budget_of(bytes: usize) -> Budget {
        Budget::new(bytes, bytes)
    }

    #[test]
    fn a_client_has_no_more_than_its_share() {
        let budget = Arc::new(Budget::new(10, 4));
        let mut first = Reservation::none(&budget, client(1));
        let mut other = Reservation::none(&budget, client(2));
        assert!(first.grow(3).is_ok() && other.grow(4).is_ok());
        let mut second = first.another();
        assert!(second.grow(2).unwrap_err().is(Code::Throttled));
        assert!(second.grow(1).is_ok());
        let mut third = Reservation::none(&budget, client(3));
        assert!(third.grow(3).unwrap_err().is(Code::Overloaded));
        drop((first, second));
        assert!(third.grow(4).is_ok());
        drop((other, third));
        assert!(budget.state.lock().taken.is_empty());
    }

    #[test]
    fn a_budget_is_never_overdrawn_and_comes_back() {
        let budget = Arc::new(budget_of(10));
        let mut first = Reservation::none(&budget, client(1));
        assert!(first.grow(6).is_ok());
        let mut second = Reservation::none(&budget, client(1));
        assert!(second.grow(5).is_err());
        assert!(second.grow(4).is_ok());
        let part = first.split(2);
        drop(first);
        assert!(second.grow(5).is_err());
        drop(part);
        assert!(second.grow(6).is_ok());
        assert!(second.grow(1).is_err());
        second.shrink(3);
        assert!(second.grow(8).is_err());
        assert!(second.grow(7).is_ok());
    }

    #[test]
    fn a_body_never_has_more_memory_than_it_reserved() {
        const MOST: usize = 5 * FIRST_ALLOCATION + 3;
        let budget = Arc::new(budget_of(MOST));
        let mut buffer =
            BodyBuffer { bytes: Vec::new(), memory: Reservation::none(&budget, client(1)), most: MOST };
        let chunk = [7; 1001];
        while buffer.bytes.len() + chunk.len() <= MOST {
            buffer.append(&chunk).unwrap();
            assert_eq!(buffer.bytes.capacity(), buffer.memory.taken);
            assert!(buffer.memory.taken <= FIRST_ALLOCATION.max(2 * buffer.bytes.len()));
        }
        assert!(buffer.append(&chunk).is_err());
        buffer.append(&chunk[..MOST - buffer.bytes.len()]).unwrap();
        assert_eq!((buffer.bytes.capacity(), buffer.memory.taken), (MOST, MOST));
        assert!(buffer.append(&[0]).is_err());
        assert_eq!(buffer.finish().0, vec![7; MOST]);
        assert_eq!(budget.state.lock().free, MOST);
    }

    #[test]
    fn a_body_of_unknown_length_keeps_only_what_it_is() {
        let budget = Arc::new(budget_of(FIRST_ALLOCATION));
        let mut buffer = BodyBuffer {
            bytes: Vec::new(),
            memory: Reservation::none(&budget, client(1)),
            most: 2 * FIRST_ALLOCATION,
        };
        buffer.append(&[1; 10]).unwrap();
        let (bytes, memory) = buffer.finish();
        assert_eq!((bytes.len(), memory.taken), (10, 10));
        assert_eq!(budget.state.lock().free, FIRST_ALLOCATION - 10);
    }
}
