//! The work of a session, as a machine that a driver turns.
//!
//! The work is an `async` function, which the compiler makes a state machine of: it stops where it needs a response or a
//! wait, leaves what it needs in the [`Port`], and goes on once the driver has left the answer there. There is no executor:
//! only the functions of [`Task`] make it go on.

use std::{
    future::{Future, poll_fn},
    mem,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use super::{Head, Request, TransportFailure};

/// Work of a session that is under way. It makes no request itself: [`Task::advance`] says what to do.
///
/// Between two calls it may be moved, kept, or dropped, which gives the work up. The calls themselves may compute for
/// seconds (encryption, decryption, hashing): a driver with an event loop makes them beside it.
pub struct Task<'a, T> {
    work: Option<Pin<Box<dyn Future<Output = T> + Send + 'a>>>,
    port: Port,
    result: Option<T>,
}

/// The next action of a driver.
#[derive(Debug)]
pub enum Action<T> {
    /// Make this request. Then [`Task::begin`], if there is a response; otherwise [`Task::fail`].
    Send(Request),
    /// Wait, then [`Task::advance`].
    Wait(Duration),
    /// Nothing more: this is the result.
    Done(T),
}

impl<'a, T> Task<'a, T> {
    pub(super) fn new<F: Future<Output = T> + Send + 'a>(work: impl FnOnce(Port) -> F) -> Self {
        let port = Port::default();
        Self { work: Some(Box::pin(work(port.clone()))), port, result: None }
    }

    /// Goes on until something has to be done outside, and says what.
    ///
    /// # Panics
    /// If the last request has not been answered, or the result was taken before.
    pub fn advance(&mut self) -> Action<T> {
        self.poll();
        if let Some(result) = self.result.take() {
            return Action::Done(result);
        }
        let mut slot = self.port.slot();
        match mem::take(&mut *slot) {
            TaskSlot::Asks(Ask::Send(request)) => {
                *slot = TaskSlot::Sent;
                Action::Send(request)
            }
            TaskSlot::Asks(Ask::Wait(wait)) => {
                *slot = TaskSlot::Told(TaskEvent::Waited);
                Action::Wait(wait)
            }
            _ => panic!("a request waits for its response, or the task is done"),
        }
    }

    /// Takes the head of the response. Returns whether its body is to be read: then [`Task::body`] with every part of it and
    /// [`Task::end`], or [`Task::fail`] if it breaks off; otherwise [`Task::advance`].
    ///
    /// # Panics
    /// If no request waits for a response.
    pub fn begin(&mut self, head: Head) -> bool {
        self.tell(TaskEvent::Head(head), |slot| matches!(slot, TaskSlot::Sent))
    }

    /// Takes the next bytes of the body. Returns whether there is more to read.
    ///
    /// # Panics
    /// If no body is to be read.
    pub fn body(&mut self, bytes: &[u8]) -> bool {
        self.tell(TaskEvent::Body(bytes.to_vec()), TaskSlot::asks_for_body)
    }

    /// Notes that the body is complete. The work goes on with the next [`Task::advance`]: the driver can give the connection back,
    /// or close it, before answers are decrypted, so that its end does not tell how long that takes.
    ///
    /// # Panics
    /// If no body is to be read.
    pub fn end(&mut self) {
        self.leave(TaskEvent::End, TaskSlot::asks_for_body);
    }

    /// Notes that there is no response, or that its body broke off.
    ///
    /// # Panics
    /// If nothing waits for a response.
    pub fn fail(&mut self, failure: TransportFailure) {
        self.tell(TaskEvent::Failed(failure), |slot| matches!(slot, TaskSlot::Sent) || slot.asks_for_body());
    }

    /// Takes a response whose body, of at most [`Request::max_response_bytes`], has been read already.
    ///
    /// # Panics
    /// If no request waits for a response.
    pub fn respond(&mut self, head: Head, body: &[u8]) {
        if self.begin(head) && self.body(body) {
            self.end();
        }
    }

    fn tell(&mut self, told: TaskEvent, fits: impl FnOnce(&TaskSlot) -> bool) -> bool {
        self.leave(told, fits);
        self.poll();
        self.port.slot().asks_for_body()
    }

    fn leave(&self, told: TaskEvent, fits: impl FnOnce(&TaskSlot) -> bool) {
        let mut slot = self.port.slot();
        assert!(fits(&slot), "nothing waits for this part of a response");
        *slot = TaskSlot::Told(told);
    }

    /// Lets the work go on, unless it waits for the driver.
    fn poll(&mut self) {
        if matches!(*self.port.slot(), TaskSlot::Asks(_)) {
            return;
        }
        let Some(work) = &mut self.work else { return };
        if let Poll::Ready(result) = work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            (self.work, self.result) = (None, Some(result));
        }
    }
}

/// Where the work and its driver leave things for each other.
#[derive(Clone, Default)]
pub(super) struct Port(Arc<Mutex<TaskSlot>>);

#[derive(Default)]
enum TaskSlot {
    /// Neither left anything.
    #[default]
    Empty,
    Asks(Ask),
    /// A request was taken from here.
    Sent,
    Told(TaskEvent),
}

enum Ask {
    Send(Request),
    Wait(Duration),
    /// The next part of the response.
    Body,
}

enum TaskEvent {
    Waited,
    Head(Head),
    Body(Vec<u8>),
    End,
    Failed(TransportFailure),
}

impl TaskSlot {
    fn asks_for_body(&self) -> bool {
        matches!(self, Self::Asks(Ask::Body))
    }
}

impl Port {
    /// Makes a request and returns the head of its response.
    pub(super) async fn send(&self, request: Request) -> Result<Head, TransportFailure> {
        match self.ask(Ask::Send(request)).await {
            TaskEvent::Head(head) => Ok(head),
            TaskEvent::Failed(failure) => Err(failure),
            TaskEvent::Waited | TaskEvent::Body(_) | TaskEvent::End => unreachable!("a head comes first"),
        }
    }

    /// Returns the next part of the body of the last response; `None` after the last one.
    pub(super) async fn body(&self) -> Result<Option<Vec<u8>>, TransportFailure> {
        match self.ask(Ask::Body).await {
            TaskEvent::Body(bytes) => Ok(Some(bytes)),
            TaskEvent::End => Ok(None),
            TaskEvent::Failed(failure) => Err(failure),
            TaskEvent::Waited | TaskEvent::Head(_) => unreachable!("a response has one head"),
        }
    }

    pub(super) async fn wait(&self, wait: Duration) {
        self.ask(Ask::Wait(wait)).await;
    }

    async fn ask(&self, ask: Ask) -> TaskEvent {
        *self.slot() = TaskSlot::Asks(ask);
        poll_fn(|_| {
            let mut slot = self.slot();
            match mem::take(&mut *slot) {
                TaskSlot::Told(told) => Poll::Ready(told),
                other => {
                    *slot = other;
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn slot(&self) -> MutexGuard<'_, TaskSlot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
