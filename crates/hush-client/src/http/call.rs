//! A call of this driver: its deadline, its cancellation, and connections that observe both.

use std::{
    cell::RefCell,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use ureq::{
    Error, RequestBuilder,
    unversioned::transport::{Buffers, ConnectionDetails, Connector, NextTimeout, Transport},
};

/// The longest time in which a call notices that it is cancelled.
const LOOK: Duration = Duration::from_millis(50);

/// A handle with which another thread cancels calls. Clones share its state.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Cancels the calls that have this handle. They send no further request, stop waiting for a connection, and fail.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether [`Cancel::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The options of one call of look-ups.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// The handle that cancels the call.
    pub cancel: Cancel,
    /// The most look-ups in one request, and thus in flight at a time. `None` takes the client's limit.
    pub max_queries: Option<usize>,
}

/// The state of the call that a thread executes.
struct Call {
    cancel: Cancel,
    /// The time at which the call fails. `None` if it has no limit.
    deadline: Option<Instant>,
}

thread_local! {
    /// The call of this thread, which sends all of the call's requests.
    static CALL: RefCell<Option<Call>> = const { RefCell::new(None) };
}

/// A guard for the time in which this thread executes a call.
pub(super) struct Calling;

impl Calling {
    /// Begins a call.
    pub(super) fn begin(cancel: &Cancel) -> Self {
        CALL.set(Some(Call { cancel: cancel.clone(), deadline: None }));
        Self
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        CALL.set(None);
    }
}

/// Returns whether this thread's call is cancelled.
fn is_cancelled() -> bool {
    CALL.with_borrow(|call| call.as_ref().is_some_and(|call| call.cancel.is_cancelled()))
}

/// Sets the remaining time of this thread's call.
pub(super) fn set_time_left(left: Option<Duration>) {
    let deadline = left.and_then(|left| Instant::now().checked_add(left));
    CALL.with_borrow_mut(|call| call.iter_mut().for_each(|call| call.deadline = deadline));
}

/// Limits a request to the remaining time of this thread's call.
pub(super) fn in_time<Body>(request: RequestBuilder<Body>) -> RequestBuilder<Body> {
    let Some(deadline) = CALL.with_borrow(|call| call.as_ref()?.deadline) else { return request };
    let left = deadline.saturating_duration_since(Instant::now());
    request.config().timeout_global(Some(left)).build()
}

/// Waits for `time`, or until the call is cancelled.
pub(super) fn wait(time: Duration, cancel: &Cancel) {
    let begun = Instant::now();
    while !cancel.is_cancelled() {
        let left = time.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(LOOK));
    }
}

/// A connector whose connections end when the call is cancelled.
#[derive(Debug)]
pub(super) struct Leaving;

/// A connection that ends when the call is cancelled.
#[derive(Debug)]
pub(super) struct Left<T>(T);

impl<T: Transport> Connector<T> for Leaving {
    type Out = Left<T>;

    fn connect(&self, _: &ConnectionDetails<'_>, chained: Option<T>) -> Result<Option<Left<T>>, Error> {
        Ok(chained.map(Left))
    }
}

impl<T: Transport> Transport for Left<T> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.0.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.0.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let begun = Instant::now();
        let whole = NextTimeout { per_read: None, ..timeout.for_read() };
        loop {
            if is_cancelled() {
                return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the call was given up").into());
            }
            let left = whole.after.saturating_sub(begun.elapsed());
            match self.0.await_input(NextTimeout { after: left.min(LOOK).into(), ..whole }) {
                Err(Error::Timeout(_)) if left > LOOK => {}
                outcome => return outcome,
            }
        }
    }

    fn is_open(&mut self) -> bool {
        self.0.is_open()
    }

    fn is_tls(&self) -> bool {
        self.0.is_tls()
    }
}
