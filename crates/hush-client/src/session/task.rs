//! The work of a session as a state machine, which a driver advances.
//!
//! The work is an `async` function, which the compiler turns into a state machine. Where it needs a response or a wait, it
//! leaves a request in the [`Port`] and stops. It continues after the driver has left the answer there. There is no
//! executor: only the functions of [`Task`] let it continue.

use std::{
    future::{Future, poll_fn},
    mem,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use super::{Head, Request, TransportFailure};

/// Work of a session in progress. It does no I/O itself: [`Task::advance`] returns the next action of the driver.
///
/// Between two calls, a task may be moved, stored or dropped; dropping it cancels the work. The calls may compute for
/// seconds (encryption, decryption, hashing), so a driver with an event loop makes them on another thread.
pub struct Task<'a, T> {
    work: Option<Pin<Box<dyn Future<Output = T> + Send + 'a>>>,
    port: Port,
    result: Option<T>,
}

/// The next action of a driver.
#[derive(Debug)]
pub enum Action<T> {
    /// Send this request. Then call [`Task::begin`] if there is a response, or else [`Task::fail`].
    Send(Request),
    /// Wait, then call [`Task::advance`].
    Wait(Duration),
    /// The work is done, with this result.
    Done(T),
}

impl<'a, T> Task<'a, T> {
    pub(super) fn new<F: Future<Output = T> + Send + 'a>(work: impl FnOnce(Port) -> F) -> Self {
        let port = Port::default();
        Self { work: Some(Box::pin(work(port.clone()))), port, result: None }
    }

    /// Continues the work until it needs the driver. Returns the driver's next action.
    ///
    /// # Panics
    /// If the last request has no response yet, or the result was returned before.
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

    /// Takes the head of the response. If this returns `true`, call [`Task::body`] with every part of the body, then
    /// [`Task::end`], or [`Task::fail`] if the body breaks off. If it returns `false`, call [`Task::advance`].
    ///
    /// # Panics
    /// If no request waits for a response.
    pub fn begin(&mut self, head: Head) -> bool {
        self.tell(TaskEvent::Head(head), |slot| matches!(slot, TaskSlot::Sent))
    }

    /// Takes the next bytes of the body. Returns whether more must be read.
    ///
    /// # Panics
    /// If the work does not wait for a body.
    pub fn body(&mut self, bytes: &[u8]) -> bool {
        self.tell(TaskEvent::Body(bytes.to_vec()), TaskSlot::asks_for_body)
    }

    /// Marks the body as complete. The work continues only at the next [`Task::advance`]. The driver can release or close
    /// the connection before answers are decrypted, so that the end of the connection does not reveal how long that takes.
    ///
    /// # Panics
    /// If the work does not wait for a body.
    pub fn end(&mut self) {
        self.leave(TaskEvent::End, TaskSlot::asks_for_body);
    }

    /// Reports that there is no response, or that its body broke off.
    ///
    /// # Panics
    /// If the work does not wait for a response or a body.
    pub fn fail(&mut self, failure: TransportFailure) {
        self.tell(TaskEvent::Failed(failure), |slot| matches!(slot, TaskSlot::Sent) || slot.asks_for_body());
    }

    /// Takes a response whose body was read already, up to [`Request::max_response_bytes`] bytes.
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

    /// Continues the work, unless it waits for the driver.
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

/// The slot in which the work and its driver leave requests and answers for each other.
#[derive(Clone, Default)]
pub(super) struct Port(Arc<Mutex<TaskSlot>>);

#[derive(Default)]
enum TaskSlot {
    /// Neither has left anything.
    #[default]
    Empty,
    Asks(Ask),
    /// The driver took a request.
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
    /// Sends a request, and returns the head of its response.
    pub(super) async fn send(&self, request: Request) -> Result<Head, TransportFailure> {
        match self.ask(Ask::Send(request)).await {
            TaskEvent::Head(head) => Ok(head),
            TaskEvent::Failed(failure) => Err(failure),
            TaskEvent::Waited | TaskEvent::Body(_) | TaskEvent::End => unreachable!("a head comes first"),
        }
    }

    /// Returns the next part of the last response's body, or `None` after its end.
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
