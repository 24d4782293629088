//! Reading a body within a size, a time and a memory budget.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, header::CONTENT_LENGTH},
};
use futures_util::TryStreamExt;

use crate::{problem::Problem, state::Server};

/// The most memory that is set aside for a body on the word of its `Content-Length`.
const FIRST_ALLOCATION: usize = 64 << 10;

/// Memory that all request bodies share.
pub(crate) struct Budget {
    free: AtomicUsize,
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Budget {
        Budget { free: AtomicUsize::new(bytes) }
    }
}

/// What one body has taken of the budget; given back on drop.
pub(crate) struct Reservation {
    budget: Arc<Budget>,
    taken: usize,
}

impl Reservation {
    fn none(budget: &Arc<Budget>) -> Reservation {
        Reservation { budget: budget.clone(), taken: 0 }
    }

    /// Takes more; `false`, and nothing taken, if the budget does not have it.
    fn grow(&mut self, bytes: usize) -> bool {
        let take = |free: usize| free.checked_sub(bytes);
        let taken = self.budget.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        if taken {
            self.taken += bytes;
        }
        taken
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.free.fetch_add(self.taken, Ordering::Relaxed);
    }
}

/// Reads a body of at most `limit` bytes. One that declares more is refused before any of it is
/// read, one that turns out to be more as soon as it does.
///
/// # Errors
/// `too_large`, `overloaded`, `timeout`, or `invalid_request` if the client breaks off.
pub(crate) async fn read_body(
    server: &Server,
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<(Bytes, Reservation), Problem> {
    let limit = limit.min(server.config.max_body_memory);
    let declared = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let declared: u64 = declared.unwrap_or(0);
    if declared > limit as u64 {
        return Err(Problem::body_too_large(limit));
    }
    let mut reservation = Reservation::none(&server.body_budget);
    let mut bytes = Vec::with_capacity((declared as usize).min(FIRST_ALLOCATION));
    let read = async {
        let mut chunks = body.into_data_stream();
        while let Some(chunk) = chunks.try_next().await.map_err(|_| Problem::broken_body())? {
            if chunk.len() > limit - bytes.len() {
                return Err(Problem::body_too_large(limit));
            }
            if !reservation.grow(chunk.len()) {
                return Err(Problem::overloaded("the memory for request bodies is used up"));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(())
    };
    match tokio::time::timeout(server.config.body_timeout, read).await {
        Ok(outcome) => outcome?,
        Err(_) => return Err(Problem::body_timeout(server.config.body_timeout)),
    }
    Ok((bytes.into(), reservation))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_never_overdrawn_and_comes_back() {
        let budget = Arc::new(Budget::new(10));
        let mut first = Reservation::none(&budget);
        assert!(first.grow(6));
        let mut second = Reservation::none(&budget);
        assert!(!second.grow(5));
        assert!(second.grow(4));
        drop(first);
        assert!(second.grow(6));
        assert!(!second.grow(1));
    }
}
